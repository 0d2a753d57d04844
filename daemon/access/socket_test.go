package access

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListenReplacesOnlyStaleSockets: what is no socket, or what another program serves, stays.
func TestListenReplacesOnlyStaleSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.sock")
	other, err := net.Listen("unix", foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stale := filepath.Join(dir, "stale.sock")
	dead, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	for path, want := range map[string]string{file: "is not a socket", foreign: "another program listens", stale: ""} {
		listener, err := Listen(path)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			listener.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", path, err, want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
