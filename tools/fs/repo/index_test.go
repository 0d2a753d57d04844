package repo_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/repo"
)

// TestIndexNames: the names in an index of each version are those that git lists.
func TestIndexNames(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		top := t.TempDir()
		for _, name := range []string{"a", "a.txt", "dir/one", "dir/two", "dir/twofold", "dir/deep/er/file with spaces", "ü", "z"} {
			path := filepath.Join(top, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		script := "git init -q && git add dir ü && git add -N a && git add a.txt z && git update-index --index-version " + version + " && git -c core.quotePath=false ls-files"
		out, err := exec.Command("sh", "-c", "cd "+top+" && "+script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		real, err := filepath.EvalSymlinks(top)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := repo.Discover(real)
		got := strings.Join(slices.Sorted(maps.Keys(r.Tracked())), "\n")
		if want := strings.TrimSpace(string(out)); !ok || got != want {
			t.Errorf("version %s: the index holds\n%s\nwant\n%s", version, got, want)
		}
	}
}

func FuzzIndexNames(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("x", 60) + "\x00\x04name\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02" + strings.Repeat("x", 60) + "\x00\x04\x00name\x00" + strings.Repeat("x", 60) + "\x00\x04\x81\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name := range repo.IndexNames(data) {
			if strings.ContainsRune(name, 0) || len(name) > len(data) {
				t.Errorf("%q is no name", name)
			}
		}
	})
}
