package edit_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/tooltest"
)

// Each edit of testdata/edits.jsonl does to a text in an editor what it does to a file, and the disk stays as it is.
func TestEditsInAnEditor(t *testing.T) {
	f, err := os.Open("testdata/edits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Note, Old, New, Error string
			File, Expect          *string
			All                   bool `json:"replace_all"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.File == nil {
			continue
		}
		t.Run(c.Note, func(t *testing.T) {
			s := newSession(t)
			e := s.Editor()
			path := s.Put("file", "disk")
			e.Type(path, *c.File)
			s.Read(path)
			_, out, text, err := s.call(t, edit.Tool(), one{path, c.Old, c.New, c.All})
			if tooltest.Code(err) != c.Error {
				t.Fatalf("%v, want %q", err, c.Error)
			}
			want := c.Expect
			if want == nil {
				want = c.File
			}
			if got := e.Text(path); got != *want {
				t.Errorf("got  %q\nwant %q", got, *want)
			}
			if err == nil && (!out.InEditor || !strings.Contains(text, "open in the user's editor")) {
				t.Errorf("nothing says where the change is: %+v\n%s", out, text)
			}
			if disk, err := os.ReadFile(path); err != nil || string(disk) != "disk" {
				t.Errorf("the disk holds %q (%v)", disk, err)
			}
		})
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

func TestEditCreatesInAnEditor(t *testing.T) {
	s := newSession(t)
	e := s.Editor()
	path := filepath.Join(s.Root, "new/file")
	e.Type(path, "")
	if _, out, _, err := s.call(t, edit.Tool(), one{FilePath: path, NewString: "made\n"}); err != nil || out.Created || e.Text(path) != "made\n" {
		t.Errorf("%v, %+v, the editor holds %q", err, out, e.Text(path))
	}
	_, _, err := s.Call(edit.MultiTool(), map[string]any{"file_path": path, "edits": []edit.Replacement{{OldString: "made", NewString: "a"}, {OldString: "a\n", NewString: "b\n"}}})
	if err != nil || e.Text(path) != "b\n" {
		t.Errorf("%v, the editor holds %q", err, e.Text(path))
	}
	if list, err := os.ReadDir(s.Root); err != nil || len(list) != 0 {
		t.Errorf("the disk holds %v (%v)", list, err)
	}
}

// What a user types meanwhile costs nothing: an edit that still fits is made in it and says what had changed, one that
// does not, or that the editor has no part in yet, is refused.
func TestEditBesideAUser(t *testing.T) {
	s := newSession(t)
	e := s.Editor()
	path := s.Put("file", "one\ntwo\n")
	s.Read(path)
	e.Type(path, "one\ntwo\nthree\n")
	_, out, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "two", NewString: "2"})
	if err != nil || e.Text(path) != "one\n2\nthree\n" || !strings.Contains(out.Drift, "+three") {
		t.Errorf("%v, the editor holds %q, drift:\n%s", err, e.Text(path), out.Drift)
	}
	e.Type(path, "else\n")
	if _, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "three", NewString: "3"}); tooltest.Code(err) != "stale_file" {
		t.Errorf("%v, want stale_file", err)
	}
	s.Read(path)
	e.Hold(path, "else and more\n")
	input, err := json.Marshal(one{FilePath: path, OldString: "else", NewString: "other"})
	if err != nil {
		t.Fatal(err)
	}
	action, err := edit.Tool().Parse(input)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.Run(t.Context(), s.Env()); tooltest.Code(err) != "stale_file" || e.Text(path) != "else and more\n" {
		t.Errorf("%v, the editor holds %q", err, e.Text(path))
	}
}

// Random edits of random texts come to the same in an editor as on the disk.
func TestEditorAgainstDisk(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "ab", " ", "\t", "\n", "\r\n", "é", "日本", "😀", "“x”", "\"x\"", "\ufeff"})
		some := func(name string, most int) string {
			return strings.Join(rapid.SliceOfN(part, 0, most).Draw(r, name), "")
		}
		disk, beside := newSession(t), newSession(t)
		e := beside.Editor()
		text := some("text", 20)
		onDisk, inEditor := disk.Put("file", text), beside.Put("file", "disk")
		e.Type(inEditor, text)
		for range rapid.IntRange(1, 4).Draw(r, "edits") {
			disk.Read(onDisk)
			beside.Read(inEditor)
			in := one{OldString: some("old", 3), NewString: some("new", 3), ReplaceAll: rapid.Bool().Draw(r, "all")}
			here, there := in, in
			here.FilePath, there.FilePath = onDisk, inEditor
			_, want, _, wantErr := disk.call(t, edit.Tool(), here)
			_, got, _, gotErr := beside.call(t, edit.Tool(), there)
			holds, err := os.ReadFile(onDisk)
			if err != nil {
				r.Fatal(err)
			}
			if tooltest.Code(wantErr) != tooltest.Code(gotErr) || string(holds) != e.Text(inEditor) ||
				strings.ReplaceAll(want.Diff, onDisk, inEditor) != got.Diff || want.Replacements != got.Replacements {
				r.Fatalf("%+v\non the disk   %v %q\n%s\nin the editor %v %q\n%s", in, wantErr, holds, want.Diff, gotErr, e.Text(inEditor), got.Diff)
			}
		}
	})
}
