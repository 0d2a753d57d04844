package spool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestExcerpt(t *testing.T) {
	d := openDir(t)
	tests := []struct {
		name, raw string
		chars     int
		want      Excerpt
	}{
		{"empty", "", 10, Excerpt{}},
		{"whole", "one\ntwo\n", 10, Excerpt{Head: "one\ntwo\n"}},
		{"just whole", "0123456789", 10, Excerpt{Head: "0123456789"}},
		{"just whole with escapes", "0123\x1b[1m456789\x1b[0m", 10, Excerpt{Head: "0123456789"}},
		{"at line ends", "a\nbb\nccccccccc\nd\nee\n", 10, Excerpt{Head: "a\nbb\n", Tail: "d\nee\n", Bytes: 10, Lines: 1}},
		{"a long line", strings.Repeat("x", 50) + "y", 10, Excerpt{Head: "xxxxx", Tail: "xxxxy", Bytes: 41}},
		{"characters, not bytes", strings.Repeat("ä", 20), 10, Excerpt{Head: "äääää", Tail: "äääää", Bytes: 20}},
		{"not UTF-8", "a\xff\xfeb", 10, Excerpt{Head: "a\uFFFD\uFFFDb", Replaced: 2}},
		{"cut character", "a\xe2\x82", 10, Excerpt{Head: "a\uFFFD\uFFFD", Replaced: 2}},
		{"CSI", "\x1b[1;31mred\x1b[0m \x1b[?25l\x1b[2K.", 10, Excerpt{Head: "red ."}},
		{"OSC", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", 10, Excerpt{Head: "ab"}},
		{"other escapes", "\x1b(Ba\x1b7b\x1b=c\x1bPq#0\x1b\\d", 10, Excerpt{Head: "abcd"}},
		{"lone escapes", "a\x1b\nb\x1b[1\nc\x1b]0;no end\nd\x1b", 20, Excerpt{Head: "a\nb[1\nc]0;no end\nd"}},
		{"escapes do not count", strings.Repeat("\x1b[1mx\x1b[0m", 20), 10, Excerpt{Head: "xxxxx", Tail: "xxxxx", Bytes: 90}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := create(t, d, strings.ReplaceAll(tt.name, " ", "-"))
			write(t, o, Stdout, tt.raw)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := o.Excerpt(tt.chars)
			tt.want.End = int64(len(tt.raw))
			if err != nil || got != tt.want {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// Head, what is said to be left out, and Tail are together all of the output; and the text is never longer than asked.
func TestExcerptCounts(t *testing.T) {
	d := openDir(t)
	piece := rapid.OneOf(rapid.Just("\n"), rapid.Just("\x1b[31m"), rapid.Just("\xff"), rapid.StringN(0, 30, -1), rapid.Just("é\n"))
	name := "a"
	rapid.Check(t, func(rt *rapid.T) {
		name += "a"
		if len(name) > 100 {
			d, name = openDir(t), "a"
		}
		raw := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(rt, "pieces"), "")
		chars := rapid.IntRange(2, 200).Draw(rt, "chars")
		o := create(t, d, name)
		write(t, o, Stdout, raw)
		if err := o.Close(); err != nil {
			rt.Fatal(err)
		}
		x, err := o.Excerpt(chars)
		if err != nil {
			rt.Fatal(err)
		}
		if n := utf8.RuneCountInString(x.Head + x.Tail); n > chars || !utf8.ValidString(x.Head+x.Tail) {
			rt.Fatalf("%q: %d characters, asked for %d", raw, n, chars)
		}
		for at := 0; at+int(x.Bytes) <= len(raw); at++ {
			gone := raw[at : at+int(x.Bytes)]
			head, replaced := cleaned(raw[:at])
			tail, more := cleaned(raw[at+int(x.Bytes):])
			if head == x.Head && tail == x.Tail && int64(strings.Count(gone, "\n")) == x.Lines && replaced+more == x.Replaced {
				return
			}
		}
		rt.Fatalf("%q: no gap of %d bytes and %d lines gives %q and %q", raw, x.Bytes, x.Lines, x.Head, x.Tail)
	})
}

func cleaned(raw string) (string, int64) {
	var p piece
	p.add([]byte(raw), false, 1<<30)
	return string(p.text), p.replaced
}

func TestSince(t *testing.T) {
	o := create(t, openDir(t), "call")
	var got strings.Builder
	pos := int64(0)
	for _, part := range []string{"one\n", "caf\xc3", "\xa9 \x1b[3", "1mred\x1b]0;ti", "tle\x07\n", "end\xe2\x82"} {
		write(t, o, Stdout, part)
		x, err := o.Since(pos, 100)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(x.Head)
		pos = x.End
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	x, err := o.Since(pos, 100)
	if err != nil {
		t.Fatal(err)
	}
	got.WriteString(x.Head)
	if want := "one\ncafé red\nend\uFFFD\uFFFD"; got.String() != want || x.End != o.Total() {
		t.Errorf("got %q, want %q; up to %d of %d", got.String(), want, x.End, o.Total())
	}
}

func TestMatching(t *testing.T) {
	o := create(t, openDir(t), "call")
	write(t, o, Stdout, "error: a\nfine\n\x1b[31merror\x1b[0m: b\nerror: c\nerr")
	match := func(line []byte) bool { return strings.HasPrefix(string(line), "error") }
	x, err := o.Matching(0, 18, match)
	if want := (Excerpt{Head: "error: a\nerror: b\n", Bytes: 9, Lines: 1, End: o.Total() - 3}); err != nil || x != want {
		t.Errorf("got %+v, %v; want %+v", x, err, want)
	}
	write(t, o, Stdout, "or: d")
	if again, err := o.Matching(x.End, 100, match); err != nil || again.Head != "" || again.End != x.End {
		t.Errorf("a line that has not ended: %+v, %v", again, err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if last, err := o.Matching(x.End, 100, match); err != nil || last.Head != "error: d" || last.End != o.Total() {
		t.Errorf("the last line: %+v, %v", last, err)
	}
}
