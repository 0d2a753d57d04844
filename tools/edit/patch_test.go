package edit_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

// patch parses, checks and runs ApplyPatch.
func (s *session) patch(text string) (tools.Preview, tools.Result, error) {
	return s.Call(edit.PatchTool(), map[string]string{"patch": text})
}

// tree returns the files of the root, and its empty directories with a slash at the end.
func (s *session) tree(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(s.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(s.Root, path)
		if entry.IsDir() {
			if list, _ := os.ReadDir(path); len(list) == 0 && name != "." {
				found[name+"/"] = ""
			}
			return nil
		}
		data, err := os.ReadFile(path)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// below returns the files of an archive in one of its folders.
func below(a *txtar.Archive, folder string) map[string]string {
	found := map[string]string{}
	for _, f := range a.Files {
		if name, is := strings.CutPrefix(f.Name, folder+"/"); is {
			found[name] = string(f.Data)
		}
	}
	return found
}

// Each file of testdata/patches is a patch with the files before and after it, or with the code of its error and what the
// message has; then all files are as before.
func TestPatches(t *testing.T) {
	files, err := filepath.Glob("testdata/patches/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d patches, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			s := newSession(t)
			for name, content := range below(archive, "before") {
				s.Put(name, content)
			}
			preview, result, err := s.patch(parts["patch"])
			want := below(archive, "after")
			if failing := strings.Split(strings.TrimSpace(parts["error"]), "\n"); failing[0] != "" {
				want = below(archive, "before")
				if tooltest.Code(err) != failing[0] || fault.From(err).Field != "/patch" {
					t.Fatalf("%v (%s), want %s", err, fault.From(err).Field, failing[0])
				}
				for _, part := range failing[1:] {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in the message:\n%v", part, err)
					}
				}
			} else if err != nil {
				t.Fatal(err)
			} else if !strings.Contains(result.Content[0].Text, strings.TrimSpace(parts["text"])) || preview.Diff == "" && len(want) > 0 && want["f"] != "" {
				t.Errorf("the result is %q with the diff %q", result.Content[0].Text, preview.Diff)
			}
			if got := s.tree(t); !maps.Equal(got, want) {
				t.Errorf("the files are %q, want %q", got, want)
			}
		})
	}
}

func inPatch(parts string) string {
	return "*** Begin Patch\n" + strings.TrimSpace(parts) + "\n*** End Patch"
}

// What the text does not say stays: encoding, byte order mark, line endings, mode.
func TestPatchKeepsTheFilesOwnForm(t *testing.T) {
	utf16 := func(s string) string {
		var b bytes.Buffer
		b.WriteString("\xff\xfe")
		for _, r := range s {
			b.Write([]byte{byte(r), byte(r >> 8)})
		}
		return b.String()
	}
	for _, c := range []struct{ name, file, want, encoding, ending string }{
		{"CRLF", "a\r\nx\r\nb\r\n", "a\r\ny\r\nz\r\nb\r\n", "utf-8", "crlf"},
		{"mixed, as the line that goes", "a\nx\r\nb\n", "a\ny\r\nz\r\nb\n", "utf-8", "mixed"},
		{"byte order mark", "\ufeffx\nb\n", "\ufeffy\nz\nb\n", "utf-8", "lf"},
		{"UTF-16", utf16("a\nx\n"), utf16("a\ny\nz\n"), "utf-16le", "lf"},
		{"no break at the end", "a\nx", "a\ny\nz", "utf-8", "lf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			path := s.Put("file", c.file)
			if err := os.Chmod(path, 0o750); err != nil {
				t.Fatal(err)
			}
			_, result, err := s.patch(inPatch("*** Update File: file\n*** Move to: d/file\n@@\n-x\n+y\n+z"))
			if err != nil {
				t.Fatal(err)
			}
			moved := filepath.Join(s.Root, "d/file")
			data, err := os.ReadFile(moved)
			info, _ := os.Stat(moved)
			if err != nil || string(data) != c.want || info.Mode() != 0o750 {
				t.Errorf("%q, %v, %v; want %q", data, info.Mode(), err, c.want)
			}
			out := result.Structured.(edit.Patched).Files[0]
			if out.Encoding != c.encoding || out.LineEnding != c.ending || out.Action != "moved" || out.FilePath != moved || out.MovedFrom != path || !strings.Contains(out.Diff, "+z") {
				t.Errorf("%+v", out)
			}
		})
	}
}

