package ellipsis_test

import (
	"testing"

	"github.com/toold/toold/tools/text/ellipsis"
)

func TestCuts(t *testing.T) {
	for _, test := range []struct {
		text         string
		most         int
		bytes, runes string
	}{
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "ab…"},
		{"äöü", 3, "ä…", "äöü"},
		{"äöüß", 3, "ä…", "äö…"},
		{"a", 0, "…", ""},
	} {
		if got := ellipsis.Bytes(test.text, test.most); got != test.bytes {
			t.Errorf("Bytes(%q, %d) = %q, want %q", test.text, test.most, got, test.bytes)
		}
		if test.most == 0 {
			continue
		}
		if got := ellipsis.Runes(test.text, test.most); got != test.runes {
			t.Errorf("Runes(%q, %d) = %q, want %q", test.text, test.most, got, test.runes)
		}
	}
}
