package grep

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// This file is about files that an editor holds open.

// edited is an environment of a session with an editor; Box is that of box.
func edited(t *testing.T, dir string, box *tools.Env) (*tools.Env, *tooltest.Files, *tooltest.Editor) {
	t.Helper()
	files := tooltest.NewFiles(t, dir)
	e := files.Editor()
	env := files.Env()
	env.Box = box.Box
	return env, files, e
}

func TestBuffersAreSearched(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		env, files, e := edited(t, dir, env)
		for _, name := range []string{"a.go", "b.go", "lost.go", "sub/c.txt", "ignored/d.go", "link-target"} {
			files.Put(name, "disk\nneedle on the disk\n")
		}
		files.Put(".ignore", "ignored\nsub/*.tmp\n")
		if err := os.Symlink("link-target", files.Root+"/link"); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"a.go": "typed\n\nneedle typed", "b.go": "nothing", "sub/c.txt": "zero\x00needle\n", "ignored/d.go": "needle typed", "ignored/new.go": "needle typed",
			"new/deep.go": "needle typed\r\nneedle too\r\n", "sub/x.tmp": "needle typed", ".git/new": "needle typed", "lost.go": "needle\nneedle\n", "../outside": "needle typed",
		} {
			e.Type(filepath.Join(files.Root, name), text)
		}
		for _, c := range []struct {
			input string
			want  []string // lines of the text
			left  LeftOut
		}{
			{
				`{"pattern": "needle", "output_mode": "content"}`,
				[]string{"a.go:3:needle typed", "link-target:2:needle on the disk", "lost.go:1:needle", "lost.go:2:needle", "new/deep.go:1:needle typed", "new/deep.go:2:needle too"},
				LeftOut{IgnoredDirectories: 1, IgnoredFiles: 1, Binary: 1, Links: 1},
			},
			{`{"pattern": "needle", "output_mode": "count", "glob": "*.go"}`, []string{"a.go:1", "lost.go:2", "new/deep.go:2"}, LeftOut{IgnoredDirectories: 1}},
			{`{"pattern": "n[[:alpha:]]+le.too", "output_mode": "count", "type": "go"}`, []string{"new/deep.go:1"}, LeftOut{IgnoredDirectories: 1}},
			{`{"pattern": "typed.*needle", "multiline": true, "output_mode": "count"}`, []string{"a.go:1", "new/deep.go:1"}, LeftOut{IgnoredDirectories: 1, IgnoredFiles: 1, Binary: 1, Links: 1}},
			{`{"pattern": "needle", "output_mode": "content", "path": "a.go"}`, []string{"a.go:3:needle typed"}, LeftOut{}},
			{`{"pattern": "needle", "output_mode": "content", "path": "link"}`, []string{"link:2:needle on the disk"}, LeftOut{}},
			{`{"pattern": "needle", "output_mode": "content", "path": "sub/x.tmp"}`, []string{"sub/x.tmp:1:needle typed"}, LeftOut{}},
			{`{"pattern": "needle", "output_mode": "content", "path": "ignored"}`, []string{"ignored/d.go:1:needle typed", "ignored/new.go:1:needle typed"}, LeftOut{}},
			{`{"pattern": "needle", "output_mode": "content", "head_limit": 2, "offset": 3}`, []string{"lost.go:2:needle", "new/deep.go:1:needle typed"}, LeftOut{IgnoredDirectories: 1, IgnoredFiles: 1, Binary: 1, Links: 1}},
		} {
			text, found, err := call(context.Background(), tool, env, c.input)
			entries, _, _ := strings.Cut(text, "\n\n")
			if found.Shown == 0 {
				entries = ""
			}
			got := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(entries, files.Root+"/", ""), " ", "_"))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "_", " ")
			}
			if diff := cmp.Diff(c.want, got, cmp.Transformer("none", func(s []string) []string { return slices.Concat(s, []string{}) })) + cmp.Diff(c.left, found.LeftOut); diff != "" || err != nil || found.Incomplete {
				t.Errorf("%s: %v, want (-), got (+):\n%s\n%s", c.input, err, diff, text)
			}
		}
		_, found, err := call(context.Background(), tool, env, `{"pattern": "needle"}`)
		if err != nil || len(found.Files) != 4 || found.Files[3] != files.Root+"/link-target" {
			t.Errorf("%v, want what was typed first, and the file on the disk last: %v", err, found.Files)
		}
	})
}

// What an editor has and nobody could take is not passed over in silence, nor is the disk searched for it.
func TestUnknownBufferMakesASearchIncomplete(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		env, files, e := edited(t, dir, env)
		file := files.Put("large", "needle\n")
		if err := e.Buffers.Changed(file, file, 1, make([]byte, workspace.MaxBuffer+1)); tooltest.Code(err) != "buffer_too_large" {
			t.Fatal(err)
		}
		for _, path := range []string{".", "large"} {
			text, found, err := call(context.Background(), tool, env, `{"pattern": "needle", "path": "`+path+`"}`)
			if err != nil || !found.Incomplete || len(found.Files) != 0 || !strings.Contains(text, "large is open in an editor") {
				t.Errorf("%v:\n%s", err, text)
			}
		}
	})
}