// After a patch the session knows the files as after an Edit, also one that it had not read, and one that was moved.
func TestEditAfterPatch(t *testing.T) {
	s := newSession(t)
	s.Put("a", "one\ntwo\n")
	s.put(t, "b", []byte("one\ntwo\n"))
	if _, _, err := s.patch(inPatch("*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n*** Move to: c\n@@\n-one\n+1\n*** Add File: d\n+1\n+two")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "c", "d"} {
		_, _, _, err := s.call(t, edit.Tool(), one{FilePath: filepath.Join(s.Root, name), OldString: "two", NewString: "2"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Root, "c"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.call(t, edit.Tool(), one{FilePath: filepath.Join(s.Root, "c"), OldString: "two", NewString: "2"}); tooltest.Code(err) != "stale_file" {
		t.Errorf("changed by another program: %v", err)
	}
	whole := func(name string) (bool, int) {
		known, _ := s.Known(filepath.Join(s.Root, name))
		return known.Whole, known.Unseen()
	}
	if w, unseen := whole("a"); w || unseen != 0 { // two lines: one of the patch, one of the edit
		t.Errorf("of a the session knows the whole: %v, and has not seen %d lines", w, unseen)
	}
}

// Both names of a move are among the effects.
func TestPatchDeclaresEveryName(t *testing.T) {
	action, err := edit.PatchTool().Parse([]byte(`{"patch":"*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Delete File: /c\n*** Add File: d\n+x\n*** End Patch"}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range action.Effects().Writes {
		names = append(names, p.Name)
	}
	if want := []string{"a", "b", "/c", "d"}; !slices.Equal(names, want) || len(action.Effects().Reads) != 4 {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestPatchAndLinks(t *testing.T) {
	s := newSession(t)
	path := s.Put("file", "x\n")
	if err := os.Symlink("file", s.Root+"/soft"); err != nil {
		t.Fatal(err)
	}
	for _, parts := range []string{"*** Delete File: soft", "*** Update File: soft\n*** Move to: other"} {
		if _, _, err := s.patch(inPatch(parts)); tooltest.Code(err) != "not_regular" {
			t.Errorf("%s: %v", parts, err)
		}
	}
	if _, _, err := s.patch(inPatch("*** Update File: soft\n@@\n-x\n+y\n*** Delete File: file")); tooltest.Code(err) != "same_file" {
		t.Errorf("by two names: %v", err)
	}
	if _, _, err := s.patch(inPatch("*** Update File: soft\n@@\n-x\n+y")); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "y\n" {
		t.Errorf("%q", data)
	}
	if err := os.Link(path, s.Root+"/hard"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.patch(inPatch("*** Update File: hard\n@@\n-y\n+z\n*** Delete File: file")); tooltest.Code(err) != "same_file" {
		t.Errorf("by two hard links: %v", err)
	}
	preview, result, err := s.patch(inPatch("*** Update File: hard\n@@\n-y\n+z\n*** Add File: n\n+n"))
	if err != nil || !strings.Contains(preview.Ask, "2 hard links") || !strings.Contains(result.Content[0].Text, preview.Ask) {
		t.Errorf("%v, asks %q", err, preview.Ask)
	}
	if data, _ := os.ReadFile(path); string(data) != "z\n" {
		t.Errorf("%q", data)
	}
}

func TestPatchDenied(t *testing.T) {
	s := newSession(t)
	s.Put("a", "x\n")
	s.Put("secret", "x\n")
	s.Bar("secret")
	_, _, err := s.patch(inPatch("*** Delete File: a\n*** Update File: secret\n@@\n-x\n+y"))
	if tooltest.Code(err) != "rule_denied" || !strings.Contains(err.Error(), tooltest.Rule) {
		t.Error(err)
	}
	if _, _, err := s.patch(inPatch("*** Add File: /elsewhere/x\n+x")); tooltest.Code(err) != "undeclared" {
		t.Error(err)
	}
	if got := s.tree(t); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A file that an editor holds open is changed there, and neither moved nor deleted.
func TestPatchInEditor(t *testing.T) {
	s := newSession(t)
	path, other := s.Put("a", "x\n"), s.Put("b", "x\n")
	e := s.Editor()
	e.Type(path, "unsaved\nx\n")
	_, result, err := s.patch(inPatch("*** Update File: b\n@@\n-x\n+y\n*** Update File: a\n@@\n unsaved\n-x\n+y"))
	if err != nil || e.Text(path) != "unsaved\ny\n" || !strings.Contains(result.Content[0].Text, "open in the user's editor") || !result.Structured.(edit.Patched).Files[1].InEditor {
		t.Errorf("%v, %q, %+v", err, e.Text(path), result)
	}
	if data, _ := os.ReadFile(other); string(data) != "y\n" {
		t.Errorf("%q", data)
	}
	for _, parts := range []string{"*** Delete File: a", "*** Update File: a\n*** Move to: c", "*** Delete File: b\n*** Update File: a\n*** Move to: c"} {
		if _, _, err := s.patch(inPatch(parts)); tooltest.Code(err) != "buffer_open" {
			t.Errorf("%s: %v", parts, err)
		}
	}
	// The editor refuses at the last moment: the others are as before.
	e.Append(path, "typed\n")
	action, err := edit.PatchTool().Parse([]byte(`{"patch":"*** Begin Patch\n*** Update File: b\n@@\n-y\n+z\n*** Update File: a\n@@\n-y\n+z\n*** End Patch"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.Run(t.Context(), s.Env()); tooltest.Code(err) != "stale_file" {
		t.Error(err)
	}
	if got := s.tree(t); got["b"] != "y\n" || got["a"] != "x\n" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A place that cannot be written is found before anything changes.
func TestPatchWhereNothingMayBeWritten(t *testing.T) {
	s := newSession(t)
	s.Put("a", "x\n")
	s.Put("d/b", "x\n")
	s.Put("e", "x\n")
	refused := map[string]string{"*** Add File: a/c\n+x": "not_a_directory"}
	if os.Geteuid() != 0 { // who may write everywhere
		for _, parts := range []string{"*** Delete File: d/b", "*** Add File: d/c\n+x", "*** Update File: d/b\n*** Move to: b"} {
			refused[parts] = "permission_denied"
		}
	}
	if err := os.Chmod(s.Root+"/d", 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(s.Root+"/d", 0o755) })
	before := s.tree(t)
	for parts, code := range refused {
		input, _ := json.Marshal(map[string]string{"patch": inPatch("*** Add File: n/new\n+x\n*** Update File: e\n@@\n-x\n+y\n" + parts)})
		action, err := edit.PatchTool().Parse(input)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := action.Run(t.Context(), s.Env()); tooltest.Code(err) != code {
			t.Errorf("%s: %v", parts, err)
		}
	}
	if got := s.tree(t); !maps.Equal(got, before) {
		t.Errorf("%q", got)
	}
	if _, _, err := s.patch(inPatch("*** Update File: a\n@@\n-x\n+y\n*** Update File: d/b\n@@\n-x\n+y")); err != nil {
		t.Errorf("a file in such a directory is written in place: %v", err)
	}
}
