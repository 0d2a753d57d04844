package spool

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a small file system can be mounted by root only, so a full disk was not tried")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small file system could not be mounted (%v), so a full disk was not tried", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	d, err := Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	o := create(t, d, "call")
	write(t, o, Stderr, "a")
	for err = nil; err == nil; {
		err = o.Write(Stdout, bytes.Repeat([]byte("b"), 5000))
	}
	if !errors.Is(err, ErrFull) || errors.Is(err, ErrLimit) {
		t.Errorf("on a full disk: %v", err)
	}
	if both, each := all(t, o, 1000); int64(len(both)) != o.Total() || each[Stderr] != "a" || o.Total() < 40_000 {
		t.Errorf("%d bytes can be read of %d", len(both), o.Total())
	}
	if path, err := d.Spill("long", strings.Repeat("c", 100_000)); !errors.Is(err, ErrFull) {
		t.Errorf("spilling gave %q, %v", path, err)
	}
	if _, err := os.Stat(filepath.Join(disk, "long.txt")); err == nil {
		t.Error("half a result was left behind")
	}
}
