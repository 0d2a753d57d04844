package sealed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/daemon/sealed"
)

// TestSealed: what is written comes back, the file does not show it, and a changed file is an error.
func TestSealed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, plain := range []string{"", "A_TOKEN=of a client", string(make([]byte, 1<<20))} {
		box, err := sealed.Write(dir, []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := box.Read(); err != nil || string(got) != plain {
			t.Errorf("%d bytes came back as %d: %v", len(plain), len(got), err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%d files: %v", len(files), err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if plain != "" && bytes.Contains(text, []byte(plain[:min(8, len(plain))])) {
			t.Errorf("the file shows what is in it: %q", text[:20])
		}
		text[0]++
		if err := os.WriteFile(files[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := box.Read(); err == nil {
			t.Error("a changed file was read")
		}
		box.Remove()
		if _, err := box.Read(); !os.IsNotExist(err) {
			t.Errorf("a removed file: %v", err)
		}
	}
}
