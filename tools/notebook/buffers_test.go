package notebook_test

import (
	"os"
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

// A notebook that an editor holds open is changed there.
func TestEditInAnEditor(t *testing.T) {
	s := newSession(t)
	e := s.Editor()
	path := s.Put("book.ipynb", "disk")
	e.Type(path, jupyter(intro, empty))
	if _, _, _, err := s.edit(t, call{Path: path, Cell: "empty", Source: "x"}); tooltest.Code(err) != "not_read" {
		t.Errorf("%v, want not_read", err)
	}
	s.Read(path)
	want := newSession(t)
	saved := want.put(jupyter(intro, empty))
	if _, _, _, err := want.edit(t, call{Path: saved, Cell: "empty", Source: "x"}); err != nil {
		t.Fatal(err)
	}
	_, out, _, err := s.edit(t, call{Path: path, Cell: "empty", Source: "x"})
	held, wrong := os.ReadFile(saved)
	if err != nil || wrong != nil || out.Unchanged || e.Text(path) != string(held) {
		t.Errorf("%v, the editor holds %q, want %q (%v)", err, e.Text(path), held, wrong)
	}
	if disk, err := os.ReadFile(path); err != nil || string(disk) != "disk" {
		t.Errorf("the disk holds %q (%v)", disk, err)
	}
}
