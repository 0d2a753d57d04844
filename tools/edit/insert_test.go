package edit_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/tooltest"
)

type insertion struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	InsertLine int    `json:"insert_line"`
}

// TestInsertions: whole lines go behind the line that is named, and all else keeps its bytes.
func TestInsertions(t *testing.T) {
	for _, c := range []struct {
		note, file string
		line       int
		text, want string
		code       string
	}{
		{note: "beginning", file: "a\nb\n", line: 0, text: "x", want: "x\na\nb\n"},
		{note: "with its end", file: "a\nb\n", line: 1, text: "x\n", want: "a\nx\nb\n"},
		{note: "several", file: "a\nb\n", line: 1, text: "x\ny", want: "a\nx\ny\nb\n"},
		{note: "an empty line", file: "a\nb\n", line: 1, text: "", want: "a\n\nb\n"},
		{note: "an empty line at the end of several", file: "a\nb\n", line: 1, text: "x\n\n", want: "a\nx\n\nb\n"},
		{note: "the end", file: "a\nb\n", line: 2, text: "x", want: "a\nb\nx\n"},
		{note: "the end without a line break", file: "a\nb", line: 2, text: "x\n", want: "a\nb\nx"},
		{note: "in front of that", file: "a\nb", line: 1, text: "x\n", want: "a\nx\nb"},
		{note: "one line without a line break", file: "a", line: 1, text: "x", want: "a\nx"},
		{note: "empty", file: "", line: 0, text: "x", want: "x\n"},
		{note: "CRLF", file: "a\r\nb\r\n", line: 1, text: "x\ny\n", want: "a\r\nx\r\ny\r\nb\r\n"},
		{note: "CRLF at the end", file: "a\r\nb", line: 2, text: "x", want: "a\r\nb\r\nx"},
		{note: "BOM", file: "\ufeffa\n", line: 0, text: "x", want: "\ufeffx\na\n"},
		{note: "BOM alone", file: "\ufeff", line: 0, text: "x", want: "\ufeffx\n"},
		{note: "Latin-1", file: "\xe4\nb\n", line: 1, text: "ö", want: "\xe4\n\xf6\nb\n"},
		{note: "too far", file: "a\nb\n", line: 3, text: "x", code: "invalid_input"},
		{note: "before the beginning", file: "a\n", line: -1, text: "x", code: "invalid_input"},
		{note: "not text", file: "a\x00\x01\x02", line: 0, text: "x", code: "binary_file"},
	} {
		t.Run(c.note, func(t *testing.T) {
			s := newSession(t)
			path := s.put(t, "file", []byte(c.file))
			_, out, text, err := s.call(t, edit.Tool(), insertion{FilePath: path, NewString: c.text, InsertLine: c.line})
			if tooltest.Code(err) != c.code {
				t.Fatalf("%v, want %s", err, c.code)
			}
			if c.code != "" {
				c.want = c.file
			} else if out.Replacements != 1 || !strings.Contains(text, "one place was changed") {
				t.Errorf("%+v\n%s", out, text)
			}
			if now, err := os.ReadFile(path); string(now) != c.want || err != nil {
				t.Errorf("the file is %q, %v, want %q", now, err, c.want)
			}
		})
	}
}

// TestInsertionsNeedTheFile: without having read the file as it is now, a line's number means nothing.
func TestInsertionsNeedTheFile(t *testing.T) {
	s := newSession(t)
	unread, stale := s.Put("unread", "a\n"), s.put(t, "stale", []byte("a\n"))
	if err := os.WriteFile(stale, []byte("0\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   insertion
		code string
	}{
		{insertion{FilePath: unread, NewString: "x"}, "not_read"},
		{insertion{FilePath: stale, NewString: "x", InsertLine: 1}, "stale_file"},
		{insertion{FilePath: unread + "2", NewString: "x"}, "file_not_found"},
		{insertion{FilePath: stale, OldString: "a", NewString: "x"}, "invalid_input"},
	} {
		if _, _, _, err := s.call(t, edit.Tool(), c.in); tooltest.Code(err) != c.code {
			t.Errorf("%+v: %v, want %s", c.in, err, c.code)
		}
	}
}
