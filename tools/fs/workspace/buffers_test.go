package workspace_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// edited is a site with an editor beside it.
func edited(t *testing.T) (*site, *tooltest.Editor) {
	t.Helper()
	s, e := newSite(t), tooltest.NewEditor(t)
	s.memory.SetBuffers(e.Buffers)
	return s, e
}

// testdata/buffers.txt says how it is read.
func TestBuffers(t *testing.T) {
	data, err := os.ReadFile("testdata/buffers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "\n\n# ")[1:] {
		note, lines, _ := strings.Cut(part, "\n")
		t.Run(note, func(t *testing.T) {
			s, e := edited(t)
			for line := range strings.Lines(lines) {
				order, want, asked := strings.Cut(strings.TrimSpace(line), "=>")
				if order == "" {
					continue
				}
				got := follow(t, s, e, strings.Fields(order))
				if want = strings.TrimSpace(want); got != want && (asked || got != "") {
					t.Errorf("%s: %q, want %q", strings.TrimSpace(order), got, want)
				}
			}
		})
	}
}

// follow does what one line of a script says, and gives what comes of it.
func follow(t *testing.T, s *site, e *tooltest.Editor, order []string) string {
	t.Helper()
	order = append(order, "", "", "")
	text := func(n int) string {
		plain, err := strconv.Unquote(`"` + order[n] + `"`)
		if err != nil {
			t.Fatal(err)
		}
		return plain
	}
	file := filepath.Join(s.root, order[1])
	switch order[0] {
	case "disk":
		if order[2] == "-" {
			return failed(os.Remove(file))
		}
		put(t, file, text(2))
	case "open":
		e.Type(file, text(2))
	case "type":
		e.Hold(file, text(2))
	case "tell":
		e.Tell(file)
	case "say":
		version, err := strconv.ParseInt(order[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return failed(e.Buffers.Changed(file, file, version, []byte(text(3))))
	case "save":
		e.Save(file)
	case "close":
		e.Close(file)
	case "read":
		return readWhole(s, file)
	case "seek":
		return readOpened(s, file)
	case "edit":
		return changeRead(t, s, file, text(2))
	case "editor":
		return e.Text(file)
	case "file":
		data, err := os.ReadFile(file)
		if err != nil {
			return "-"
		}
		return string(data)
	case "unsaved", "conflicts":
		return strings.Join(told(s, e, order[0]), " ")
	default:
		t.Fatalf("%q is no order", order[0])
	}
	return ""
}

func failed(err error) string {
	if err == nil {
		return ""
	}
	return "!" + code(err)
}

// readWhole looks at a file and has the session know it.
func readWhole(s *site, file string) string {
	v := s.view()
	c, err := v.Look(file)
	if err != nil {
		return failed(err)
	}
	v.Record(c.Path.Real, c.State)
	s.memory.Merge(v.ReadState())
	return string(c.Data)
}

func readOpened(s *site, file string) string {
	f, err := s.view().Open(file)
	if err != nil {
		return failed(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil || f.Info.Size() != int64(len(data)) || !f.Path.Exists {
		return fmt.Sprintf("%v, facts %v, path %+v", err, f.Info, f.Path)
	}
	return string(data)
}

// changeRead changes a file that the session knows, and has it know the change.
func changeRead(t *testing.T, s *site, file, text string) string {
	v := s.view()
	w, err := v.Change(t.Context(), file, func(c *workspace.Content) (workspace.Update, error) {
		return workspace.Update{Data: []byte(text)}, c.Current()
	})
	if err != nil {
		return failed(err)
	}
	s.memory.Merge(v.ReadState())
	if known, _ := s.memory.Lookup(w.Path.Real); known.Hash != workspace.Hash([]byte(text)) || known.Size != int64(len(text)) {
		return fmt.Sprintf("the session knows %+v", known)
	}
	return text
}

// told returns what Unsaved or Conflicts lists.
func told(s *site, e *tooltest.Editor, what string) (list []string) {
	if what == "unsaved" {
		for _, b := range e.Buffers.Unsaved() {
			list = append(list, strings.TrimPrefix(b.Path, s.root+"/"))
		}
		return list
	}
	for _, c := range e.Buffers.Conflicts() {
		name := strings.TrimPrefix(c.Path, s.root+"/")
		if c.Unsaved {
			name += "*"
		}
		if c.Gone {
			name += "-"
		}
		list = append(list, name)
	}
	return list
}
