package workspace_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/workspace"
)

// A store keeps contents in memory.
type store map[string][]byte

func (s store) keep(content io.ReadSeeker, _ int64) (string, int64, error) {
	data, err := io.ReadAll(content)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	s[hash] = data
	return hash, int64(len(data)), err
}

func (s store) content(hash string) ([]byte, error) {
	data, ok := s[hash]
	if !ok {
		return nil, errors.New("no such content")
	}
	return data, nil
}

func (s store) snapshot(t *testing.T, v *workspace.View, real string) workspace.Snapshot {
	t.Helper()
	i, err := v.Snapshot(workspace.Snapshotter{Keep: s.keep}, real)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func noTemps(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, ".toold-") {
			t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSnapshot: what stands at a path is told without following links, and what is not to be kept is not opened.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/file", "x")
	put(t, s.root+"/secret", "x")
	put(t, s.outside+"/file", "theirs")
	link(t, s.outside+"/file", s.root+"/link")
	link(t, s.outside, s.root+"/out")
	link(t, "loop", s.root+"/loop")
	v := s.ws.View(workspace.Grant{Dir: s.root, ReadDenied: func(real string) string {
		if real == s.root+"/secret" {
			return "no"
		}
		return ""
	}}, s.memory)
	kept := store{}
	for name, want := range map[string]workspace.SnapshotKind{
		"file": workspace.Regular, "link": workspace.Link, "out": workspace.Link, "": workspace.Directory, "none": workspace.Absent, "none/deep": workspace.Absent,
		"file/below": workspace.Absent, "out/file": workspace.Absent, "loop/x": workspace.Absent, "secret": workspace.Unkept,
	} {
		if got := kept.snapshot(t, v, filepath.Join(s.root, name)); got.Kind != want {
			t.Errorf("%q is %+v, want %s", name, got, want)
		}
	}
	if len(kept) != 1 {
		t.Errorf("%d contents were kept, want that of one file", len(kept))
	}
	full := errors.New("the store is full")
	if _, err := v.Snapshot(workspace.Snapshotter{Keep: func(io.ReadSeeker, int64) (string, int64, error) { return "", 0, full }}, s.root+"/file"); !errors.Is(err, full) {
		t.Errorf("%v, want that of the store", err)
	}
}

// TestRestoreAllOrNothing: as long as one path is not what it should be nothing is changed, and nothing is left.
func TestRestoreAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/a", "old")
	put(t, s.root+"/b", "old")
	v, kept := s.view(), store{}
	a, b := kept.snapshot(t, v, s.root+"/a"), kept.snapshot(t, v, s.root+"/b")
	put(t, s.root+"/a", "new")
	put(t, s.root+"/b", "new")
	puts := []workspace.Put{
		{Real: s.root + "/a", Now: kept.snapshot(t, v, s.root+"/a"), Want: a},
		{Real: s.root + "/b", Now: kept.snapshot(t, v, s.root+"/b"), Want: b},
		{Real: s.root + "/dir", Now: workspace.Snapshot{Kind: workspace.Absent}, Want: workspace.Snapshot{Kind: workspace.Directory, Mode: 0o755}},
	}
	same := func(what, wanted string, err error) {
		t.Helper()
		if code(err) != wanted {
			t.Errorf("%s: %v, want %s", what, err, wanted)
		}
		holds(t, s.root+"/a", "new")
		noTemps(t, s.root)
		if _, err := os.Lstat(s.root + "/dir"); !os.IsNotExist(err) {
			t.Errorf("%s: the directory was made: %v", what, err)
		}
	}
	put(t, s.root+"/b", "newer")
	_, err := v.Restore(t.Context(), puts, kept.content)
	same("changed meanwhile", "stale_file", err)
	puts[1].Now = kept.snapshot(t, v, s.root+"/b")
	_, err = v.Restore(t.Context(), puts, func(hash string) ([]byte, error) {
		if hash == b.Hash {
			put(t, s.root+"/b", "newest") // while the others are made
		}
		return kept.content(hash)
	})
	same("changed while it was made", "stale_file", err)
	puts[1].Now = kept.snapshot(t, v, s.root+"/b")
	puts[1].Want.Hash = strings.Repeat("0", 64)
	_, err = v.Restore(t.Context(), puts, kept.content)
	same("not kept", "io_error", err)
	puts[1].Want = b
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Restore(ctx, puts, kept.content); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	other := s.ws.View(workspace.Grant{Dir: s.root, Writes: []workspace.Grantee{{Real: s.root + "/a"}}}, s.memory)
	_, err = other.Restore(t.Context(), puts, kept.content)
	same("not granted", "undeclared", err)
	told, err := v.Restore(t.Context(), puts, kept.content)
	if err != nil || len(told) != 3 || !told[0].Done || !told[1].Done || !told[2].Done {
		t.Errorf("%+v, %v", told, err)
	}
	holds(t, s.root+"/a", "old")
	holds(t, s.root+"/b", "old")
	noTemps(t, s.root)
}

