package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/daemon/journal"
)

// checkOld checks that a store holds what the databases below testdata were made with,
// by the versions of their time: logs of twelve records each, three to a call, one
// log sealed, one trimmed up to 5, one empty.
func checkOld(t *testing.T, s *journal.Store) {
	t.Helper()
	infos, err := s.Logs()
	if err != nil || len(infos) != 4 {
		t.Fatalf("logs %v, %v; want 4", infos, err)
	}
	for i, want := range []journal.Info{{Name: "open", First: 1, Last: 12}, {Name: "sealed", First: 1, Last: 12}, {Name: "trimmed", First: 6, Last: 12}, {Name: "empty", First: 1}} {
		got := infos[i]
		if got.Name != want.Name || got.First != want.First || got.Last != want.Last || got.Sealed.IsZero() != (want.Name != "sealed") {
			t.Errorf("log %+v, want %+v", got, want)
		}
		l := lookup(t, s, want.Name)
		var size int64
		records := all(t, l, want.First-1)
		for n, r := range records {
			seq := int(want.First) + n
			if body := fmt.Sprintf("%s %d %s", want.Name, seq, strings.Repeat("x", (seq-1)*20)); string(r.Body) != body ||
				r.Call != fmt.Sprintf("1-%d", (seq-1)/3) || !r.Time.Equal(time.Unix(1790000000+int64(seq-1), 0)) || r.Turn != 1 {
				t.Errorf("%s: record %d is %+v", want.Name, seq, r)
			}
			size += int64(len(r.Body)) + 64
		}
		if len(records) != int(want.Last+1-want.First) {
			t.Errorf("%s: %d records, want %d to %d", want.Name, len(records), want.First, want.Last)
		}
		if bytes, err := l.Bytes(); bytes != size || err != nil {
			t.Errorf("%s: %d bytes, want %d (%v)", want.Name, bytes, size, err)
		}
		if state, err := l.State(""); err != nil || want.Name != "empty" && string(state["meta"]) != want.Name {
			t.Errorf("%s: state %q (%v)", want.Name, state, err)
		}
		if found, err := l.Find("1-2"); err != nil || want.Name != "empty" && len(found) != 3 {
			t.Errorf("%s: %d records of a call, want 3 (%v)", want.Name, len(found), err)
		}
	}
}

// A database of an older version becomes one of this version, and the crash of who turns
// it into one, at any moment, leaves it to the next.
func TestMigration(t *testing.T) {
	t.Run("1", func(t *testing.T) { tryMigration(t, "testdata/v1", 40<<10, 2001) })
	t.Run("2", func(t *testing.T) { tryMigration(t, "testdata/v2", 4<<10, 501) })
}

// tryMigration opens a copy of the database, and copies in which the write-ahead log of that, of at least least bytes, is cut
// off at every step bytes.
func tryMigration(t *testing.T, old string, least, step int64) {
	dir := copyFiles(t, old)
	s := open(t, dir)
	checkOld(t, s)
	for pragma, want := range map[string]int{"user_version": 3, "auto_vacuum": 2} {
		if got, err := s.Pragma(pragma); got != want || err != nil {
			t.Errorf("%s is %d, want %d (%v)", pragma, got, want, err)
		}
	}
	migrated := copyFiles(t, dir)
	epoch := s.Epoch()
	add(t, lookup(t, s, "open"), "goes on")
	shut(t, s)
	s = open(t, dir)
	if s.Epoch() != epoch {
		t.Error("another epoch at the next opening")
	}
	shut(t, s)

	info, err := os.Stat(filepath.Join(migrated, "journal.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() < least {
		t.Fatalf("the write-ahead log has %d bytes, want the whole migration", info.Size())
	}
	for cut := int64(0); cut <= info.Size(); cut += step {
		torn := copyFiles(t, migrated)
		if err := os.Truncate(filepath.Join(torn, "journal.db-wal"), cut); err != nil {
			t.Fatal(err)
		}
		s := open(t, torn)
		checkOld(t, s)
		if ok, err := s.Intact(); err != nil || ok != "ok" {
			t.Errorf("cut at %d: the database is %q (%v)", cut, ok, err)
		}
		if mode, err := s.Pragma("auto_vacuum"); mode != 2 || err != nil {
			t.Errorf("cut at %d: auto_vacuum is %d, want 2 (%v)", cut, mode, err)
		}
		add(t, lookup(t, s, "open"), "goes on")
		shut(t, s)
	}
}
