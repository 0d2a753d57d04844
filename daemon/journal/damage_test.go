package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/toold/toold/daemon/journal"
)

// edit changes a database that no store has open, behind the journal's back.
func edit(t testing.TB, dir, statement string) {
	t.Helper()
	conn, err := sqlite.OpenConn(filepath.Join(dir, "journal.db"), sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteTransient(conn, statement, nil)
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
}

func wantCorrupt(t testing.TB, err error) {
	t.Helper()
	var corrupt *journal.CorruptError
	if !errors.As(err, &corrupt) {
		t.Errorf("error is %v, want a CorruptError", err)
		return
	}
	if !strings.Contains(err.Error(), "journal.db") {
		t.Errorf("%v: does not name the file", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add(t, create(t, s, "a"), "1")
	shut(t, s)
	edit(t, dir, "pragma user_version = 7")
	_, err := journal.Open(dir, journal.Config{})
	var version *journal.VersionError
	if !errors.As(err, &version) || version.Found != 7 || version.Known != 3 {
		t.Errorf("error is %v, want a VersionError that says 7 and 3", err)
	}
	edit(t, dir, "pragma user_version = 3") // nothing was changed
	wantRecords(t, all(t, lookup(t, open(t, dir), "a"), 0), "1:1")
}

func TestFilesThatAreNotOurs(t *testing.T) {
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "journal.db"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, prepare := range map[string]func(*testing.T, string){
		"text":             write(strings.Repeat("not a database\n", 1000)),
		"a few bytes":      write("SQLite"),
		"half a header":    write("SQLite format 3\x00\x10\x00\x02\x02"),
		"another database": func(t *testing.T, dir string) { edit(t, dir, "create table t(x)") },
		"a table is missing": func(t *testing.T, dir string) {
			shut(t, open(t, dir))
			edit(t, dir, "drop table state")
		},
		"a column is missing": func(t *testing.T, dir string) {
			shut(t, open(t, dir))
			edit(t, dir, "alter table records rename column call to tool")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			_, err := journal.Open(dir, journal.Config{})
			wantCorrupt(t, err)
			aside, err := journal.SetAside(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(aside); err != nil {
				t.Error(err)
			}
			add(t, create(t, open(t, dir), "a"), "a new beginning")
		})
	}
}

// A log with a hole is served up to the hole.
func TestWhatCanBeReadIsServed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, name := range []string{"a", "b"} {
		l := create(t, s, name)
		for _, body := range []string{"1", "2", "3", "4"} {
			if _, err := l.Append(journal.Entry{Call: "c", Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	shut(t, s)
	edit(t, dir, `delete from records where body = x'33' and id >> 36 = (select id from logs where name = 'a')`)
	s = open(t, dir)
	l := lookup(t, s, "a")
	c := l.Follow(0)
	defer c.Close()
	got, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, got, "1:1 2:2")
	for range 2 { // and again
		_, err = c.Next()
		wantCorrupt(t, err)
	}
	_, err = l.Find("c")
	wantCorrupt(t, err)
	wantRecords(t, all(t, l, 3), "4:4")
	wantRecords(t, all(t, lookup(t, s, "b"), 0), "1:1 2:2 3:3 4:4")
}

func TestLinksThatGoRoundEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	for range 3 {
		if _, err := l.Append(journal.Entry{Call: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	edit(t, dir, "update records set prev = 3")
	_, err := lookup(t, open(t, dir), "a").Find("c")
	wantCorrupt(t, err)
}

func TestEpoch(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := s.Epoch()
	if len(first) < 20 {
		t.Errorf("epoch is %q", first)
	}
	killed := copyFiles(t, dir) // as kill -9 would leave it
	shut(t, s)
	if again := open(t, dir).Epoch(); again != first {
		t.Errorf("epoch after closing and opening is %s, was %s", again, first)
	}
	restarted := copyFiles(t, killed)
	edit(t, restarted, "update meta set value = 'another boot' where key = 'boot'")
	if e := open(t, killed).Epoch(); e != first {
		t.Errorf("epoch after a kill is %s, was %s", e, first)
	}
	s = open(t, restarted)
	lost := s.Epoch()
	if lost == first {
		t.Error("the epoch is the same although the machine went down with the database open")
	}
	shut(t, s)
	if again := open(t, restarted).Epoch(); again != lost {
		t.Errorf("the new epoch is %s and then %s", lost, again)
	}
	if other := open(t, t.TempDir()).Epoch(); other == first {
		t.Error("two databases have the same epoch")
	}
}

// damaged makes the files that the fuzzer damages: after Close, and after a
// kill with a write-ahead log.
func damaged(f *testing.F) (closed, killed string) {
	closed = f.TempDir()
	s := open(f, closed)
	for i := range 3 {
		l := create(f, s, fmt.Sprint(i))
		for n := range 30 {
			_, err := l.Append(journal.Entry{
				Kind: 1, Call: fmt.Sprint(n / 3), Turn: uint64(n), Body: []byte(strings.Repeat("body", n*n)),
				State: []journal.Put{{Key: fmt.Sprint("key", n%4), Value: []byte("value")}},
			})
			if err != nil {
				f.Fatal(err)
			}
		}
	}
	killed = copyFiles(f, closed)
	shut(f, s)
	return closed, killed
}

// typed reports whether an error is one that a caller can tell.
func typed(err error) bool {
	var corrupt *journal.CorruptError
	var version *journal.VersionError
	return err == nil || errors.As(err, &corrupt) || errors.As(err, &version) ||
		errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrSealed) || errors.Is(err, journal.ErrFull)
}

// FuzzDamagedFile flips bytes of a database file and uses all of it: it is
// served or refused with a typed error, and never ends the process. What is
// salvaged of it is sound.
func FuzzDamagedFile(f *testing.F) {
	closed, killed := damaged(f)
	f.Add(uint8(0), uint32(0), []byte{1})
	f.Add(uint8(0), uint32(16), []byte{0xff, 0xff})
	f.Add(uint8(0), uint32(18), []byte{1}) // a format that SQLite only reads
	f.Add(uint8(0), uint32(100), []byte{0x80, 0x80, 0x80, 0x80})
	f.Add(uint8(0), uint32(4096), []byte("\x05\xff\xff\xff\xff\xff"))
	f.Add(uint8(1), uint32(0), []byte{0xff})
	f.Add(uint8(1), uint32(4200), []byte("xyz"))
	f.Add(uint8(2), uint32(4100), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, which uint8, at uint32, flip []byte) {
		var dir, name string
		switch which % 3 {
		case 0:
			dir, name = copyFiles(t, closed), "journal.db"
		case 1:
			dir, name = copyFiles(t, killed), "journal.db-wal"
		case 2:
			dir, name = copyFiles(t, killed), "journal.db"
		}
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range flip {
			b[(int(at)+i)%len(b)] ^= x
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		again := copyFiles(t, dir)
		s, err := journal.Open(dir, journal.Config{})
		if err == nil {
			err = useAll(s)
		}
		if !typed(err) {
			t.Errorf("%v (%T)", err, err)
		}
		if _, err = journal.Salvage(again); !typed(err) {
			t.Errorf("salvage: %v (%T)", err, err)
		}
		if err == nil {
			useSalvaged(t, again)
		}
	})
}

// useSalvaged opens what was salvaged, reads all of it and goes on with it.
func useSalvaged(t *testing.T, dir string) {
	s, err := journal.Open(dir, journal.Config{})
	if err != nil {
		t.Fatalf("what was salvaged cannot be opened: %v", err)
	}
	infos, err := s.Logs()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		l := lookup(t, s, info.Name)
		for _, r := range all(t, l, 0) { // fails on any damage
			if found, err := l.Find(r.Call); err != nil || r.Call != "" && len(found) == 0 {
				t.Errorf("call %q of record %d: %d records (%v)", r.Call, r.Seq, len(found), err)
			}
		}
		if _, err := l.State(""); err != nil {
			t.Error(err)
		}
		if info.Sealed.IsZero() {
			if last := add(t, l, "goes on"); last != info.Last+1 {
				t.Errorf("number %d follows %d", last, info.Last)
			}
		}
	}
	if ok, err := s.Intact(); err != nil || ok != "ok" {
		t.Errorf("the database is %q (%v)", ok, err)
	}
	shut(t, s)
}

// useAll does with every log what can be done, and returns the first error
// that is not typed.
func useAll(s *journal.Store) error {
	var errs []error
	infos, err := s.Logs()
	errs = append(errs, err)
	for _, info := range infos {
		l, err := s.Log(info.Name)
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, useLog(l)...)
		}
	}
	l, err := s.Create("new")
	errs = append(errs, err)
	if err == nil {
		errs = append(errs, useLog(l)...)
	}
	for _, info := range infos {
		errs = append(errs, s.Remove(info.Name))
	}
	errs = append(errs, s.Close())
	for _, err := range errs {
		if !typed(err) {
			return err
		}
	}
	return nil
}

func useLog(l *journal.Log) []error {
	c := l.Follow(0)
	defer c.Close()
	next := func() error {
		for {
			if records, err := c.Next(); err != nil || len(records) == 0 {
				return err
			}
		}
	}
	read := next()
	_, found := l.Find("3")
	_, state := l.State("key")
	_, appended := l.Append(journal.Entry{Call: "3", Body: []byte("new"), State: []journal.Put{{Key: "key0", Value: []byte("x")}}})
	again := next()
	return []error{read, found, state, appended, again, l.Trim(l.First() + 3), l.Seal()}
}
