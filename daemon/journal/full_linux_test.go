package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// smallDisk mounts a filesystem of so many MiB.
func smallDisk(t *testing.T, size int) (mount string) {
	t.Helper()
	mount = t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Skipf("a small filesystem can only be mounted by root (%v); TestFullDiskLosesNothingAndRecovers covers the rest", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	return mount
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// TestFullFilesystem fills a real filesystem of 1 MiB.
func TestFullFilesystem(t *testing.T) {
	mount := smallDisk(t, 1)
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

// TestReserve: on a disk without a free byte, what ends something is still
// written, durably, while all else is refused, also after a restart; when there
// is room the reserve is kept again.
func TestReserve(t *testing.T) {
	mount := smallDisk(t, 16)
	dir, ballast := filepath.Join(mount, "journal"), filepath.Join(mount, "ballast")
	config := journal.Config{Reserve: 4 << 20}
	s, err := journal.Open(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	a, b := create(t, s, "a"), create(t, s, "b")
	add(t, a, "1")
	fillDisk(t, ballast)
	ordinary := journal.Entry{Body: make([]byte, 20<<10)}
	for err == nil {
		_, err = b.Append(ordinary)
	}
	wantError(t, err, journal.ErrFull)
	held := b.Last()
	end := journal.Entry{Call: "c", Body: make([]byte, 10<<10), Terminal: true, Durability: journal.Synced}
	for range 100 { // 1 MiB
		// In one group with what is refused, and behind it.
		refused, ended := a.Enqueue(ordinary), a.Enqueue(end)
		if _, err := ended.Wait(); err != nil {
			t.Fatalf("the end of something: %v", err)
		}
		_, err = refused.Wait()
		wantError(t, err, journal.ErrFull)
	}
	for _, p := range []*journal.Pending{b.Enqueue(journal.Entry{}), b.Keep(journal.Committed, journal.Put{Key: "k", Value: []byte("v")})} {
		_, err = p.Wait()
		wantError(t, err, journal.ErrFull)
	}
	_, err = s.Create("new")
	wantError(t, err, journal.ErrFull)
	if _, err := b.KeepTerminal(journal.Synced, journal.Put{Key: "k", Value: []byte("ended")}).Wait(); err != nil {
		t.Error(err)
	}
	shut(t, s)

	if s, err = journal.Open(dir, config); err != nil {
		t.Fatal(err)
	}
	a, b = lookup(t, s, "a"), lookup(t, s, "b")
	if got := all(t, a, 0); len(got) != 101 {
		t.Errorf("%d records, want 101", len(got))
	}
	if got := all(t, b, 0); uint64(len(got)) != held {
		t.Errorf("%d records, want %d", len(got), held)
	}
	_, err = b.Append(journal.Entry{})
	wantError(t, err, journal.ErrFull)
	if _, err := a.Append(end); err != nil {
		t.Errorf("the end of something after a restart: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if last := add(t, b, "after"); last != held+1 {
		t.Errorf("number %d, want %d", last, held+1)
	}
	if info, err := os.Stat(filepath.Join(dir, "reserve")); err != nil || info.Size() != config.Reserve || info.Sys().(*syscall.Stat_t).Blocks*512 < config.Reserve {
		t.Errorf("reserve: %v, %v; want %d bytes with their blocks", info, err, config.Reserve)
	}
	if ok, err := s.Intact(); err != nil || ok != "ok" {
		t.Errorf("the database is %q (%v)", ok, err)
	}
	shut(t, s)
}

// TestOpenOnAFullDisk: a store opens where nothing can be written but in place
// of the reserve, and what is dropped there makes room for more.
func TestOpenOnAFullDisk(t *testing.T) {
	mount := smallDisk(t, 48)
	dir := filepath.Join(mount, "journal")
	config := journal.Config{Reserve: 2 << 20}
	s, err := journal.Open(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	l := create(t, s, "a")
	for range 200 {
		add(t, l, strings.Repeat("x", 40<<10))
	}
	shut(t, s)
	fillDisk(t, filepath.Join(mount, "ballast"))
	if s, err = journal.Open(dir, config); err != nil {
		t.Fatal(err)
	}
	l = lookup(t, s, "a")
	_, err = l.Append(journal.Entry{})
	wantError(t, err, journal.ErrFull)
	if _, err = l.Append(journal.Entry{Terminal: true}); err != nil {
		t.Fatal(err)
	}
	if err := l.Trim(200); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first makes room, the second takes it
		if err := s.Tidy(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "reserve")); err != nil || info.Size() != config.Reserve {
		t.Errorf("reserve: %v, %v; want %d bytes", info, err, config.Reserve)
	}
	if last := add(t, l, "after"); last != 202 {
		t.Errorf("number %d, want 202", last)
	}
	shut(t, s)
}
