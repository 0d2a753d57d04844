package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSetAside: what stands at a path is moved and what stood there put back, also where the call has made that hard.
func TestSetAside(t *testing.T) {
	before := &Content{Data: []byte("before"), Mode: 0o640}
	for _, tt := range []struct {
		name    string
		prepare func(dir string) error // the path is dir/sub/file
		before  *Content
		target  string // what is moved, below dir
	}{
		{"a file", nil, nil, "sub/file"},
		{"a file with content before", nil, before, "sub/file"},
		{"in a directory that may not be written", func(dir string) error { return os.Chmod(filepath.Join(dir, "sub"), 0o500) }, before, "sub/file"},
		{"in a directory that may not be read", func(dir string) error { return os.Chmod(filepath.Join(dir, "sub"), 0o100) }, nil, "sub/file"},
		{"behind a link", func(dir string) error {
			sub := filepath.Join(dir, "sub")
			if err := os.Rename(sub, sub+"2"); err != nil {
				return err
			}
			return os.Symlink("sub2", sub)
		}, before, "sub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			path := filepath.Join(dir, "sub", "file")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, []byte("left"), 0o600))
			if tt.prepare != nil {
				must(t, tt.prepare(dir))
			}
			d, err := SetAside(path, tt.before)
			must(t, err)
			if d.Target != filepath.Join(dir, tt.target) {
				t.Errorf("moved %s", d.Target)
			}
			_ = os.Chmod(filepath.Join(dir, "sub"), 0o700) // to look, where it still is
			got, err := os.ReadFile(path)
			if tt.before == nil || tt.target == "sub" {
				if err == nil {
					t.Errorf("%q is still there", got)
				}
				return
			}
			left, _ := os.ReadFile(d.MovedTo)
			if string(got) != "before" || string(left) != "left" || !d.PutBack {
				t.Errorf("there is %q, aside %q, %+v", got, left, d)
			}
		})
	}
}
