package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestPresent: whatever is deleted, moved or replaced is noticed at once, and so is its return. What happens beside the
// files does not matter.
func TestPresent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "journal")
	away := filepath.Join(t.TempDir(), "away")
	s := open(t, dir)
	is := func(what string, gone bool) {
		t.Helper()
		if err := s.Present(); (err != nil) != gone {
			t.Errorf("%s: %v", what, err)
		}
	}
	is("at first", false)
	database := filepath.Join(dir, "journal.db")
	for _, path := range []string{database, database + "-wal", dir, filepath.Dir(dir)} {
		rename(t, path, away)
		is("without "+path, true)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		is("with another "+path, true)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		rename(t, away, path)
		is("with "+path+" again", false)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is("beside another file", false)
}

// TestPresentWhenCalm: what is deleted after the directory has been as it is for long is noticed with the next step of
// the file system's clock.
func TestPresentWhenCalm(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Trust(); err != nil {
		t.Fatal(err)
	}
	if err := s.Present(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "journal.db")); err != nil {
		t.Fatal(err)
	}
	for s.Present() == nil {
		if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "notes")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMovedDatabaseIsWhole: a database that is moved away without its write-ahead log has all records when its store is
// closed, and what is left of the log does not harm the one that is in its place then.
func TestMovedDatabaseIsWhole(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	add(t, l, "1", "2")
	rename(t, filepath.Join(dir, "journal.db"), filepath.Join(away, "journal.db"))
	add(t, l, "3")
	shut(t, s)
	for where, want := range map[string]uint64{away: 3, dir: 0} {
		s := open(t, where)
		l, err := s.Log("a")
		if want > 0 && (err != nil || l.Last() != want) {
			t.Errorf("where it was moved to: %v", err)
		}
		if want == 0 {
			wantError(t, err, journal.ErrNotFound)
		}
		if verdict, err := s.Intact(); err != nil || verdict != "ok" {
			t.Errorf("%s: %s (%v)", where, verdict, err)
		}
		shut(t, s)
	}
}

func BenchmarkPresent(b *testing.B) {
	s := open(b, b.TempDir())
	if err := s.Trust(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Present(); err != nil {
			b.Fatal(err)
		}
	}
}
