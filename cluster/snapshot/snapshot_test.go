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
	dirs := map[string]string{"files": "a", "home": "absent"}
	reference, err := snapshot.Save(t.Context(), store, from, dirs)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one replaces what is there, directories without permission to write too
		if err := snapshot.Load(t.Context(), store, reference, to, dirs); err != nil {
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
		if references[i], err = snapshot.Save(t.Context(), store, dir, map[string]string{"files": "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if references[0] != references[1] {
		t.Errorf("the same files have the references %q", references)
	}
	if err := snapshot.Delete(t.Context(), store, reference); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Load(t.Context(), store, reference, to, dirs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a snapshot that was deleted: %v", err)
	}
}

func TestDamagedSnapshot(t *testing.T) {
	from, to, bucket := t.TempDir(), t.TempDir(), t.TempDir()
	makeTree(t, from)
	store := objects.Dir(bucket)
	reference, err := snapshot.Save(t.Context(), store, from, map[string]string{"files": "a"})
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
		if err := snapshot.Load(t.Context(), store, reference, to, map[string]string{"files": "a"}); err == nil {
			t.Errorf("%s: it was taken for whole", name)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "a/b"), 0o755) })
	}
}

// TestLinksLeadNowhere: directories and files that were replaced by links are not followed out of the base.
func TestLinksLeadNowhere(t *testing.T) {
	base, outside, store := t.TempDir(), t.TempDir(), objects.Dir(t.TempDir())
	secret := filepath.Join(outside, "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("secret"), 0o600), os.MkdirAll(filepath.Join(base, "real"), 0o700), os.Symlink(outside, filepath.Join(base, "state")),
		os.Symlink(secret, filepath.Join(base, "real", "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := snapshot.Save(t.Context(), store, base, map[string]string{"x": "state"}); err == nil {
		t.Error("a directory was stored that is a link to elsewhere")
	}
	reference, err := snapshot.Save(t.Context(), store, base, map[string]string{"x": "real"})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Load(t.Context(), store, reference, base, map[string]string{"x": "state/inner"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the file outside holds %q, %v", text, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	if target, err := os.Readlink(filepath.Join(base, "state", "inner", "link")); err != nil || target != secret {
		t.Errorf("the link leads to %q, %v", target, err)
	}
}

// TestWithoutPermission stores what its owner may not read, and replaces what its owner may not write.
func TestWithoutPermission(t *testing.T) {
	base, store := t.TempDir(), objects.Dir(t.TempDir())
	in := func(name string) string { return filepath.Join(base, name) }
	for _, err := range []error{
		os.MkdirAll(in("a/closed"), 0o700), os.WriteFile(in("a/closed/file"), []byte("text"), 0o600),
		os.Chmod(in("a/closed/file"), 0), os.Chmod(in("a/closed"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(in("a/closed"), 0o700) })
	dirs := map[string]string{"a": "a"}
	reference, err := snapshot.Save(t.Context(), store, base, dirs)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(in("a/closed")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("the directory's mode is %v, %v", info.Mode(), err)
	}
	if err := snapshot.Load(t.Context(), store, reference, base, dirs); err != nil {
		t.Fatal(err)
	}
	if again, err := snapshot.Save(t.Context(), store, base, dirs); again != reference || err != nil {
		t.Errorf("the copy has the reference %q, %v; want %q", again, err, reference)
	}
}
