package spool

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// put writes to the writers of an output; a text that begins with ! is for Stderr.
func put(t testing.TB, o *Output, texts ...string) {
	t.Helper()
	for _, text := range texts {
		ch := Stdout
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			ch, text = Stderr, rest
		}
		if _, err := o.Writer(ch).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinesStayWhole: a line is not interrupted by what comes on the other channel meanwhile, and one that has begun is there at
// once.
func TestLinesStayWhole(t *testing.T) {
	d := openDir(t)
	long := strings.Repeat("x", maxHeld)
	for _, x := range []struct {
		name        string
		texts       []string
		now, closed string
	}{
		{"in order", []string{"a\n", "!b\n", "c\n"}, "a\nb\nc\n", "a\nb\nc\n"},
		{"a torn line", []string{"ab", "!err\n", "cd\n"}, "abcd\nerr\n", "abcd\nerr\n"},
		{"torn again", []string{"ab", "!err\n", "cd\nef", "!more\n", "gh\n"}, "abcd\nerr\nefgh\nmore\n", "abcd\nerr\nefgh\nmore\n"},
		{"two open lines", []string{"ab", "!x\ny", "c\nd", "!z\n", "e\n"}, "abc\nx\nde\nyz\n", "abc\nx\nde\nyz\n"},
		{"a prompt", []string{"Name? ", "!hint\n"}, "Name? ", "Name? hint\n"},
		{"the other way", []string{"!e", "o\n", "!f\n"}, "ef\no\n", "ef\no\n"},
		{"too much", []string{"ab", "!" + long, "!y\n", "cd\n"}, "ab" + long + "y\ncd\n", "ab" + long + "y\ncd\n"},
		{"no end", []string{"a", "!b", "c"}, "ac", "acb"},
	} {
		o := create(t, d, strings.ReplaceAll(x.name, " ", "-"))
		put(t, o, x.texts...)
		if got, _ := all(t, o, 100); got != x.now {
			t.Errorf("%s: %.80q is there, want %.80q", x.name, got, x.now)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _ := all(t, o, 100); got != x.closed {
			t.Errorf("%s: %.80q at the end, want %.80q", x.name, got, x.closed)
		}
	}
}

// TestDelayEnds: what waits for the end of a line that does not come is there after a while.
func TestDelayEnds(t *testing.T) {
	o := create(t, openDir(t), "call")
	put(t, o, "Name? ", "!hint\n")
	for {
		changed := o.Changed()
		if got, _ := all(t, o, 100); got == "Name? hint\n" {
			return
		}
		<-changed
	}
}

// TestLinesLoseNothing: each channel has its bytes, in order, however they are cut; and whole lines stay whole.
func TestLinesLoseNothing(t *testing.T) {
	d := openDir(t)
	rapid.Check(t, func(r *rapid.T) {
		o := create(t, d, rapid.StringMatching("[a-z]{20}").Draw(r, "name"))
		var want [channels]strings.Builder
		for _, piece := range rapid.SliceOf(rapid.StringMatching("!?[ab\n]{1,6}")).Draw(r, "pieces") {
			put(t, o, piece)
			if rest, ok := strings.CutPrefix(piece, "!"); ok {
				want[Stderr].WriteString(rest)
			} else {
				want[Stdout].WriteString(piece)
			}
		}
		if err := o.Close(); err != nil {
			r.Fatal(err)
		}
		_, each := all(t, o, 7)
		if each[Stdout] != want[Stdout].String() || each[Stderr] != want[Stderr].String() {
			r.Fatalf("%q, want %q and %q", each, want[Stdout].String(), want[Stderr].String())
		}
	})
}

// TestNoAllocationPerHeldChunk: holding back and releasing allocates nothing once it has begun, beside a record of the index for each
// change of the channel.
func TestNoAllocationPerHeldChunk(t *testing.T) {
	o := create(t, openDir(t), "call")
	a, b, end := bytes.Repeat([]byte("x"), 4000), bytes.Repeat([]byte("y"), 4000), []byte("\n")
	out, err := o.Writer(Stdout), o.Writer(Stderr)
	round := func() {
		_, _ = out.Write(a)
		_, _ = err.Write(b)
		_, _ = err.Write(end)
		_, _ = out.Write(end)
	}
	round()
	if n := testing.AllocsPerRun(200, round); n > 2 {
		t.Errorf("%v allocations a round", n)
	}
}
