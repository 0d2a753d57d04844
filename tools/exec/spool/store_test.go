package spool

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func openShelf(t *testing.T, b Bounds) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "sessions"), b, nobody)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nobody owns the sessions of tests in which that does not matter.
func nobody(string) string { return "" }

func session(t *testing.T, s *Store, name string) *Dir {
	t.Helper()
	d, err := s.Dir(name, nobody(name))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// printed makes an output of so many bytes that has ended some minutes ago.
func printed(t *testing.T, d *Dir, name string, bytes, minutes int) *Output {
	t.Helper()
	o := create(t, d, name)
	write(t, o, Stdout, strings.Repeat("x", bytes))
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	when := time.Now().Add(-time.Duration(minutes) * time.Minute)
	if err := os.Chtimes(o.Path(), when, when); err != nil {
		t.Fatal(err)
	}
	return o
}

func kept(o *Output) bool {
	_, err := os.Stat(o.Path())
	return err == nil
}

// TestOldestGoFirst: a session over its bound loses its own oldest outputs, and one that still grows loses nothing.
func TestOldestGoFirst(t *testing.T) {
	s := openShelf(t, Bounds{Session: 10_000, Principal: 1 << 20, All: 1 << 20})
	d, other := session(t, s, "a"), session(t, s, "b")
	oldest, older := printed(t, d, "1", 4000, 3), printed(t, d, "2", 4000, 2)
	foreign := printed(t, other, "1", 4000, 9)
	grows := create(t, d, "3")
	write(t, grows, Stdout, strings.Repeat("y", 5000))
	if kept(oldest) || !kept(older) || !kept(foreign) {
		t.Errorf("kept: oldest %v, older %v, another session's %v", kept(oldest), kept(older), kept(foreign))
	}
	write(t, grows, Stdout, strings.Repeat("y", 4000))
	var limit *LimitError
	if err := grows.Write(Stdout, bytes.Repeat([]byte("y"), 4000)); !errors.As(err, &limit) || !errors.Is(err, ErrLimit) || limit.Bytes != 10_000 {
		t.Errorf("beyond the session's bound: %v", err)
	}
	if kept(older) || grows.Total() != 10_000 {
		t.Errorf("%d bytes came through, and the older output is kept: %v", grows.Total(), kept(older))
	}
}

// TestBoundOfAll: what is oldest in any session goes, and what a dead daemon has left counts.
func TestBoundOfAll(t *testing.T) {
	s := openShelf(t, Bounds{Session: 1 << 20, Principal: 1 << 20, All: 10_000})
	left := printed(t, session(t, s, "closed"), "1", 6000, 5)
	s, err := OpenStore(s.path, s.bounds, nobody)
	if err != nil {
		t.Fatal(err)
	}
	d := session(t, s, "a")
	newer := printed(t, d, "1", 3000, 1)
	if !kept(left) {
		t.Fatal("what fits is gone")
	}
	if path, err := d.Spill("2", strings.Repeat("z", 5000)); err != nil || kept(left) || !kept(newer) {
		t.Errorf("spilled to %q (%v); kept: the oldest %v, the newer %v", path, err, kept(left), kept(newer))
	}
	if path, err := d.Spill("3", strings.Repeat("z", 11_000)); !errors.Is(err, ErrLimit) {
		t.Errorf("what never fits was spilled to %q (%v)", path, err)
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if s.used != 0 {
		t.Errorf("%d bytes are counted where nothing is", s.used)
	}
}

// TestCountsAgree: after many outputs at once what is counted is what is on disk, and never above the bounds.
func TestCountsAgree(t *testing.T) {
	s := openShelf(t, Bounds{Session: 50_000, Principal: 1 << 20, All: 120_000})
	var printing sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		d := session(t, s, name)
		printing.Go(func() {
			for n := range 60 {
				o, err := d.Create(strings.Repeat("o", n+1))
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					_ = o.Write(Channel(n%2), bytes.Repeat([]byte("x"), 900)) // a limit may be met, which is the point
				}
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	printing.Wait()
	counted := s.used
	if s.Measure(); s.used != counted || counted > 120_000 || counted < 60_000 {
		t.Errorf("counted %d bytes, and there are %d; the bound is 120000", counted, s.used)
	}
}

// TestGoneWithWhatHoldsIt: folders that were removed are made again, but nothing is made where what holds them was.
func TestGoneWithWhatHoldsIt(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store, err := OpenStore(filepath.Join(state, "sessions"), Bounds{Session: 1 << 20, Principal: 1 << 20, All: 1 << 20}, nobody)
	if err != nil {
		t.Fatal(err)
	}
	d := session(t, store, "a")
	if err := os.RemoveAll(filepath.Join(state, "sessions")); err != nil {
		t.Fatal(err)
	}
	write(t, create(t, d, "1"), Stdout, "x")
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := create(t, d, "2").Write(Stdout, []byte("x")); !errors.Is(err, ErrGone) {
		t.Errorf("an output without a place: %v, want ErrGone", err)
	}
	if _, err := d.Spill("3", "text"); !errors.Is(err, ErrGone) {
		t.Errorf("a text without a place: %v, want ErrGone", err)
	}
	if _, err := os.Lstat(state); err == nil {
		t.Error("the directory that was removed is there again")
	}
}

// TestOwnersApart: a principal over its bound loses its own oldest outputs in any of its sessions, and no other's; what still
// grows is stopped. That holds after a restart too, when only the folders are known.
func TestOwnersApart(t *testing.T) {
	owner := func(session string) string { return session[:1] }
	s, err := OpenStore(filepath.Join(t.TempDir(), "sessions"), Bounds{Session: 1 << 20, Principal: 10_000, All: 1 << 20}, owner)
	if err != nil {
		t.Fatal(err)
	}
	dir := func(name string) *Dir {
		d, err := s.Dir(name, owner(name))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	oldest, older, foreign := printed(t, dir("a1"), "1", 4000, 3), printed(t, dir("a2"), "1", 4000, 2), printed(t, dir("b1"), "1", 4000, 9)
	write(t, create(t, dir("a3"), "1"), Stdout, strings.Repeat("y", 5000))
	if kept(oldest) || !kept(older) || !kept(foreign) {
		t.Errorf("kept %v, %v and %v, want false, true, true", kept(oldest), kept(older), kept(foreign))
	}
	if s, err = OpenStore(s.path, s.bounds, owner); err != nil {
		t.Fatal(err)
	}
	grows := create(t, dir("a4"), "1")
	n, err := grows.Writer(Stdout).Write(bytes.Repeat([]byte("z"), 12_000))
	limit, is := errors.AsType[*LimitError](err)
	if !is || limit.Of != OfPrincipal || limit.Bytes != 10_000 || n >= 10_000 {
		t.Errorf("%d bytes were taken: %v", n, err)
	}
	if kept(older) || !kept(foreign) {
		t.Errorf("kept %v and %v, want false, true", kept(older), kept(foreign))
	}
}
