package walk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/tooltest"
)

// A keepCase is one line of testdata/keeps.jsonl: a tree, ignore files among it, and what a walk of dir visits. With
// git set, git agrees.
type keepCase struct {
	Note string            `json:"note"`
	Tree []string          `json:"tree"`
	With map[string]string `json:"with"` // files with content
	Dir  string            `json:"dir"`
	Want []string          `json:"want"`
	Git  bool              `json:"git"`
}

func TestKeeps(t *testing.T) {
	f, err := os.Open("testdata/keeps.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c keepCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(c.Note, func(t *testing.T) { checkKeeps(t, c) })
	}
}

func checkKeeps(t *testing.T, c keepCase) {
	dir, env := t.TempDir(), cleanEnv(t.TempDir())
	files := map[string]string{}
	for _, name := range c.Tree {
		files[name] = ""
	}
	for name, content := range c.With {
		files[name] = content
	}
	plant(t, dir, files)
	got, _ := walked(t, filepath.Join(dir, c.Dir), walk.Options{Top: dir, Environ: env})
	// The ignore files themselves are not what the case is about.
	got = slices.DeleteFunc(got, func(p string) bool { return c.With[filepath.Join(c.Dir, p)] != "" })
	if diff := cmp.Diff(c.Want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("want (-), visited (+):\n%s", diff)
	}
	if !c.Git {
		return
	}
	needGit(t)
	git(t, dir, env, "", "init", "-q")
	kept := slices.DeleteFunc(gitKeeps(t, dir, env), func(p string) bool { return c.With[p] != "" })
	if diff := cmp.Diff(c.Want, kept, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("want (-), git keeps (+):\n%s", diff)
	}
}

// TestUserExcludes takes the user's own ignore file from each place that git takes it from.
func TestUserExcludes(t *testing.T) {
	needGit(t)
	for _, c := range []struct {
		name  string
		files map[string]string // below home
		extra func(home string) []string
	}{
		{"the default place", map[string]string{".config/git/ignore": "*.u\n"}, nil},
		{"another configuration directory", map[string]string{"x/git/ignore": "*.u\n"}, func(home string) []string { return []string{"XDG_CONFIG_HOME=" + home + "/x"} }},
		{"named in home", map[string]string{".gitconfig": "[user]\n\tname = a\n[Core]\n  ExcludesFile = ~/mine ; note\n", "mine": "*.u\n"}, nil},
		{"named with quotes", map[string]string{".gitconfig": "[core] excludesfile = \"~/my ignores\" # note\n", "my ignores": "*.u\n"}, nil},
		{"named in the configuration directory", map[string]string{".config/git/config": "[core]\nexcludesfile=~/mine\n", ".config/git/ignore": "*.k\n", "mine": "*.u\n"}, nil},
		{"in an included file", map[string]string{".gitconfig": "[core]\nexcludesfile=~/kept\n[include]\npath=more\n", "more": "[core]\nexcludesfile=~/mine\n", "kept": "*.k\n", "mine": "*.u\n"}, nil},
		{"after an included file", map[string]string{".gitconfig": "[include]\npath=more\n[core]\nexcludesfile=~/mine\n", "more": "[core]\nexcludesfile=~/kept\n", "kept": "*.k\n", "mine": "*.u\n"}, nil},
		{"on two lines", map[string]string{".gitconfig": "[core]\nexcludesfile=~/mi\\\nne\n", "mine": "*.u\n"}, nil},
		{"by a variable", map[string]string{".gitconfig": "[core]\nexcludesfile=~/kept\n", "config": "[core]\nexcludesfile=~/mine\n", "kept": "*.k\n", "mine": "*.u\n"}, func(home string) []string { return []string{"GIT_CONFIG_GLOBAL=" + home + "/config"} }},
		{"empty", map[string]string{".gitconfig": "[core]\nexcludesfile=\n", ".config/git/ignore": "*.u\n"}, nil},
		{"not there", map[string]string{".gitconfig": "[core]\nexcludesfile=~/gone\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			env := cleanEnv(home)
			if c.extra != nil {
				env = append(env, c.extra(home)...)
			}
			plant(t, home, c.files)
			plant(t, dir, map[string]string{"a.u": "", "b.k": "", "d/c.u": "", "d/.gitignore": "!c.u\n"})
			git(t, dir, env, "", "init", "-q")
			got, _ := walked(t, dir, walk.Options{Environ: env})
			if diff := cmp.Diff(gitKeeps(t, dir, env), got); diff != "" {
				t.Errorf("git keeps (-), visited (+):\n%s", diff)
			}
		})
	}
}