// TestRestoreDirectoryForFile: a file in whose place a directory is to come stays until all is ready, and then makes room.
func TestRestoreDirectoryForFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, kept := s.view(), store{}
	put(t, s.root+"/d/e/x", "old")
	puts := []workspace.Put{}
	for _, name := range []string{"/d", "/d/e", "/d/e/x"} {
		puts = append(puts, workspace.Put{Real: s.root + name, Want: kept.snapshot(t, v, s.root+name)})
	}
	if err := os.RemoveAll(s.root + "/d"); err != nil {
		t.Fatal(err)
	}
	put(t, s.root+"/d", "what stands there now")
	for i := range puts {
		puts[i].Now = kept.snapshot(t, v, puts[i].Real)
	}
	hash := puts[2].Want.Hash
	old := kept[hash]
	delete(kept, hash)
	if _, err := v.Restore(t.Context(), puts, kept.content); err == nil {
		t.Error("it was put back without a content")
	}
	holds(t, s.root+"/d", "what stands there now")
	noTemps(t, s.root)
	kept[hash] = old
	told, err := v.Restore(t.Context(), puts, kept.content)
	if err != nil || !told[0].Done || !told[1].Done || !told[2].Done {
		t.Errorf("%+v, %v", told, err)
	}
	holds(t, s.root+"/d/e/x", "old")
	noTemps(t, s.root)
}

// TestRestoreIntoAllOrNothing: files that are written where they stand, for all of their names, are written all or none.
func TestRestoreIntoAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, kept := s.view(), store{}
	var puts []workspace.Put
	for _, name := range []string{s.root + "/a", s.root + "/b"} {
		put(t, name, "old "+filepath.Base(name))
		if err := os.Link(name, name+"2"); err != nil {
			t.Fatal(err)
		}
		want := kept.snapshot(t, v, name)
		if err := os.WriteFile(name, []byte("new "+filepath.Base(name)), 0o600); err != nil { // the same file
			t.Fatal(err)
		}
		puts = append(puts, workspace.Put{Real: name, Now: kept.snapshot(t, v, name), Want: want, Into: &want})
	}
	lacking := store{puts[0].Want.Hash: kept[puts[0].Want.Hash]}
	if _, err := v.Restore(t.Context(), puts, lacking.content); err == nil {
		t.Error("it was put back without a content")
	}
	holds(t, s.root+"/a", "new a")
	holds(t, s.root+"/b2", "new b")
	if told, err := v.Restore(t.Context(), puts, kept.content); err != nil || !told[0].Done || !told[1].Done {
		t.Errorf("%+v, %v", told, err)
	}
	holds(t, s.root+"/a2", "old a")
	holds(t, s.root+"/b2", "old b")
}

// TestRestoreTouchesNothingUnkept: what cannot be kept is not removed, whatever it is asked for.
func TestRestoreTouchesNothingUnkept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/.env", "x")
	v := s.view()
	now, err := v.Snapshot(workspace.Snapshotter{Refuse: func(string) string { return "it is secret" }}, s.root+"/.env")
	if err != nil || now.Kind != workspace.Unkept {
		t.Fatalf("%+v, %v", now, err)
	}
	_, err = v.Restore(t.Context(), []workspace.Put{{Real: s.root + "/.env", Now: now, Want: workspace.Snapshot{Kind: workspace.Absent}}}, nil)
	if code(err) != "not_kept" {
		t.Errorf("%v, want not_kept", err)
	}
	holds(t, s.root+"/.env", "x")
}

// TestRestoreInPlace: in a directory that takes no new file a file is written where it stands, as Change would.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	s := newSite(t)
	file := s.root + "/shut/file"
	put(t, file, "old")
	v, kept := s.view(), store{}
	old := kept.snapshot(t, v, file)
	put(t, file, "new")
	if err := os.Chmod(s.root+"/shut", 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(s.root+"/shut", 0o755) })
	told, err := v.Restore(t.Context(), []workspace.Put{{Real: file, Now: kept.snapshot(t, v, file), Want: old}}, kept.content)
	if err != nil || !told[0].Done {
		t.Errorf("%+v, %v", told, err)
	}
	holds(t, file, "old")
}

// TestRestoreKeepsWhatIsThere: a directory with something in it that nobody knows of stays, and is told.
func TestRestoreKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/theirs", "x")
	v := s.view()
	now, err := v.Snapshot(workspace.Snapshotter{}, s.root+"/dir")
	if err != nil {
		t.Fatal(err)
	}
	told, err := v.Restore(t.Context(), []workspace.Put{{Real: s.root + "/dir", Now: now, Want: workspace.Snapshot{Kind: workspace.Absent}}}, nil)
	if err != nil || told[0].Done || !strings.Contains(told[0].Note, "not removed") {
		t.Errorf("%+v, %v", told, err)
	}
	holds(t, s.root+"/dir/theirs", "x")
}

// TestRestoreAgainstALinkSwapper: while somebody puts links in the place of a file and of its directory all the time,
// nothing is ever written where they lead.
func TestRestoreAgainstALinkSwapper(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.outside+"/file", "theirs")
	put(t, s.root+"/dir/file", "new")
	v, kept := s.view(), store{}
	now := kept.snapshot(t, v, s.root+"/dir/file")
	old, _, _ := kept.keep(strings.NewReader("old"), 3)
	want := workspace.Snapshot{Kind: workspace.Regular, Mode: 0o644, Size: 3, Hash: old}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(s.root+"/dir", s.root+"/away")
			_ = os.Symlink(s.outside, s.root+"/dir")
			_ = os.Remove(s.root + "/dir")
			_ = os.Rename(s.root+"/away", s.root+"/dir")
			_ = os.Rename(s.root+"/dir/file", s.root+"/dir/real")
			_ = os.Symlink(s.outside+"/file", s.root+"/dir/file")
			_ = os.Rename(s.root+"/dir/real", s.root+"/dir/file")
		}
	}()
	for range 200 {
		_, _ = v.Restore(t.Context(), []workspace.Put{{Real: s.root + "/dir/file", Now: now, Want: want}}, kept.content)
	}
	close(stop)
	<-stopped
	holds(t, s.outside+"/file", "theirs")
	if entries, err := os.ReadDir(s.outside); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want nothing new where the links lead", entries, err)
	}
}
