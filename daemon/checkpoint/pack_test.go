package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/tools/fs/workspace"
)

// TestPacks: many contents of one hold lie in one file, come back after a restart, also where the file was cut short or
// changed, and are dropped together once none of them is needed.
func TestPacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hold := store.HoldPacked()
	var hashes []string
	for n := range 100 {
		hashes = append(hashes, keep(t, hold, fmt.Sprint("content ", n)))
	}
	want(t, keep(t, hold, "content 50"), hashes[50])
	sweep := func(s *checkpoint.Store, used ...string) int64 {
		t.Helper()
		removed, err := s.Sweep(func() (map[string]time.Time, error) {
			named := map[string]time.Time{}
			for _, hash := range used {
				named[hash] = time.Now()
			}
			return named, nil
		}, 1<<30, time.Now().Add(-time.Hour), time.Time{})
		if err != nil {
			t.Error(err)
		}
		return removed
	}
	want(t, sweep(store), 0) // they are held
	hold.Release()
	packs, err := filepath.Glob(filepath.Join(dir, "pack-*"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%q are the packs (%v), want one", packs, err)
	}
	data, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte("content 60"), []byte("c0ntent 60"), 1)
	if err := os.WriteFile(packs[0], data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if store, err = checkpoint.Open(dir); err != nil {
		t.Fatal(err)
	}
	for n, hash := range hashes {
		data, err := store.Read(hash)
		lost := n == 60 || n == 99
		if lost != errors.Is(err, checkpoint.ErrGone) || lost == store.Whole(hash) || !lost && string(data) != fmt.Sprint("content ", n) {
			t.Errorf("content %d is %q (%v)", n, data, err)
		}
	}
	again := store.HoldPacked()
	want(t, keep(t, again, "content 60"), hashes[60])
	want(t, store.Whole(hashes[60]), true)
	if err := again.Sync(); err != nil {
		t.Error(err)
	}
	again.Release()
	if removed := sweep(store, hashes[70]); removed == 0 || !store.Whole(hashes[70]) || !store.Whole(hashes[71]) || store.Has(hashes[3]) {
		t.Errorf("%d bytes were removed, want those of what is not needed, and no pack of which something is", removed)
	}
	if removed := sweep(store); removed == 0 || store.Has(hashes[70]) {
		t.Errorf("%d bytes were removed, want the pack", removed)
	}
}

func want[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRecordings: what was recorded of a call is read by the next process up to where it was torn, its contents stay, and it
// goes once it is too old.
func TestRecordings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hold := store.Hold()
	hash := keep(t, hold, "one")
	r := store.Recording("s", "1-0")
	r.Add("/root/f", workspace.Snapshot{Kind: workspace.Regular, Hash: hash, Size: 3})
	r.Add("/root/\xff", workspace.Snapshot{Kind: workspace.Absent})
	r.AddGap(workspace.Gap{Real: "/root/d", Why: "it is large"})
	path := filepath.Join(dir, "run-*")
	found, err := filepath.Glob(path)
	if err != nil || len(found) != 1 {
		t.Fatalf("%q (%v)", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(found[0], append(data, `{"real":"L2Y=","bef`...), 0o600); err != nil {
		t.Fatal(err)
	}
	hold.Release()
	set, err := store.ReadRecording("s", "1-0")
	if err != nil || len(set.Snapshots) != 2 || len(set.Gaps) != 1 || set.Snapshots["/root/\xff"].Kind != workspace.Absent {
		t.Errorf("%v, %v", set, err)
	}
	sweep := func(oldest time.Time) {
		if _, err := store.Sweep(func() (map[string]time.Time, error) { return map[string]time.Time{}, nil }, 1<<30, oldest, time.Time{}); err != nil {
			t.Error(err)
		}
	}
	sweep(time.Now().Add(-time.Hour))
	want(t, store.Has(hash), true)
	sweep(time.Now().Add(time.Hour))
	want(t, store.Has(hash), false)
	if set, err := store.ReadRecording("s", "1-0"); err != nil || len(set.Snapshots) != 0 {
		t.Errorf("%v, %v", set, err)
	}
}

// FuzzDecodeRecording: whatever stands in a recording, each path of the result is absolute and each snapshot is one.
func FuzzDecodeRecording(f *testing.F) {
	f.Add([]byte("{\"real\":\"L2Y=\",\"before\":{\"kind\":\"absent\"}}\n{\"gap\":{\"real\":\"/d\",\"why\":\"x\"}}\n{\"real\":\"L2"))
	f.Add([]byte("{\"real\":\"Zg==\",\"before\":{\"kind\":\"absent\"}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for real, snapshot := range checkpoint.DecodeRecording(data).Snapshots {
			if !filepath.IsAbs(real) || snapshot.Kind == "" {
				t.Errorf("%q: %v", real, snapshot)
			}
		}
	})
}

// TestPackSync: what a pack gets after it was synced is synced too.
func TestPackSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hold := store.HoldPacked()
	defer hold.Release()
	for n := range 40 {
		keep(t, hold, fmt.Sprint("content ", n))
	}
	if err := hold.Sync(); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "pack-*"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%q are the packs (%v), want one", packs, err)
	}
	if err := os.Rename(packs[0], filepath.Join(dir, "aside")); err != nil {
		t.Fatal(err)
	}
	if err := hold.Sync(); err != nil {
		t.Errorf("syncing what is synced: %v", err)
	}
	keep(t, hold, "content 40")
	if err := hold.Sync(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("syncing what was added: %v, want that the pack is not found", err)
	}
}

// TestPackSweep: a sweep that comes while a pack is made does not remove it.
func TestPackSweep(t *testing.T) {
	t.Parallel()
	store, err := checkpoint.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stop, swept := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				swept <- nil
				return
			default:
			}
			if _, err := store.Sweep(func() (map[string]time.Time, error) { return map[string]time.Time{}, nil }, 1<<30, time.Now(), time.Time{}); err != nil {
				swept <- err
				return
			}
		}
	}()
	for n := range 50 {
		hold := store.HoldPacked()
		var last string
		for m := range 18 {
			last = keep(t, hold, fmt.Sprintf("content %d of hold %d", m, n))
		}
		if _, err := store.Read(last); err != nil {
			t.Errorf("a content of hold %d: %v", n, err)
		}
		hold.Release()
	}
	close(stop)
	if err := <-swept; err != nil {
		t.Error(err)
	}
}