// TestRepositoryExcludes names the ignore file in the repository's configuration instead of the user's.
func TestRepositoryExcludes(t *testing.T) {
	needGit(t)
	for name, settings := range map[string][][]string{
		"below home":                         {{"core.excludesFile", "~/mine"}},
		"empty":                              {{"core.excludesFile", ""}},
		"relative include":                   {{"include.path", "more"}},
		"of the worktree":                    {{"extensions.worktreeConfig", "true"}, {"--worktree", "core.excludesFile", "~/mine"}},
		"of the worktree, which is not read": {{"extensions.worktreeConfig", "true"}, {"--worktree", "core.excludesFile", "~/mine"}, {"extensions.worktreeConfig", "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			env := cleanEnv(home)
			plant(t, home, map[string]string{".config/git/ignore": "*.u\n", "mine": "*.k\n"})
			plant(t, dir, map[string]string{"a.u": "", "b.k": "", "c": ""})
			git(t, dir, env, "", "init", "-q")
			plant(t, dir, map[string]string{".git/more": "[core]\nexcludesfile=~/mine\n"})
			for _, words := range settings {
				git(t, dir, env, "", append([]string{"config"}, words...)...)
			}
			got, _ := walked(t, dir, walk.Options{Environ: env})
			if diff := cmp.Diff(gitKeeps(t, dir, env), got); diff != "" {
				t.Errorf("git keeps (-), visited (+):\n%s", diff)
			}
		})
	}
}

func TestLinkedWorkingTree(t *testing.T) {
	needGit(t)
	dir, env := t.TempDir(), cleanEnv(t.TempDir())
	main, linked := filepath.Join(dir, "main"), filepath.Join(dir, "linked")
	plant(t, main, map[string]string{"x": ""})
	git(t, main, env, "", "init", "-q")
	git(t, main, env, "", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, main, env, "", "worktree", "add", "-q", linked)
	plant(t, dir, map[string]string{"main/.git/info/exclude": "*.e\n", "mine": "*.m\n", "linked/a.e": "", "linked/b.m": "", "linked/sub/c": ""})
	git(t, main, env, "", "config", "core.excludesFile", filepath.Join(dir, "mine"))
	got, _ := walked(t, linked, walk.Options{Environ: env})
	if diff := cmp.Diff(gitKeeps(t, linked, env), got); diff != "" || !slices.Equal(got, []string{"sub/c"}) {
		t.Errorf("visited %q; git keeps (-), visited (+):\n%s", got, diff)
	}
}

func TestTally(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{".gitignore": "*.o\nout*/\n", "a.o": "", "b.o": "", "sub/c.o": "", "keep": ""}
	for i := range 5 {
		files[fmt.Sprintf("out%d/x", i)] = ""
	}
	plant(t, dir, files)
	_, tally := walked(t, dir, walk.Options{})
	want := walk.Tally{IgnoredFiles: 3, IgnoredDirs: 5, Ignored: []string{"out0", "out1", "out2"}}
	if diff := cmp.Diff(want, tally); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if got := strings.Join(tally.LeftOut(), ", "); got != "3 ignored files, 5 ignored directories (out0, out1, out2, ...)" {
		t.Errorf("in words: %s", got)
	}
}

// What Choose denies is neither visited nor opened, whatever ignore files say of it, and is counted.
func TestDenied(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{".gitignore": ".env\n", ".env": "", "sub/.env": "", "secret/a": "", "secret/b/c": "", "seen": ""})
	tooltest.Unopened(t, dir+"/.env", dir+"/sub/.env", dir+"/secret")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	visited := make(chan string, 10)
	tally, err := walk.Files(t.Context(), root, walk.Options{
		Dir: dir, Visit: func(f *walk.File) { visited <- f.Path() },
		Choose: walk.ByPath(func(path string, _ fs.FileMode) walk.Choice {
			if filepath.Base(path) == ".env" || path == "secret" {
				return walk.Deny
			}
			return walk.Take
		}),
	})
	close(visited)
	var got []string
	for path := range visited {
		got = append(got, path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(walk.Tally{DeniedFiles: 2, DeniedDirs: 1}, tally); err != nil || diff != "" || !slices.Equal(got, []string{".gitignore", "seen"}) {
		t.Errorf("%v, visited %q, tally: want (-), got (+):\n%s", err, got, diff)
	}
	for _, c := range []struct {
		tally walk.Tally
		want  string
	}{
		{tally, "2 files and 1 directory because a rule denies reading them"},
		{walk.Tally{DeniedFiles: 1, IgnoredFiles: 1}, "1 ignored file, 1 file because a rule denies reading it"},
		{walk.Tally{DeniedDirs: 2}, "2 directories because a rule denies reading them"},
	} {
		if got := strings.Join(c.tally.LeftOut(), ", "); got != c.want {
			t.Errorf("in words: %s, want %s", got, c.want)
		}
	}
}

func TestWhatCannotBeReadIsReported(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "", "shut/b": "", "sub/.gitignore": "*", "sub/c": "", "big/.gitignore": strings.Repeat("x\n", 1<<19+1), "big/x": ""})
	for name, mode := range map[string]os.FileMode{"": 0o755, "shut": 0, "sub/.gitignore": 0} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	tooltest.Unprivileged(t)
	got, tally := walked(t, dir, walk.Options{})
	if want := []string{"a", "big/.gitignore", "big/x", "sub/.gitignore", "sub/c"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
	lines := tally.Unseen()
	slices.Sort(lines)
	want := []string{
		"could not read " + dir + "/big/.gitignore: an ignore file of more than 1 MiB is not read",
		"could not read " + dir + "/sub/.gitignore: permission denied",
		"could not read shut: permission denied",
	}
	if diff := cmp.Diff(want, lines); diff != "" || tally.Unread != 3 {
		t.Errorf("%d faults; want (-), got (+):\n%s", tally.Unread, diff)
	}
}

