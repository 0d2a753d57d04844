package pathname_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/tools/fs/pathname"
)

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a/b", "/a", false},
		{"/", "/", true},
		{"/", "/a", true},
		{"a", "a/b", true},
		{"a", "b/a", false},
		{"/a", "/", false},
	} {
		if got := pathname.Within(test.dir, test.path); got != test.want {
			t.Errorf("Within(%q, %q) = %v", test.dir, test.path, got)
		}
	}
}

func TestExecutable(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"program": true, "text": false, "absent": false, ".": false} {
		if got := pathname.Executable(filepath.Join(dir, name)); got != want {
			t.Errorf("Executable(%q) = %v", name, got)
		}
	}
}
