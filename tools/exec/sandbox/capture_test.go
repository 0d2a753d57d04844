package sandbox

import (
	"bytes"
	"os"
	"testing"
)

// An echo writes back into the pipe from which it is given something, as one would who never stops printing.
type echo struct {
	to    *os.File
	taken int
}

func (e *echo) Write(p []byte) (int, error) {
	e.taken += len(p)
	return e.to.Write(p)
}

// Somebody outside of the tree goes on writing: what the pipe could hold is taken, and no more.
func TestFinishEndsThoughThePipeIsNeverEmpty(t *testing.T) {
	e := &echo{}
	c, far, err := newCapture(e)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	e.to = far
	if _, err := far.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
		t.Fatal(err)
	}
	go c.copy(func() {})
	if err := c.finish(); err != nil {
		t.Fatal(err)
	}
	if e.taken < latest {
		t.Errorf("%d bytes were taken after the end, want at least %d", e.taken, latest)
	}
}

func TestBeginning(t *testing.T) {
	b := Beginning{Most: 5}
	for _, c := range []struct {
		piece, want string
		cut         bool
	}{{"abc", "abc", false}, {"de", "abcde", false}, {"", "abcde", false}, {"fg", "abcde", true}} {
		if n, err := b.Write([]byte(c.piece)); n != len(c.piece) || err != nil || b.String() != c.want || b.Cut != c.cut {
			t.Errorf("after %q: %d, %v, kept %q, cut %v", c.piece, n, err, b.String(), b.Cut)
		}
	}
}