// What git reads may be a pipe on which nobody writes: it says nothing, and holds nobody up.
func TestPipesInPlaceOfGitsFiles(t *testing.T) {
	for _, name := range []string{".git", ".git/config", ".git/info/exclude", ".git/commondir", "home/.gitconfig", ".ignore"} {
		dir := t.TempDir()
		plant(t, dir, map[string]string{"a": "", "home/": ""})
		pipe := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(pipe), 0o755); err != nil {
			t.Fatal(err)
		}
		if name == ".git/commondir" {
			plant(t, dir, map[string]string{"sub/.git": "gitdir: ../.git"})
		}
		if err := syscall.Mkfifo(pipe, 0o644); err != nil {
			t.Fatal(err)
		}
		got, _ := walked(t, dir, walk.Options{Environ: []string{"HOME=" + dir + "/home"}})
		if !slices.Contains(got, "a") {
			t.Errorf("%s: visited %q", name, got)
		}
	}
}

func TestLinksAndPipesAreMetAndNotOpened(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"real/x": "text"})
	for name, target := range map[string]string{"loop": ".", "real/up": "..", "file": "real/x"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	visit := func(f *walk.File) {
		in, err := f.Open()
		if err != nil {
			got[f.Path()] = f.Type.String()
			return
		}
		defer in.Close()
		data, _ := io.ReadAll(in)
		got[f.Path()] = string(data)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	one := make(chan struct{}, 1) // Visit comes from several goroutines
	tally, err := walk.Files(context.Background(), root, walk.Options{Dir: dir, Visit: func(f *walk.File) { one <- struct{}{}; visit(f); <-one }})
	if err != nil || tally.Unread != 0 {
		t.Errorf("error %v, faults %v", err, tally.Faults)
	}
	link, pipe := os.ModeSymlink.String(), os.ModeNamedPipe.String()
	want := map[string]string{"real/x": "text", "loop": link, "real/up": link, "file": link, ".gitignore": link, "pipe": pipe}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestEndOfContextEndsTheWalk(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 500 {
		files[fmt.Sprintf("d%d/f%d", i%50, i)] = ""
	}
	plant(t, dir, files)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var visited atomic.Int64
	_, err = walk.Files(ctx, root, walk.Options{Dir: dir, Visit: func(*walk.File) {
		if visited.Add(1) == 1 {
			cancel(cause)
		}
		<-ctx.Done()
	}})
	if most := int64(runtime.GOMAXPROCS(0)); !errors.Is(err, cause) || visited.Load() > most {
		t.Errorf("error %v after %d files; want the cause, and each goroutine to finish its file", err, visited.Load())
	}
}

func TestPanicOfAVisitComesToTheCaller(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "", "b/c": ""})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "out of luck") || !strings.Contains(text, "walk_test.go") {
			t.Errorf("recovered %.200s; want the panic and its stack", text)
		}
	}()
	_, _ = walk.Files(context.Background(), root, walk.Options{Dir: dir, Visit: func(*walk.File) { panic("out of luck") }})
	t.Error("the walk returned")
}

func FuzzRules(f *testing.F) {
	f.Add([]byte("a/**/b\n!*.[!a-z]\n/x\\ \n"), "a/q/b")
	f.Add([]byte("[[:alpha:]-]\n**/\n\\"), "é/\xff")
	f.Fuzz(func(t *testing.T, rules []byte, path string) {
		r := walk.ParseRules(rules)
		for _, dir := range []bool{true, false} {
			if v := r.Match(path, dir); v > walk.Kept {
				t.Errorf("verdict %d", v)
			}
		}
		if all, ok := walk.Braces(string(rules)); ok && (len(all) == 0 || len(all) > walk.MaxBraces) {
			t.Errorf("%d patterns", len(all))
		}
	})
}

func TestBeat(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "", "b": ""})
	synctest.Test(t, func(t *testing.T) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		enough := make(chan struct{})
		var beats []int64
		_, err = walk.Files(t.Context(), root, walk.Options{
			Dir: dir, Visit: func(*walk.File) { <-enough },
			Beat: func(visited int64) {
				if beats = append(beats, visited); len(beats) == 3 {
					close(enough)
				}
			},
		})
		if err != nil || !slices.Equal(beats, []int64{0, 0, 0}) {
			t.Errorf("error %v, beats %v; want three of 0", err, beats)
		}
	})
}
