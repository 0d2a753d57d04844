package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// TestFullFilesystem fills a real filesystem of 1 MiB.
func TestFullFilesystem(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small filesystem can only be mounted by root (%v); TestFullDiskLosesNothingAndRecovers covers the rest", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(mount, "journal"))
	l := create(t, s, "a")
	entry := journal.Entry{Body: []byte(strings.Repeat("x", 5000)), Durability: journal.Synced}
	var kept uint64
	for {
		last, err := l.Append(entry)
		if err != nil {
			wantError(t, err, journal.ErrFull)
			break
		}
		kept = last
	}
	if kept < 10 {
		t.Fatalf("only %d records fit", kept)
	}
	_, err := l.Append(entry) // still full, still the same answer
	wantError(t, err, journal.ErrFull)
	if got := all(t, l, 0); uint64(len(got)) != kept {
		t.Errorf("%d records can be read, want %d", len(got), kept)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if last := add(t, l, "after"); last != kept+1 {
		t.Errorf("the next number is %d, want %d", last, kept+1)
	}
	shut(t, s)
	s = open(t, filepath.Join(mount, "journal"))
	if got := all(t, lookup(t, s, "a"), 0); uint64(len(got)) != kept+1 || string(got[kept].Body) != "after" {
		t.Errorf("%d records after reopening, want %d", len(got), kept+1)
	}
	shut(t, s)
}
