// Conversion of raw bytes to text for a model: terminal escapes are removed, and invalid UTF-8 is
// replaced. It works on pieces, and reports the raw position of each character.

package spool

import "unicode/utf8"

// maxEscape is the longest escape sequence, in bytes. A longer one is treated as a plain ESC. It
// limits the lookahead.
const maxEscape = 4096

// A token is the next element of raw bytes: one character, or one escape sequence, which is not
// shown.
type token struct {
	size   int  // in raw bytes
	r      rune // the character
	escape bool
	bad    bool // the byte is not UTF-8; r is U+FFFD
}

// next returns the first token of p. ok is false if p ends in the middle of it and more may come.
func next(p []byte, more bool) (t token, ok bool) {
	if p[0] == 0x1b {
		size, whole := escapeLength(p)
		if !whole && more && len(p) < maxEscape {
			return token{}, false
		}
		return token{size: size, escape: true}, true
	}
	if p[0] < utf8.RuneSelf {
		return token{size: 1, r: rune(p[0])}, true
	}
	if more && !utf8.FullRune(p) {
		return token{}, false
	}
	r, size := utf8.DecodeRune(p)
	return token{size: size, r: r, bad: r == utf8.RuneError && size == 1}, true
}

// escapeLength returns the length of the escape sequence at the beginning of p, as ECMA-48 defines
// it. If p ends before the sequence does, whole is false and only the ESC counts.
func escapeLength(p []byte) (size int, whole bool) {
	if len(p) < 2 {
		return 1, false
	}
	switch c := p[1]; {
	case c == '[': // CSI: parameters 0x30-0x3f, intermediates 0x20-0x2f, one final 0x40-0x7e
		return ending(p, 2, func(c byte) bool { return c >= 0x20 && c <= 0x3f })
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_': // OSC, DCS, SOS, PM, APC: to BEL or ST
		return stringEnd(p)
	case c >= 0x20 && c <= 0x2f: // intermediates, then one final
		return ending(p, 2, func(c byte) bool { return c >= 0x20 && c <= 0x2f })
	case c >= 0x30 && c <= 0x7e:
		return 2, true
	}
	return 1, true
}

// ending skips bytes that are inside and one final byte. Anything else is not a sequence, so only
// the ESC is removed.
func ending(p []byte, at int, inside func(byte) bool) (size int, whole bool) {
	for ; at < len(p) && at < maxEscape; at++ {
		if c := p[at]; inside(c) {
			continue
		} else if c >= 0x30 && c <= 0x7e {
			return at + 1, true
		}
		return 1, true
	}
	return 1, at >= maxEscape
}

// stringEnd finds BEL or ESC \. It stops at a line break: no program writes one in a title.
func stringEnd(p []byte) (size int, whole bool) {
	for at := 2; at < len(p) && at < maxEscape; at++ {
		switch {
		case p[at] == 0x07:
			return at + 1, true
		case p[at] == '\n':
			return 1, true
		case p[at] == 0x1b && at+1 == len(p):
			return 1, false
		case p[at] == 0x1b && p[at+1] == '\\':
			return at + 2, true
		}
	}
	return 1, len(p) >= maxEscape
}
