package edit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func TestMultiEdit(t *testing.T) {
	tool := edit.MultiTool()
	for _, c := range []struct {
		name, file, want, code, field string
		edits                         []edit.Replacement
	}{
		{name: "each on the result before", file: "a", want: "c", edits: []edit.Replacement{{OldString: "a", NewString: "b"}, {OldString: "b", NewString: "c"}}},
		{name: "all or nothing", file: "a b", code: "no_match", field: "/edits/1/old_string", edits: []edit.Replacement{{OldString: "a", NewString: "x"}, {OldString: "a", NewString: "y"}}},
		{name: "same", file: "a", code: "same_string", field: "/edits/0/new_string", edits: []edit.Replacement{{OldString: "a", NewString: "a"}, {OldString: "a", NewString: "b"}}},
		{name: "there and back", file: "a", code: "same_string", edits: []edit.Replacement{{OldString: "a", NewString: "b"}, {OldString: "b", NewString: "a"}}},
		{name: "several", file: "a a b", code: "multiple_matches", field: "/edits/1/old_string", edits: []edit.Replacement{{OldString: "b", NewString: "c"}, {OldString: "a", NewString: "x"}}},
		{name: "empty later", file: "a", code: "invalid_input", field: "/edits/1/old_string", edits: []edit.Replacement{{OldString: "a", NewString: "b"}, {NewString: "x"}}},
		{name: "create", want: "made well", edits: []edit.Replacement{{NewString: "made"}, {OldString: "made", NewString: "made well"}}},
		{name: "none", file: "a", code: "invalid_input", field: "/edits", edits: []edit.Replacement{}},
		{name: "lossy", file: "caf\xe9", code: "lossy_encoding", field: "/edits/1/new_string", edits: []edit.Replacement{{OldString: "c", NewString: "k"}, {OldString: "f", NewString: "→"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			path := filepath.Join(s.Root, "file")
			if c.file != "" {
				s.put(t, "file", []byte(c.file))
			}
			_, _, _, err := s.call(t, tool, map[string]any{"file_path": path, "edits": c.edits})
			if tooltest.Code(err) != c.code || err != nil && c.field != "" && fault.From(err).Field != c.field {
				t.Fatalf("%v at %q, want %q at %q", err, fault.From(err).Field, c.code, c.field)
			}
			want := c.want
			if c.code != "" {
				want = c.file
			}
			if got, _ := os.ReadFile(path); string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Two editors of one file, each adding lines of its own: none is lost.
func TestConcurrentEditorsLoseNothing(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("A\nB\n"))
	tool := edit.Tool()
	var both sync.WaitGroup
	for _, mark := range []string{"A\n", "B\n"} {
		own := s.Another()
		own.Read(path)
		both.Go(func() {
			for i := range 20 {
				data, _ := json.Marshal(one{FilePath: path, OldString: mark, NewString: fmt.Sprintf("%s%s %d\n", mark, mark[:1], i)})
				action, err := tool.Parse(data)
				if err != nil {
					t.Error(err)
					return
				}
				env := own.Env()
				if _, err := action.Run(context.Background(), env); err != nil {
					t.Errorf("%s %d: %v", mark, i, err)
				}
				own.Learn(env.Files)
			}
		})
	}
	both.Wait()
	got, err := os.ReadFile(path)
	if err != nil || strings.Count(string(got), "\n") != 42 {
		t.Errorf("%v: %d lines\n%s", err, strings.Count(string(got), "\n"), got)
	}
}
