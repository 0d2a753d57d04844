package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

func TestVisible(t *testing.T) {
	for name, c := range map[string]struct{ in, line, text string }{
		"plain":          {"héllo 世界 👩‍💻", "héllo 世界 👩‍💻", "héllo 世界 👩‍💻"},
		"newline, tab":   {"a\n\tb", "a␊␉b", "a\n\tb"},
		"carriage":       {"safe\rrm", "safe␍rm", "safe␍rm"},
		"escape":         {"\x1b[2Jx\x07\x7f", "␛[2Jx␇␡", "␛[2Jx␇␡"},
		"C1":             {"\u009b31m", "<U+009B>31m", "<U+009B>31m"},
		"right to left":  {"a\u202eb\u2066c", "a<U+202E>b<U+2066>c", "a<U+202E>b<U+2066>c"},
		"marks, tags":    {"\u200f\ufeff\U000E0041", "<U+200F><U+FEFF><U+E0041>", "<U+200F><U+FEFF><U+E0041>"},
		"line separator": {"a\u2028b", "a<U+2028>b", "a<U+2028>b"},
		"not UTF-8":      {"a\xff\xc3b", "a<FF><C3>b", "a<FF><C3>b"},
		"replaced":       {"a\uFFFDb", "a\uFFFDb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := VisibleLine(c.in); got != c.line {
				t.Errorf("visibleLine(%q) = %q, want %q", c.in, got, c.line)
			}
			if got := VisibleText(c.in); got != c.text {
				t.Errorf("visibleText(%q) = %q, want %q", c.in, got, c.text)
			}
		})
	}
}

func TestLastLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"one\ntwo\n":                     "two",
		"one\n\n \n":                     "one",
		"10%\r50%\r\x1b[K90%":            "90%",
		"\x1b[1;32mok\x1b[0m\n":          "ok",
		"\x1b]0;title\x07built\n":        "built",
		"\x1b]8;;http://x\x1b\\link\r\n": "link",
		"a\x1bZb":                        "a␛Zb",
	} {
		if got := LastLine(in); got != want {
			t.Errorf("lastLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"世界", 3, "世…"}, {"世界", 2, "…"}, {"a", 0, ""}, {"", 5, ""}} {
		if got := Fit(c.in, c.width); got != c.want {
			t.Errorf("fit(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
		if got := lipgloss.Width(Pad(c.in, c.width)); got != c.width {
			t.Errorf("pad(%q, %d) is %d cells wide", c.in, c.width, got)
		}
	}
}

func TestSafeWriterAcrossChunks(t *testing.T) {
	const text = "a世\x1b[1m\xff界\xe4\xb8"
	want := VisibleText(text)
	for cut := range len(text) {
		var out strings.Builder
		w := &SafeWriter{W: &out}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("Write gave %d, %v", n, err)
			}
		}
		w.Flush()
		if out.String() != want {
			t.Errorf("cut at %d: %q, want %q", cut, out.String(), want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		shown := VisibleLine(s)
		if !utf8.ValidString(shown) {
			t.Fatalf("%q is not UTF-8", shown)
		}
		if strings.ContainsFunc(shown, acts) {
			t.Fatalf("%q still acts on a terminal", shown)
		}
		if lipgloss.Width(Fit(shown, 20)) > 20 {
			t.Fatalf("%q is wider than 20 cells", Fit(shown, 20))
		}
	})
}
