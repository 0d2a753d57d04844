package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFresh: a file that was made for a process is removed only if it is the same and nobody has opened it for writing.
func TestFresh(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("there"), []byte("mine"), 0o600))
	must(t, os.Symlink(at("nowhere"), at("link")))
	open := func(name string, flag int) error {
		f, err := os.OpenFile(at(name), flag, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	for name, use := range map[string]struct {
		do   func() error
		left bool
	}{
		"untouched": {func() error { return nil }, false},
		"read":      {func() error { return open("read", os.O_RDONLY) }, false},
		"opened":    {func() error { return open("opened", os.O_WRONLY|os.O_APPEND) }, true},
		"written":   {func() error { return os.WriteFile(at("written"), []byte("x"), 0o600) }, true},
		"dated":     {func() error { return os.Chmod(at("dated"), 0o600) }, true},
		"replaced": {func() error {
			must(t, os.WriteFile(at("other"), nil, 0o600))
			return os.Rename(at("other"), at("replaced"))
		}, true},
		"there": {func() error { return nil }, true},
		"link":  {func() error { return nil }, true},
	} {
		f := makeFresh([]string{at(name)})
		must(t, use.do())
		f.close()
		if _, err := os.Lstat(at(name)); (err == nil) != use.left {
			t.Errorf("%s is there afterwards: %v", name, err == nil)
		}
	}
	if _, err := os.Lstat(at("nowhere")); err == nil {
		t.Error("a link was followed")
	}
	if text, _ := os.ReadFile(at("there")); string(text) != "mine" {
		t.Errorf("what was there is %q", text)
	}
}
