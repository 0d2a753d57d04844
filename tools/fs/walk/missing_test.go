package walk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/walk"
)

// A file that is taken away is judged as the walk judged it while it was there.
func TestMissing(t *testing.T) {
	f, err := os.Open("testdata/keeps.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	judged := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c keepCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(c.Note, func(t *testing.T) { judged += checkMissing(t, c) })
	}
	if judged < 100 {
		t.Errorf("only %d files were judged", judged)
	}
}

func checkMissing(t *testing.T, c keepCase) (judged int) {
	dir := t.TempDir()
	files := map[string]string{}
	for _, name := range c.Tree {
		files[name] = ""
	}
	for name, content := range c.With {
		files[name] = content
	}
	plant(t, dir, files)
	top := filepath.Join(dir, c.Dir)
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o := walk.Options{Dir: top, Top: dir, Environ: cleanEnv(t.TempDir())}
	for _, name := range c.Tree {
		path, err := filepath.Rel(top, filepath.Join(dir, name))
		if err != nil || strings.HasPrefix(path, "..") || path == ".git" || strings.HasSuffix(name, "/") {
			continue
		}
		visited := map[string]bool{}
		there := o
		there.Visit = func(f *walk.File) {
			if f.Path() == path {
				visited[path] = true
			}
		}
		if _, err := walk.Files(context.Background(), root, there); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		taken, left := walk.Missing(root, o, path)
		if taken != visited[path] || taken && left.IgnoredFiles+left.IgnoredDirs > 0 {
			t.Errorf("%s is taken: %v, with %+v left out; the walk visited it: %v", path, taken, left, visited[path])
		}
		judged++
	}
	return judged
}
