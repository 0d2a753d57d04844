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

func FuzzRedactor(f *testing.F) {
	f.Add([]byte("a secret is a secret"), []byte("secret"), uint8(3))
	f.Add([]byte("aaaaab"), []byte("aab"), uint8(1))
	f.Fuzz(func(t *testing.T, text, secret []byte, size uint8) {
		if len(secret) == 0 || bytes.ContainsAny(secret, mark) {
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
		if got = append(got, r.rest()...); bytes.Contains(got, secret) && len(secret) >= shortest {
			t.Errorf("%q has %q", got, secret)
		}
	})
}