// What a rule denies reading is not searched in an editor either.
func TestDeniedBuffersAreNotSearched(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, box *tools.Env, dir string) {
		_, files, e := edited(t, dir, box)
		files.Put("seen", "needle\n")
		files.Put("secret/a", "x\n")
		files.Bar("secret", "new-secret")
		for _, name := range []string{"secret/a", "secret/new", "new-secret/x", "other/new"} {
			e.Type(filepath.Join(files.Root, name), "needle\n")
		}
		env := files.Env()
		env.Box = box.Box
		text, found, err := call(context.Background(), tool, env, `{"pattern": "needle", "output_mode": "count"}`)
		if err != nil || !slices.Equal(found.Files, []string{files.Root + "/other/new", files.Root + "/seen"}) || found.LeftOut.DeniedDirectories != 2 || found.LeftOut.DeniedFiles != 0 {
			t.Errorf("%v, left out %+v:\n%s", err, found.LeftOut, text)
		}
		for _, path := range []string{"secret", "secret/a", "secret/new", "new-secret/x"} {
			if _, _, err := call(context.Background(), tool, env, `{"pattern": "needle", "path": "`+path+`"}`); tooltest.Code(err) != "rule_denied" {
				t.Errorf("in %s: %v, want rule_denied", path, err)
			}
		}
	})
}

// To search what an editor holds is to search a tree in which it has been saved.
func TestBuffersAreSearchedAsIfSaved(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, box *tools.Env, _ string) {
		rounds := 60
		if testing.Short() {
			rounds = 20
		}
		for seed := range rounds {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			env, files, e := edited(t, t.TempDir(), box)
			saved := tooltest.NewFiles(t, t.TempDir())
			for _, name := range []string{"a", "b.go", "d/a", "d/b.go", "d/e/f", "x.tmp", "skip/a"} {
				text := someText(r)
				if r.IntN(8) == 0 && filepath.Ext(name) == "" { // of others rg is not told before it has found something
					text += "\x00"
				}
				switch r.IntN(3) {
				case 0:
					files.Put(name, text)
				case 1:
					files.Put(name, someText(r))
					fallthrough
				default:
					e.Type(filepath.Join(files.Root, name), text)
				}
				saved.Put(name, text)
			}
			for _, f := range []*tooltest.Files{files, saved} {
				f.Put(".gitignore", "*.tmp\nskip/\n")
				f.Put(".git/HEAD", "")
				f.Put("d/always", "")
			}
			in := someInput(r)
			if in.OutputMode == modeFiles {
				in.OutputMode = modeCount // the newest first would be others
			}
			limit := int64(r.IntN(6))
			in.HeadLimit, in.Offset, in.Path = &limit, int64(r.IntN(3)), []string{".", "d", "d/b.go"}[r.IntN(3)]
			in.Glob = []string{"", "", "*.go", "!d/e/**"}[r.IntN(4)]
			input, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			there := saved.Env()
			there.Box = box.Box
			want, wantFound, wantErr := call(context.Background(), tool, there, strings.ReplaceAll(string(input), saved.Root, files.Root))
			got, gotFound, gotErr := call(context.Background(), tool, env, string(input))
			same := cmp.Transformer("path", func(s string) string { return strings.ReplaceAll(s, saved.Root, files.Root) })
			if diff := cmp.Diff(want, got, same) + cmp.Diff(wantFound, gotFound, same); diff != "" || tooltest.Code(wantErr) != tooltest.Code(gotErr) {
				t.Fatalf("seed %d: %s\nsaved (-) and in the editor (+), errors %v and %v:\n%s", seed, input, wantErr, gotErr, diff)
			}
		}
	})
}

// A file that is merely open is as old as on the disk, one that was typed in is new.
func TestBuffersAreOrderedByTheirTime(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, box *tools.Env, dir string) {
		env, files, e := edited(t, dir, box)
		for i, name := range []string{"open", "closed", "typed"} {
			at := time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
			if name == "typed" {
				at = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
			}
			if err := os.Chtimes(files.Put(name, "needle\n"), at, at); err != nil {
				t.Fatal(err)
			}
		}
		e.Type(files.Root+"/open", "needle\n")
		e.Type(files.Root+"/typed", "needle typed\n")
		text, found, err := call(context.Background(), tool, env, `{"pattern": "needle"}`)
		if want := []string{files.Root + "/typed", files.Root + "/closed", files.Root + "/open"}; err != nil || !slices.Equal(found.Files, want) {
			t.Errorf("%v, want %v:\n%s", err, want, text)
		}
	})
}
