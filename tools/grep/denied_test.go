package grep

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/tooltest"
)

// denied is a tree in which rules deny some files, and an environment for both engines.
func denied(t *testing.T, dir string, runner *tools.Env) (*tooltest.Files, *tools.Env) {
	t.Helper()
	files := tooltest.NewFiles(t, dir)
	for _, name := range []string{"seen", ".env", "sub/.hidden/deep", "sub/secret/a", "sub/secret/b", "sub/seen"} {
		files.Put(name, "needle in "+name+"\n")
	}
	for link, target := range map[string]string{"to-env": ".env", "to-seen": "seen", "by-name": "sub", "sub/to-secret": "secret"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	files.Bar(".env", "sub/secret", "sub/.hidden", "to-seen")
	tooltest.Unopened(t, files.Root+"/.env", files.Root+"/sub/secret", files.Root+"/sub/.hidden")
	env := files.Env()
	env.Box = runner.Box
	return files, env
}

// What a rule denies reading is not searched, by whatever path or link, and is counted; rg is not asked either.
func TestDeniedIsNotSearched(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		files, env := denied(t, dir, env)
		for _, c := range []struct {
			input, note string
			want        []string
		}{
			{`{"pattern": "needle"}`, "Left out: 1 file and 2 directories because a rule denies reading them, 4 symbolic links.", []string{"seen", "sub/seen"}},
			{`{"pattern": "needle", "path": "sub"}`, "Left out: 2 directories because a rule denies reading them, 1 symbolic link.", []string{"sub/seen"}},
			{`{"pattern": "needle", "path": "by-name"}`, "Left out: 2 directories because a rule denies reading them, 1 symbolic link.", []string{"by-name/seen"}},
			{`{"pattern": "needle", "glob": ".env"}`, "Left out: 1 file and 2 directories because a rule denies reading them.", nil},
			{`{"pattern": "n[[:alpha:]]+le", "output_mode": "content", "path": "sub"}`, "", []string{"sub/seen"}},
		} {
			text, found, err := call(context.Background(), tool, env, c.input)
			var got []string
			for _, file := range found.Files {
				got = append(got, strings.TrimPrefix(file, files.Root+"/"))
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) || !strings.Contains(text, c.note) {
				t.Errorf("%s: %v, found %v, want %v and the note %q:\n%s", c.input, err, got, c.want, c.note, text)
			}
		}
		_, found, err := call(context.Background(), tool, env, `{"pattern": "needle"}`)
		if left := found.LeftOut; err != nil || left.DeniedFiles != 1 || left.DeniedDirectories != 2 {
			t.Errorf("%v, structured %+v", err, left)
		}
	})
}

func TestDeniedByItsName(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		_, env = denied(t, dir, env)
		for _, path := range []string{".env", "to-env", "to-seen", "sub/secret", "sub/secret/a", "by-name/to-secret/b", "sub/to-secret", "sub/.hidden"} {
			_, _, err := call(context.Background(), tool, env, `{"pattern": "needle", "path": "`+path+`"}`)
			if tooltest.Code(err) != "rule_denied" || !strings.Contains(err.Error(), tooltest.Rule) {
				t.Errorf("in %s: %v, want rule_denied with the rule", path, err)
			}
		}
	})
}

// A pattern that only rg reads is refused where rg may not be used, and the fault says so.
func TestDeniedLeavesPatternsToRipgrep(t *testing.T) {
	tool, runner := onlyRipgrep(t)
	files := tooltest.NewFiles(t, t.TempDir())
	files.Put("seen", "needle\n")
	input := `{"pattern": "[a-z&&[^x]]eedle"}`
	env := files.Env()
	env.Box = &sandbox.Box{Runner: runner}
	if _, found, err := call(context.Background(), tool, env, input); err != nil || len(found.Files) != 1 {
		t.Errorf("without rules: %v, found %v", err, found.Files)
	}
	files.Bar("elsewhere")
	env = files.Env()
	env.Box = &sandbox.Box{Runner: runner}
	_, _, err := call(context.Background(), tool, env, input)
	if !isFault(err, "bad_pattern") || !strings.Contains(err.Error(), "ripgrep") {
		t.Errorf("with rules: %v", err)
	}
}
