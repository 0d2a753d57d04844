package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestRedactorAcrossPieces(t *testing.T) {
	const text = "before hunter2 hunhunter2hunter22 hunter after\r\n"
	want := strings.ReplaceAll(text, "hunter2", mark)
	for size := 1; size <= len(text); size++ {
		var r redactor
		r.add([]byte("hunter2"))
		var got []byte
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			got = append(got, r.pass(rest[:min(size, len(rest))])...)
		}
		if got = append(got, r.rest()...); string(got) != want {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// TestRedactorOfSeveral: marks are not replaced again, and what is too short to be told from other text is shown.
func TestRedactorOfSeveral(t *testing.T) {
	for text, want := range map[string]string{
		"a secret, redacted": "a " + mark + ", " + mark,
		"secretive":          mark,
		"secretary, abc":     mark + "ary, abc",
	} {
		var r redactor
		for _, secret := range []string{"secret", "redacted", "secretive", "abc"} {
			r.add([]byte(secret))
		}
		var got []byte
		for i := range len(text) {
			got = append(got, r.pass([]byte(text[i:i+1]))...)
		}
		if got = append(got, r.rest()...); string(got) != want {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add([]byte("a secret is a secret"), []byte("secret"), uint8(3))
	f.Add([]byte("aaaaab"), []byte("aab"), uint8(1))
	f.Fuzz(func(t *testing.T, text, secret []byte, size uint8) {
		if len(secret) < leastSecret || bytes.ContainsAny(secret, mark) {
			return
		}
		var r redactor
		r.add(secret)
		var got []byte
		for rest := text; len(rest) > 0; {
			n := min(int(size)%7+1, len(rest))
			got = append(got, r.pass(rest[:n])...)
			rest = rest[n:]
		}
		if got = append(got, r.rest()...); bytes.Contains(got, secret) {
			t.Errorf("%q has %q", got, secret)
		}
	})
}
