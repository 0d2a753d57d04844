package grep

import (
	"bytes"
	"testing"
)

// TestLowerASCII compares every byte, at every place in a word of eight and behind the last of them.
func TestLowerASCII(t *testing.T) {
	for c := range 256 {
		for at := range 19 {
			text := bytes.Repeat([]byte{'A', 0xff, 'z'}, 7)[:19]
			text[at] = byte(c)
			want := bytes.Clone(text)
			for i, c := range want {
				if 'A' <= c && c <= 'Z' {
					want[i] = c + 'a' - 'A'
				}
			}
			if lowerASCIIBytes(text); !bytes.Equal(text, want) {
				t.Fatalf("byte %#x at %d: got %q, want %q", c, at, text, want)
			}
		}
	}
}
