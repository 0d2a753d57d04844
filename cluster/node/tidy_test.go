package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
)

// An oldLog is a log whose end can be answered as it was before, or not at all.
type oldLog struct {
	log.Log
	last atomic.Pointer[answer] // nil: as it is
}

// An answer is what the log answers instead of its end.
type answer func(log.Segment) (log.Segment, error)

func (l *oldLog) Last(ctx context.Context, w log.Workspace) (log.Segment, error) {
	end, err := l.Log.Last(ctx, w)
	last := l.last.Load()
	if last == nil || err != nil {
		return end, err
	}
	return (*last)(end)
}

// TestTidy: a node removes the directory of a workspace a day after another has taken it over, or when it was given up long ago. No
// answer of the log that is outdated, missing or empty removes anything, and nothing does while the files are the newest.
func TestTidy(t *testing.T) {
	c := newCluster(t, "a", "b")
	old := &oldLog{Log: c.log}
	dir := shortDir(t)
	in := func(config *node.Config) { config.Dir, config.Log = dir, old }
	a := c.start("a", in)
	own := filepath.Join(dir, alices.ID())
	tidied := func(m *machine, gone bool, when string) {
		t.Helper()
		m.TidyNow(t.Context())
		if _, err := os.Stat(filepath.Join(own, "files", "file")); gone != errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the file is gone: %v, want %v", when, err, gone)
		}
	}
	k := a.attach(0)
	k.bash("1", "echo text >file; mkdir sub; touch sub/file; chmod 500 sub")
	wantStart(t, k.result("1"), "OK")
	tidied(a, false, "in use")
	a.Kill()
	_ = k.end()
	a = c.start("a", in)
	tidied(a, false, "after a crash")
	k = a.attach(k.last)
	dayAgo := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(own, "files.json"), dayAgo, dayAgo); err != nil { // it was taken over then
		t.Fatal(err)
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(own, "files.json")); err != nil || !info.ModTime().After(dayAgo) {
		t.Errorf("what was given up a moment ago counts as of before: %v", err)
	}
	released, err := c.log.Last(t.Context(), alices)
	if err != nil {
		t.Fatal(err)
	}
	a = c.start("a", in)
	tidied(a, false, "given up a moment ago")
	_ = c.start("b").attach(k.last)
	for when, last := range map[string]answer{
		"an outdated answer": func(log.Segment) (log.Segment, error) { return released, nil },
		"an empty answer":    func(log.Segment) (log.Segment, error) { return log.Segment{}, nil },
		"no answer":          func(log.Segment) (log.Segment, error) { return log.Segment{}, log.ErrUnknown },
		"an unknown segment": func(log.Segment) (log.Segment, error) { return log.Segment{Pos: 9, Data: []byte("new")}, nil },
	} {
		old.last.Store(&last)
		tidied(a, false, when)
	}
	old.last.Store(nil)
	tidied(a, false, "taken over by another a moment ago")
	if err := os.Chtimes(filepath.Join(own, "files.json"), dayAgo, dayAgo); err != nil {
		t.Fatal(err)
	}
	outdated := answer(func(log.Segment) (log.Segment, error) { return released, nil })
	old.last.Store(&outdated)
	tidied(a, false, "given up a day ago")
	old.last.Store(nil)
	tidied(a, true, "taken over by another a day ago")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// TestTidyAfterAWhile: what was given up is removed when it was kept for long enough, and what no workspace is known of stays.
func TestTidyAfterAWhile(t *testing.T) {
	c := newCluster(t, "a")
	dir := shortDir(t)
	a := c.start("a", func(config *node.Config) { config.Dir, config.Keep = dir, 1 })
	k := a.attach(0)
	k.bash("1", "echo text >file")
	wantStart(t, k.result("1"), "OK")
	own, other := filepath.Join(dir, alices.ID()), filepath.Join(dir, "aaaaaaaaaaaaaaaaaaaaaaaa")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "files.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.SetDraining(true)
	for a.Load().Workspaces > 0 {
		_ = k.end()
	}
	a.TidyNow(t.Context())
	if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	a.SetDraining(false)
	again := a.attach(k.last)
	again.bash("2", "cat file")
	if told := again.result("2"); told != "OK text" {
		t.Errorf("the file holds %q", told)
	}
}
