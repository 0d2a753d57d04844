package write_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

// A file that an editor holds open gets its new content there.
func TestWriteInAnEditor(t *testing.T) {
	for _, c := range []struct {
		note, text, content, want, code string
		unread                          bool
	}{
		{note: "replaces", text: "typed\n", content: "new\n", want: "new\n"},
		{note: "keeps CRLF", text: "typed\r\nmore\r\n", content: "a\nb\n", want: "a\r\nb\r\n"},
		{note: "empties", text: "typed", content: "", want: ""},
		{note: "fills", text: "", content: "new", want: "new"},
		{note: "the same", text: "typed", content: "typed", want: "typed"},
		{note: "not read", text: "typed", content: "new", want: "typed", code: "not_read", unread: true},
	} {
		for _, there := range []string{"there", "new"} {
			t.Run(c.note+" "+there, func(t *testing.T) {
				s := newSession(t)
				e := s.Editor()
				path := filepath.Join(s.Root, "file")
				if there == "there" {
					s.Put("file", "disk")
				}
				e.Type(path, c.text)
				if !c.unread {
					s.Read(path)
				}
				_, out, text, err := s.write(t, path, c.content)
				if tooltest.Code(err) != c.code || e.Text(path) != c.want {
					t.Errorf("%v, the editor holds %q", err, e.Text(path))
				}
				if err == nil && (!out.InEditor || out.Created || out.Unchanged != (c.text == c.content) || !out.Unchanged && !strings.Contains(text, "user's editor")) {
					t.Errorf("%+v\n%s", out, text)
				}
				if there == "there" {
					holds(t, path, "disk")
				}
			})
		}
	}
}
