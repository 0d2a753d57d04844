// Undoing as a whole: whatever calls have done, undoing all of it gives what was there before.

package daemon_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// picture describes everything below a directory: kinds, modes, contents, targets, and which names are of one file.
func picture(t testing.TB, root string) map[string]string {
	t.Helper()
	told, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case info.IsDir():
			told[rel] = "directory " + info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			told[rel] = "link to " + target
			return err
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			told[rel] = fmt.Sprintf("file %s %q", info.Mode(), data)
			if sys := info.Sys().(*syscall.Stat_t); sys.Nlink > 1 {
				if first[sys.Ino] == "" {
					first[sys.Ino] = rel
				}
				told[rel] += " is " + first[sys.Ino]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// someCommand makes up what a command could be, about a handful of names so that they meet.
func someCommand(r *rand.Rand) string {
	file := func() string {
		return []string{"a", "b", "c", "d/a", "d/b", "d/e/a", "f/a", "'f/b c'"}[r.IntN(8)]
	}
	dir := func() string { return []string{"d", "d/e", "f"}[r.IntN(3)] }
	text := fmt.Sprint(r.IntN(100))
	switch r.IntN(16) {
	case 0, 1:
		return "echo " + text + " > " + file()
	case 2, 3:
		return "echo " + text + " >> " + file()
	case 4:
		return "rm " + file()
	case 5, 6:
		return "mv " + file() + " " + file()
	case 7:
		return "mv " + file() + " " + dir()
	case 8:
		return "cp " + file() + " " + file()
	case 9:
		return "ln -s " + []string{"a", "e/a", "none"}[r.IntN(3)] + " " + file() // never out of the root, wherever it is moved to
	case 10:
		return "ln " + file() + " " + file()
	case 11:
		return "chmod " + []string{"600", "644", "755"}[r.IntN(3)] + " " + file()
	case 12, 13:
		return "mkdir -p " + dir()
	case 14:
		return "rm -r " + dir()
	default:
		return "sed -i s/1/one/ " + file()
	}
}

// TestUndoEverything: two hundred edits, writes and commands, then all of it is undone, and the undoing undone.
func TestUndoEverything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := serve(t)
	for _, name := range []string{"a", "b", "d/a", "d/e/a", "f/b c"} {
		h.file(name, "first of "+name+"\r\nline 1\n")
	}
	if err := os.Chmod(filepath.Join(h.root, "b"), 0o750); err != nil {
		t.Fatal(err)
	}
	was := picture(t, h.root)
	c := h.join("s", free(&tooldv1.Options{SiblingAbort: tooldv1.SiblingAbort_SIBLING_ABORT_NONE.Enum()}))
	var done []string
	for n := range 200 {
		id := fmt.Sprint(n)
		switch path := filepath.Join(h.root, []string{"a", "d/b", "g/new"}[r.IntN(3)]); r.IntN(6) {
		case 0:
			c.do(id+"r", "Read", fmt.Sprintf(`{"file_path":%q}`, path))
			c.do(id, "Write", fmt.Sprintf(`{"file_path":%q,"content":"written %d\n"}`, path, r.IntN(9)))
			done = append(done, "Write "+path)
		case 1:
			c.do(id+"r", "Read", fmt.Sprintf(`{"file_path":%q}`, path))
			c.do(id, "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"1","new_string":"one","replace_all":true}`, path))
			done = append(done, "Edit "+path)
		default:
			command := someCommand(r)
			c.bash(id, command)
			done = append(done, command)
		}
	}
	end := picture(t, h.root)
	compare := func(what string, wanted map[string]string) {
		t.Helper()
		if got := picture(t, h.root); !maps.Equal(got, wanted) {
			want(t, got, wanted)
			t.Fatalf("%s after\n%s", what, strings.Join(done, "\n"))
		}
	}
	undone := h.restore(before("s", 1))
	compare("undone", was)
	if len(undone.GetConflicts()) > 0 || len(undone.GetNotRestored()) > 0 {
		t.Errorf("%v", undone)
	}
	for _, told := range h.checkpoints("s")[1:] {
		if !strings.HasSuffix(told, "undone") {
			t.Errorf("%s: want it undone", told)
		}
	}
	h.restore(beforeCall("s", undone.GetToolUseId()))
	compare("brought back", end)
	h.restore(before("s", 1))
	compare("undone again", was)
}

// TestUndoOfALoop: a directory whose place a link to itself has taken comes back with what was in it.
func TestUndoOfALoop(t *testing.T) {
	h := serve(t)
	inside := h.file("d/e/a", "first\n")
	c := h.join("s", free())
	c.bash("loop", "rm -r d/e; ln -s e d/e")
	h.restore(before("s", 1))
	holds(t, inside, "first\n")
}
