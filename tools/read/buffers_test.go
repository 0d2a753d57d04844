package read_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// What an editor holds is read as if it were saved, and the session knows it as that.
func TestReadInAnEditor(t *testing.T) {
	for name, text := range map[string]string{
		"text": "one\r\ntwo é\n", "empty": "", "new": "not on the disk\n", "marked": "\ufeffone\n", "no text": "a\x00b", "long": lines(3_000, "\n"),
		"book.ipynb": `{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": null, "source": "x = 1"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, saved := newSession(t), newSession(t)
			e := s.Editor()
			path := filepath.Join(s.Root, name)
			if name != "new" {
				s.Put(name, "disk\n")
			}
			e.Type(path, text)
			want, wantErr := saved.all(t, call{FilePath: saved.Put(name, text)})
			got, gotErr := s.all(t, call{FilePath: path})
			anywhere := cmp.Transformer("path", func(s string) string { return strings.ReplaceAll(s, saved.Root, filepath.Dir(path)) })
			if diff := cmp.Diff(want, got, anywhere); diff != "" || tooltest.Code(wantErr) != tooltest.Code(gotErr) {
				t.Errorf("saved (-) %v and in the editor (+) %v:\n%s", wantErr, gotErr, diff)
			}
			if known, ok := s.Known(path); gotErr == nil && (!ok || known.Hash != workspace.Hash([]byte(text)) || known.Size != int64(len(text))) {
				t.Errorf("the session knows %+v", known)
			}
		})
	}
}

// Of a text that is too long to be read to its end, another version is another text, whatever their lengths are.
func TestReadPartInAnEditor(t *testing.T) {
	s := newSession(t)
	e := s.Editor()
	path := filepath.Join(s.Root, "long")
	text := strings.Repeat("0123456789abcde\n", 600_000)
	current := func() string {
		c, err := s.View().Look(path)
		if err != nil {
			t.Fatal(err)
		}
		return tooltest.Code(c.Current())
	}
	e.Type(path, text)
	if _, _, err := s.read(t.Context(), t, call{FilePath: path, Limit: 5}); err != nil || current() != "" {
		t.Errorf("%v, then %q", err, current())
	}
	e.Type(path, "X"+text[1:])
	if current() != "stale_file" {
		t.Errorf("another version of the same length: %q, want stale_file", current())
	}
}
