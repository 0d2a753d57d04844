package journal_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// childDir makes the test binary a child that appends until it is killed.
const childDir = "JOURNAL_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, appendForever(dir))
		return
	}
	m.Run()
}

// appendForever appends to three logs from two goroutines each, and follows
// each. It prints a line for everything that it was told or shown.
func appendForever(dir string) error {
	s, err := journal.Open(dir, journal.Config{})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "epoch", s.Epoch())
	failed := make(chan error)
	for i := range 3 {
		l, err := s.Create(fmt.Sprint(i))
		if err != nil {
			return err
		}
		for w := range 2 {
			go func() {
				for n := 0; ; n++ {
					e := journal.Entry{Call: fmt.Sprint(n / 3), Body: fmt.Appendf(nil, "%d/%d %s", w, n, strings.Repeat("x", n%2000))}
					if n%7 == 0 {
						e.Durability = journal.Synced
					}
					last, err := l.Append(e)
					if err != nil {
						failed <- err
					}
					fmt.Fprintf(os.Stdout, "%d %d %s\n", i, last, e.Body)
				}
			}()
		}
		go func() {
			for c := l.Follow(0); ; {
				records, err := c.Next()
				if err != nil {
					failed <- err
				}
				for _, r := range records {
					fmt.Fprintf(os.Stdout, "%d %d %s\n", i, r.Seq, r.Body)
				}
				if len(records) == 0 {
					<-c.Wake()
				}
			}
		}()
	}
	return <-failed
}

func TestKillLosesNothingThatWasSeen(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var kill sync.Once
	seen := map[string]string{} // "log number" -> body
	epoch := ""
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // a torn last line says nothing
		}
		if err != nil {
			t.Fatal(err)
		}
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if f[0] == "epoch" {
			epoch = f[1]
			continue
		}
		key := f[0] + " " + f[1]
		if was, ok := seen[key]; ok && was != f[2] {
			t.Errorf("number %s is %.20q and %.20q", key, was, f[2])
		}
		if seen[key] = f[2]; len(seen) > 3000 {
			kill.Do(func() {
				if err := child.Process.Kill(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := child.Wait(); err == nil {
		t.Error("the child ended by itself")
	}

	s := open(t, dir)
	if s.Epoch() != epoch {
		t.Errorf("epoch %s, was %s: no number can have been lost", s.Epoch(), epoch)
	}
	for i := range 3 {
		l := lookup(t, s, fmt.Sprint(i))
		for n, r := range all(t, l, 0) {
			if r.Seq != uint64(n+1) {
				t.Fatalf("log %d: record %d has number %d", i, n+1, r.Seq)
			}
			key := fmt.Sprintf("%d %d", i, r.Seq)
			if was, ok := seen[key]; ok && was != string(r.Body) {
				t.Errorf("number %s is %.20q, was seen as %.20q", key, r.Body, was)
			}
			delete(seen, key)
		}
		if found, err := l.Find("1"); err != nil || len(found) != 6 {
			t.Errorf("log %d: %d records of a call, want 6 (%v)", i, len(found), err)
		}
		add(t, l, "goes on")
	}
	for key := range seen {
		t.Errorf("number %s was seen and is gone", key)
	}
}

// copyFiles copies the database as a crash would leave it now.
func copyFiles(t testing.TB, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// A loss of power may cut the write-ahead log anywhere after its last sync.
// What is left is the beginning of what was written.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	for i := range 40 {
		add(t, l, fmt.Sprintf("%d%s", i+1, strings.Repeat("x", 500)))
	}
	info, err := os.Stat(filepath.Join(dir, "journal.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	var before uint64
	for cut := int64(0); cut <= info.Size(); cut += 3001 {
		torn := copyFiles(t, dir)
		if err := os.Truncate(filepath.Join(torn, "journal.db-wal"), cut); err != nil {
			t.Fatal(err)
		}
		ts := open(t, torn)
		if infos, err := ts.Logs(); err != nil || len(infos) == 0 { // cut before the log was there
			if err != nil {
				t.Errorf("cut at %d: %v", cut, err)
			}
			shut(t, ts)
			continue
		}
		tl := lookup(t, ts, "a")
		for n, r := range all(t, tl, 0) {
			if want := fmt.Sprintf("%dx", n+1); r.Seq != uint64(n+1) || !strings.HasPrefix(string(r.Body), want) {
				t.Fatalf("cut at %d: record %d is %d %.10q", cut, n+1, r.Seq, r.Body)
			}
		}
		if tl.Last() < before {
			t.Errorf("cut at %d: ends at %d, a shorter log ended at %d", cut, tl.Last(), before)
		}
		before = tl.Last()
		add(t, tl, "goes on")
		shut(t, ts)
	}
	if before < 30 {
		t.Errorf("the longest torn log has %d records of 40", before)
	}
}
