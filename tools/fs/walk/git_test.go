package walk_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/tools/fs/walk"
)

// This file compares walks with `git check-ignore` on the same trees.

// cleanEnv is an environment in which git and the walk see no configuration but the test's.
func cleanEnv(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
}

func git(t testing.TB, dir string, env []string, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, strings.NewReader(stdin)
	out, err := cmd.Output()
	if code, ok := err.(*exec.ExitError); ok && code.ExitCode() == 1 && args[0] == "check-ignore" {
		err = nil // nothing is ignored
	}
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

func needGit(t testing.TB) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed; the walk cannot be compared with it")
	}
}

// plant makes the files, each with its content, and the directories (names that end in "/").
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// walked returns the files that a walk of dir visits, sorted, without those inside .git.
func walked(t testing.TB, dir string, o walk.Options) ([]string, walk.Tally) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var mu sync.Mutex
	var paths []string
	o.Dir = dir
	o.Choose = walk.ByPath(func(path string, _ fs.FileMode) walk.Choice {
		if filepath.Base(path) == ".git" {
			return walk.Leave
		}
		return walk.Take
	})
	o.Visit = func(f *walk.File) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, f.Path())
	}
	tally, err := walk.Files(context.Background(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths, tally
}

// gitKeeps returns the files below dir that git would not ignore.
func gitKeeps(t testing.TB, dir string, env []string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".git" && e.IsDir() {
			return filepath.SkipDir
		}
		if !e.IsDir() && e.Name() != ".git" {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := git(t, dir, env, strings.Join(all, "\x00")+"\x00", "check-ignore", "--no-index", "-z", "--stdin")
	ignored := strings.Split(out, "\x00")
	all = slices.DeleteFunc(all, func(p string) bool { return slices.Contains(ignored, p) })
	slices.Sort(all)
	return all
}

var names = []string{"a", "b", "ab", "abc", "b.o", ".a", "a b", "[", "a]", "-", "é", "A", "a*", `a\`, "#a", "!a", "0", "a "}

func someTree() map[string]string {
	tree := map[string]string{}
	for i, n := range names {
		tree[n+"f"] = ""
		if i < 7 {
			for _, m := range names {
				tree[n+"/"+m+"f"] = ""
			}
			for _, m := range names[:5] {
				tree[n+"/"+m+"/"+n+"f"], tree[n+"/"+m+"/b"] = "", ""
				tree[n+"/"+m+"/ab/b.o"] = ""
			}
		}
	}
	return tree
}

var pieces = []string{
	"a", "b", "f", "ab", ".", "*", "**", "***", "?", "/", "/", "/**/", "**/", "/**", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[!]a]", "[a-]", "[-a]",
	"[[:alpha:]]", "[[:upper:]0]", "[[:nope:]]", "[[:a]", "[a", "[\\]a]", "[a\\-c]", "[b-a]", "[--0]", "\\a", "\\*", "\\", "\\/", "\\[", "\\ ", " ", "é", "o", "{a,b}", "[é]",
}

func someLine(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(5) == 0 {
		b.WriteByte('!')
	}
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	b.WriteString([]string{"", "", "", "/", "f", " ", "\r", "  \r", "\\ "}[r.IntN(9)])
	return b.String()
}

func someRules(r *rand.Rand) string {
	lines := make([]string, 1+r.IntN(5))
	for i := range lines {
		lines[i] = someLine(r)
	}
	return strings.Join(lines, "\n") + []string{"", "\n"}[r.IntN(2)]
}

func TestWalksAsGitDoes(t *testing.T) {
	needGit(t)
	dir, env := t.TempDir(), cleanEnv(t.TempDir())
	git(t, dir, env, "", "init", "-q")
	plant(t, dir, someTree())
	places := []string{".gitignore", "a/.gitignore", "a/b/.gitignore", "ab/.gitignore", ".git/info/exclude"}
	for seed := range 120 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		files := map[string]string{}
		for i, place := range places {
			files[place] = ""
			if i == 0 || r.IntN(3) == 0 {
				files[place] = someRules(r)
			}
		}
		plant(t, dir, files)
		got, _ := walked(t, dir, walk.Options{Environ: env})
		if diff := cmp.Diff(gitKeeps(t, dir, env), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d, ignore files %s\ngit keeps (-), the walk visits (+):\n%s", seed, fmt.Sprintf("%q", files), diff)
		}
	}
}
