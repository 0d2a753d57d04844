package index

import "testing"

// FuzzText looks for parts of a text in it.
func FuzzText(f *testing.F) {
	f.Add("The quick brown fox\njumps over\x00", uint8(3), uint8(9))
	f.Fuzz(func(t *testing.T, text string, from, length uint8) {
		if int(from) >= len(text) {
			return
		}
		part := text[from:min(len(text), int(from)+int(length))]
		if new(counter).text([]byte(text)).Lacks(NewQuery([]string{part})) {
			t.Fatalf("%q lacks %q", text, part)
		}
	})
}
