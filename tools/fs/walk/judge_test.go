package walk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/walk"
)

// TestJudgeAsGit: the Judge and `git check-ignore` agree about every path of a tree, whether it exists or not.
func TestJudgeAsGit(t *testing.T) {
	home := t.TempDir()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = root, environ
		out, _ := cmd.Output() // check-ignore fails where nothing is ignored
		return string(out)
	}
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	if err := os.MkdirAll(filepath.Join(home, ".config/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config/git/ignore"), []byte("*.swp\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	write(".gitignore", "*.o\nbuild/\n/top\n!keep.o\ndeep/**/x\n")
	write("sub/.gitignore", "!a.o\nlocal\n")
	write(".git/info/exclude", "excluded\n")
	write("sub/nested/file", "")
	write("build/file", "")
	paths := []string{
		"a.o", "keep.o", "build/", "build", "build/file", "build/keep.o", "top", "sub/top", "sub/a.o", "sub/b.o", "sub/local", "sub/nested/local",
		"deep/x", "deep/1/2/x", "excluded", "sub/excluded/y", "a.swp", "src/main.c", "none/of/these", "sub/nested/", "new/build/", "new/build/x",
	}
	judge := walk.NewJudge([]string{root}, environ)
	for _, path := range paths {
		want := strings.TrimSpace(git("check-ignore", "--no-index", path)) != ""
		name := filepath.Join(root, path)
		got := judge.Ignored(name, strings.HasSuffix(path, "/") || path == "build") // which exists
		if (got != "") != want {
			t.Errorf("%s: ignored %q, want %v", path, got, want)
		}
	}
	if got := judge.Ignored(root+"/build/deep/er", false); got != root+"/build" {
		t.Errorf("the highest ignored directory is %q, want build", got)
	}
	if got := walk.NewJudge([]string{root + "/build"}, environ).Ignored(root+"/build/file", false); got != "" {
		t.Errorf("a file of a root is ignored by %q, want not at all", got)
	}
}
