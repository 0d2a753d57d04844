package journal_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// TestSealedLogsAreLetGo: a log that takes no more records costs no memory once nobody uses it, and is the same for all who
// still do.
func TestSealedLogsAreLetGo(t *testing.T) {
	s := open(t, t.TempDir())
	const logs = 50
	for n := range logs {
		l := create(t, s, fmt.Sprint(n))
		if _, err := l.Append(journal.Entry{Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := l.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	used, err := s.Log("7")
	if err != nil {
		t.Fatal(err)
	}
	s.Sweep()
	runtime.GC()
	s.Sweep()
	if known := s.Known(); known < 1 || known > 3 { // a stack may still hold one or the other
		t.Errorf("%d logs are kept in memory, want the one that is used", known)
	}
	if again, err := s.Log("7"); err != nil || again != used {
		t.Errorf("the log that is used is another one (%v)", err)
	}
	if l, err := s.Log("8"); err != nil || l.Last() != 1 {
		t.Errorf("a log that was let go: %v", err)
	}
	runtime.KeepAlive(used)
}
