package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// wide makes a database of three logs of 400 records of 1 KB, each named by its
// log and number, three to a call, with 40 values of state each, and closes it.
func wide(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	for _, name := range []string{"a", "b", "c"} {
		l := create(t, s, name)
		var entries []journal.Entry
		for n := range 400 {
			e := journal.Entry{Call: fmt.Sprint(n / 3), Body: fmt.Appendf(nil, "%s%d %s", name, n+1, strings.Repeat("x", 1000))}
			if n < 40 {
				e.State = []journal.Put{{Key: fmt.Sprintf("key%02d", n), Value: []byte(name)}}
			}
			entries = append(entries, e)
		}
		if _, err := l.Append(entries...); err != nil {
			t.Fatal(err)
		}
	}
	if err := lookup(t, s, "c").Seal(); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	return dir
}

// checkSalvaged checks that every log has its records or says which it lacks,
// that nothing else is there, and that it can be gone on with. It gives how many
// records there are.
func checkSalvaged(t *testing.T, s *journal.Store, report *journal.Salvaged) (records int) {
	t.Helper()
	infos, err := s.Logs()
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != report.Logs {
		t.Errorf("%d logs, reported are %d", len(infos), report.Logs)
	}
	lost := map[string]journal.Loss{}
	for _, l := range report.Lost {
		lost[l.Log] = l
	}
	for _, info := range infos {
		l := lookup(t, s, info.Name)
		gaps := l.Gaps()
		if fmt.Sprint(gaps) != fmt.Sprint(lost[info.Name].Gaps) {
			t.Errorf("%s: gaps %v, reported are %v", info.Name, gaps, lost[info.Name].Gaps)
		}
		next := l.First()
		for _, r := range all(t, l, 0) {
			for len(gaps) > 0 && gaps[0].First == next {
				next, gaps = gaps[0].Last+1, gaps[1:]
			}
			if r.Seq != next || !strings.HasPrefix(string(r.Body), fmt.Sprintf("%s%d ", info.Name, r.Seq)) {
				t.Fatalf("%s: record %d is %.20q where %d should be", info.Name, r.Seq, r.Body, next)
			}
			found, err := l.Find(r.Call)
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: call %s of record %d has %d records (%v)", info.Name, r.Call, r.Seq, len(found), err)
			}
			next++
			records++
		}
		if len(gaps) == 1 && gaps[0].First == next {
			next = gaps[0].Last + 1
		}
		if next != l.Last()+1 {
			t.Errorf("%s: the records end before %d, the log at %d", info.Name, next, l.Last())
		}
		if next <= 400 && !lost[info.Name].Tail {
			t.Errorf("%s: ends at %d, and nothing says that there was more", info.Name, next-1)
		}
		state, err := l.State("")
		if err != nil || len(state) < 40 && !lost[info.Name].State {
			t.Errorf("%s: %d values, and nothing says that some are lost (%v)", info.Name, len(state), err)
		}
		if info.Sealed.IsZero() {
			if last := add(t, l, "goes on"); last != next {
				t.Errorf("%s: the next number is %d, want %d", info.Name, last, next)
			}
		}
	}
	if ok, err := s.Intact(); err != nil || ok != "ok" {
		t.Errorf("the database is %q (%v)", ok, err)
	}
	return records
}

// salvaged salvages dir and opens it. The epoch must be another one.
func salvaged(t *testing.T, dir, epoch string) (*journal.Store, *journal.Salvaged) {
	t.Helper()
	report, err := journal.Salvage(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if s.Epoch() == epoch || len(s.Epoch()) < 20 {
		t.Errorf("the epoch is %q after damage", s.Epoch())
	}
	if info, err := os.Stat(report.Aside); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the damaged file: %v, %v", info, err)
	}
	return s, report
}

func TestSalvageOfSoundFile(t *testing.T) {
	dir := wide(t)
	s, report := salvaged(t, dir, "")
	if len(report.Lost) > 0 {
		t.Errorf("lost %v of a sound file", report.Lost)
	}
	if n := checkSalvaged(t, s, report); n != 1200 {
		t.Errorf("%d records, want 1200", n)
	}
}

