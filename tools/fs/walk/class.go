// Bracketed classes of a glob, as sets of bytes.

package walk

import "strings"

// A byteSet is a set of bytes.
type byteSet [4]uint64

func (b *byteSet) has(c byte) bool { return b[c>>6]&(1<<(c&63)) != 0 }

func (b *byteSet) addRange(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		b[c>>6] |= 1 << (c & 63)
	}
}

func (b *byteSet) invert() {
	for i := range b {
		b[i] = ^b[i]
	}
}

// named are the POSIX classes, in the C locale: ranges as pairs of bytes.
var named = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// parseClass parses the class at the beginning of s and returns its length, or 0 if it is
// malformed. A "]" that comes first is part of the set, and so is a "-" at either end or after a
// range.
func parseClass(s string) (*byteSet, int) {
	set := new(byteSet)
	i := 1
	negated := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negated {
		i++
	}
	before := -1 // the byte from which a "-" would make a range
	for first := true; ; first = false {
		if i >= len(s) {
			return nil, 0
		}
		if s[i] == ']' && !first {
			break
		}
		if strings.HasPrefix(s[i:], "[:") {
			n, ok := set.addNamed(s[i:])
			if !ok {
				return nil, 0
			}
			i += n
			if before = -1; n == 1 {
				before = '['
			}
			continue
		}
		if s[i] == '-' && before >= 0 && i+1 < len(s) && s[i+1] != ']' {
			c, n := unescape(s[i+1:])
			if n == 0 {
				return nil, 0
			}
			set.addRange(byte(before), c)
			before = -1
			i += 1 + n
			continue
		}
		c, n := unescape(s[i:])
		if n == 0 {
			return nil, 0
		}
		set.addRange(c, c)
		before = int(c)
		i += n
	}
	if negated {
		set.invert()
	}
	return set, i + 1
}

// addNamed adds the class that s, which begins with "[:", names, and returns the length read: 1 if
// it is a plain "[" after all. ok is false for an unknown name, and if s has no "]".
func (b *byteSet) addNamed(s string) (n int, ok bool) {
	end := strings.IndexByte(s[2:], ']')
	if end < 0 {
		return 0, false
	}
	name, closed := strings.CutSuffix(s[2:2+end], ":")
	if !closed {
		b.addRange('[', '[')
		return 1, true
	}
	ranges, known := named[name]
	for i := 0; i < len(ranges); i += 2 {
		b.addRange(ranges[i], ranges[i+1])
	}
	return 2 + end + 1, known
}

// unescape returns the first byte of s, or the one after a backslash, and the number of bytes read;
// 0: there is none.
func unescape(s string) (c byte, n int) {
	if s[0] != '\\' {
		return s[0], 1
	}
	if len(s) < 2 {
		return 0, 0
	}
	return s[1], 2
}
