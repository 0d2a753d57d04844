// A guess at legacy encodings from how the bytes of ordinary text are distributed. It uses no word
// lists.

package text

// A script describes the double bytes of an encoding in ordinary text of its language.
type script struct {
	name  string
	lead  func(b byte) bool
	trail func(b byte) bool
	lone  func(b byte) bool           // bytes above 0x7F that stand alone
	usual func(lead, trail byte) bool // characters that fill ordinary text
	need  int                         // percent of the characters that must be usual
}

func between(lo, hi byte) func(byte) bool { return func(b byte) bool { return lo <= b && b <= hi } }

func never(byte) bool { return false }

// scripts are tried in order. The Japanese ones are recognised by their kana, which nothing else
// uses. Korean comes before Chinese, since its syllables fill exactly the first half of what is
// common in Chinese. The ranges are those of the standards: JIS X 0208, KS X 1001, GB 2312 within
// GBK, Big5.
var scripts = []script{
	{
		name: "euc-jp", lead: between(0xA1, 0xF4), trail: between(0xA1, 0xFE), lone: never, need: 10,
		usual: func(l, _ byte) bool { return l == 0xA4 || l == 0xA5 },
	},
	{
		name: "shift_jis", need: 10,
		lead:  func(b byte) bool { return 0x81 <= b && b <= 0x9F || 0xE0 <= b && b <= 0xFC },
		trail: func(b byte) bool { return 0x40 <= b && b <= 0xFC && b != 0x7F },
		lone:  between(0xA1, 0xDF),
		usual: func(l, t byte) bool { return l == 0x82 && 0x9F <= t && t <= 0xF1 || l == 0x83 && t <= 0x96 },
	},
	{
		name: "euc-kr", lead: between(0xA1, 0xFD), trail: between(0xA1, 0xFE), lone: never, need: 90,
		usual: func(l, _ byte) bool { return 0xB0 <= l && l <= 0xC8 || l == 0xA1 },
	},
	{
		name: "gbk", lead: between(0x81, 0xFE), lone: never, need: 85,
		trail: func(b byte) bool { return 0x40 <= b && b <= 0xFE && b != 0x7F },
		usual: func(l, t byte) bool { return t >= 0xA1 && (0xB0 <= l && l <= 0xD7 || 0xA1 <= l && l <= 0xA3) },
	},
	{
		name: "big5", lead: between(0x81, 0xFE), lone: never, need: 80,
		trail: func(b byte) bool { return 0x40 <= b && b <= 0x7E || 0xA1 <= b && b <= 0xFE },
		usual: func(l, _ byte) bool { return 0xA1 <= l && l <= 0xC6 },
	},
}

// guess returns the name of the legacy encoding whose ordinary text is most like sample.
func guess(sample []byte) string {
	for _, s := range scripts {
		if s.describes(sample) {
			return s.name
		}
	}
	return guessAlphabet(sample)
}

// describes reports whether sample is valid in the encoding, enough of its double bytes are usual
// ones, and they stand together as in words. An accented letter between ASCII letters can look like
// a double byte too.
func (s script) describes(sample []byte) bool {
	var pairs, usual, together int
	after := false // the last character was a double byte
	for i := 0; i < len(sample); i++ {
		b := sample[i]
		switch {
		case b < 0x80 || s.lone(b):
			after = false
			continue
		case i+1 == len(sample): // cut by the end of the sample
			continue
		case !s.lead(b) || !s.trail(sample[i+1]):
			return false
		}
		i++
		pairs++
		if s.usual(b, sample[i]) {
			usual++
		}
		if after {
			together++
		}
		after = true
	}
	return pairs > 0 && usual*100 >= pairs*s.need && together*3 >= pairs
}

// guessAlphabet distinguishes Cyrillic, whose words are long runs above 0x7F, from Latin with
// single accented letters. The small letters, which are more frequent, are in the upper half in
// windows-1251 and in the lower half in KOI8-R.
func guessAlphabet(sample []byte) string {
	var high, inWords, upper, lower int
	for i := 0; i < len(sample); {
		run := 0
		for ; i < len(sample) && sample[i] >= 0x80; i++ {
			run++
			switch {
			case sample[i] >= 0xE0:
				upper++
			case sample[i] >= 0xC0:
				lower++
			}
		}
		high += run
		if run >= 3 {
			inWords += run
		}
		if run == 0 {
			i++
		}
	}
	switch {
	case inWords*10 < high*6:
		return "windows-1252"
	case upper >= lower:
		return "windows-1251"
	}
	return "koi8-r"
}