// TestSalvagePages overwrites one page after the other: no more is lost than it
// can hold.
func TestSalvagePages(t *testing.T) {
	dir := wide(t)
	info, err := os.Stat(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	harmed := 0
	for at := int64(1); at < info.Size()/page; at += 83 {
		damaged := copyFiles(t, dir)
		f, err := os.OpenFile(filepath.Join(damaged, "journal.db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("garbage ", page/8)), at*page); err != nil {
			t.Fatal(err)
		}
		f.Close()
		s, report := salvaged(t, damaged, "")
		n := checkSalvaged(t, s, report)
		if n < 1200 {
			harmed++
		}
		if n < 1194 { // six records of 1 KB do not fit on a page
			t.Errorf("page %d: %d records of 1200 are left: %+v", at, n, report.Lost)
		}
		shut(t, s)
	}
	if harmed < 3 {
		t.Errorf("%d pages with records were hit", harmed)
	}
}

// TestSalvageTornFile: a file that was cut off is read as far as it goes.
func TestSalvageTornFile(t *testing.T) {
	dir := wide(t)
	path := filepath.Join(dir, "journal.db")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	_, err = journal.Open(dir, journal.Config{})
	wantCorrupt(t, err)
	s, report := salvaged(t, dir, "")
	if n := checkSalvaged(t, s, report); n < 580 {
		t.Errorf("%d of 1200 records are left of half the file: %+v", n, report)
	}
}

// TestDamageIsRemembered: damage that is met while the database is open is met by
// the next Open, too, and salvage does away with it.
func TestDamageIsRemembered(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add(t, create(t, s, "a"), "a1 ", "a2 ", "a3 ")
	epoch := s.Epoch()
	shut(t, s)
	edit(t, dir, `delete from records where id & 3 = 2`)
	s = open(t, dir)
	if s.Damaged() != nil {
		t.Errorf("damage before it is met: %v", s.Damaged())
	}
	c := lookup(t, s, "a").Follow(1)
	_, err := c.Next()
	wantCorrupt(t, err)
	wantCorrupt(t, s.Damaged())
	shut(t, s)
	_, err = journal.Open(dir, journal.Config{})
	wantCorrupt(t, err)
	s, report := salvaged(t, dir, epoch)
	wantRecords(t, all(t, lookup(t, s, "a"), 0), "1:a1  3:a3 ")
	if len(report.Lost) != 1 || fmt.Sprint(report.Lost[0].Gaps) != "[{2 2}]" {
		t.Errorf("lost %+v, want record 2", report.Lost)
	}
	shut(t, s)
	s = open(t, dir)
	wantRecords(t, all(t, lookup(t, s, "a"), 1), "3:a3 ")
}

// TestSalvageThatWasCutOff: killed before the new database is whole, nothing has
// happened; killed afterwards, it is put into its place by the next Open.
func TestSalvageThatWasCutOff(t *testing.T) {
	dir := wide(t)
	other := wide(t)
	path := filepath.Join(dir, "journal.db")
	if err := os.WriteFile(path+".salvage", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, dir))
	s, report := salvaged(t, dir, "")
	checkSalvaged(t, s, report)
	shut(t, s)

	whole, err := os.ReadFile(filepath.Join(other, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"": []byte("damaged"), "-wal": []byte("of the damaged one"), ".new": whole} {
		if err := os.WriteFile(path+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := checkSalvaged(t, open(t, dir), &journal.Salvaged{Logs: 3}); n != 1200 {
		t.Errorf("%d records, want 1200", n)
	}
}

func TestNothingToSalvage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Salvage(dir)
	wantCorrupt(t, err)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 2 {
		t.Errorf("files %v after a salvage in vain (%v)", files, err)
	}
	if _, err := journal.SetAside(dir); err != nil {
		t.Fatal(err)
	}
	var corrupt *journal.CorruptError
	if _, err := journal.Open(dir, journal.Config{}); errors.As(err, &corrupt) {
		t.Error(err)
	}
}

// FuzzScan reads rows out of pages of any bytes.
func FuzzScan(f *testing.F) {
	dir := wide(f)
	path := filepath.Join(dir, "journal.db")
	if n, err := journal.ScanFile(path); n != 1200 || err != nil {
		f.Fatalf("%d rows are found in a sound file, want 1200 (%v)", n, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for at := 0; at < len(content); at += 64 << 10 {
		f.Add(content[at:min(at+8192, len(content))])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "pages")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := journal.ScanFile(path); err != nil || n > len(content)/2 {
			t.Errorf("%d rows in %d bytes, %v", n, len(content), err)
		}
	})
}
