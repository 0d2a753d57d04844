package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
)

// look describes everything below a directory.
func look(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprint(strings.TrimPrefix(path, dir), " ", info.Mode())
		switch info.Mode().Type() {
		case 0:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprint(" ", info.ModTime(), " ", string(text))
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		default:
			line += fmt.Sprint(" ", info.ModTime())
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func makeTree(t *testing.T, dir string) {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	at := time.Date(2020, 1, 2, 3, 4, 5, 6789, time.UTC)
	for _, err := range []error{
		os.MkdirAll(in("a/b"), 0o755),
		os.WriteFile(in("a/file"), []byte("text"), 0o640),
		os.WriteFile(in("a/run"), bytes.Repeat([]byte("long "), 100_000), 0o755),
		os.WriteFile(in("a/b/none"), nil, 0o400),
		os.Link(in("a/file"), in("a/b/hard")),
		os.Symlink("../../etc/passwd", in("a/out")),
		os.Symlink("file", in("a/in")),
		os.Chmod(in("a/run"), 0o755|fs.ModeSetgid),
		os.Chtimes(in("a/file"), at, at),
		os.Chtimes(in("a/b"), at, at),
		os.Chmod(in("a/b"), 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(in("a/b"), 0o755) })
}

func TestRoundTrip(t *testing.T) {
	from, to, store := t.TempDir(), t.TempDir(), objects.Dir(t.TempDir())
	makeTree(t, from)
	dirs := func(dir string) map[string]string {
		return map[string]string{"files": filepath.Join(dir, "a"), "home": filepath.Join(dir, "absent")}
	}
	reference, err := snapshot.Save(t.Context(), store, dirs(from))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one replaces what is there, directories without permission to write too
		if err := snapshot.Load(t.Context(), store, reference, dirs(to)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(look(t, filepath.Join(from, "a")), look(t, filepath.Join(to, "a"))); diff != "" {
			t.Error("the copy differs:\n" + diff)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "a/b"), 0o755) })
	one, err := os.Stat(filepath.Join(to, "a/file"))
	if err != nil {
		t.Fatal(err)
	}
	if two, err := os.Stat(filepath.Join(to, "a/b/hard")); err != nil || !os.SameFile(one, two) {
		t.Error("a file with two names has become two files")
	}
	var references [2]string
	for i, dir := range []string{from, to} {
		if references[i], err = snapshot.Save(t.Context(), store, map[string]string{"files": filepath.Join(dir, "a")}); err != nil {
			t.Fatal(err)
		}
	}
	if references[0] != references[1] {
		t.Errorf("the same files have the references %q", references)
	}
	if err := snapshot.Delete(t.Context(), store, reference); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Load(t.Context(), store, reference, dirs(to)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a snapshot that was deleted: %v", err)
	}
}

func TestDamagedSnapshot(t *testing.T) {
	from, to, bucket := t.TempDir(), t.TempDir(), t.TempDir()
	makeTree(t, from)
	store := objects.Dir(bucket)
	reference, err := snapshot.Save(t.Context(), store, map[string]string{"files": from})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bucket, "snapshots", reference)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, text := range map[string][]byte{"cut": whole[:len(whole)/2], "flipped": flipped, "empty": nil, "longer": append(bytes.Clone(whole), "x"...)} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := snapshot.Load(t.Context(), store, reference, map[string]string{"files": to}); err == nil {
			t.Errorf("%s: it was taken for whole", name)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "a/b"), 0o755) })
	}
}
