// Which encoding a file is in. It sees bytes only; file names tell nothing.

package text

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Sample is how many bytes of a file are enough for Detect. Ours: large enough for a licence header in ASCII to be
// followed by something that tells.
const Sample = 64 << 10

// Detect returns which encoding the file that begins with sample is in, and whether it is text at all. A sample is the
// whole file, or its first Sample bytes. A byte order mark decides; valid UTF-8 is UTF-8; then what the file declares about
// itself, if its bytes fit; then the guess that fits its bytes best, which is windows-1252 when nothing speaks for another.
func Detect(sample []byte) (e Encoding, isText bool) {
	switch {
	case bytes.HasPrefix(sample, []byte{0xFF, 0xFE, 0, 0}):
		return Encoding{}, false // UTF-32, which nothing writes
	case bytes.HasPrefix(sample, bomUTF8):
		return Encoding{bom: bomUTF8}, bytes.IndexByte(sample, 0) < 0
	case bytes.HasPrefix(sample, bomUTF16LE):
		return Encoding{name: "utf-16le", bom: bomUTF16LE, wide: binary.LittleEndian}, true
	case bytes.HasPrefix(sample, bomUTF16BE):
		return Encoding{name: "utf-16be", bom: bomUTF16BE, wide: binary.BigEndian}, true
	case bytes.IndexByte(sample, 0) >= 0:
		return Encoding{}, false
	case mostlyUTF8(wholeRunes(sample)):
		return Encoding{}, true
	case !strings.HasPrefix(MediaType(sample), "text/"):
		return Encoding{}, false
	}
	if e, ok := declared(sample); ok {
		return e, true
	}
	e, ok := named(guess(sample))
	return e, ok
}

// DetectWhole is Detect with the whole content at hand: what follows the sample may show that a file which begins in
// ASCII is not UTF-8.
func DetectWhole(raw []byte) (e Encoding, isText bool) {
	e, isText = Detect(raw[:min(len(raw), Sample)])
	if isText && e.name == "" && e.bom == nil && len(raw) > Sample && !utf8.Valid(raw) {
		if whole, ok := Detect(raw); ok {
			return whole, true
		}
	}
	return e, isText
}

// mostlyUTF8 reports that b is valid, or that what is invalid is damage: of the double bytes of GBK about one in seven
// happens to be valid UTF-8, of other encodings fewer, so two valid sequences for each stray byte settle it.
func mostlyUTF8(b []byte) bool {
	if utf8.Valid(b) {
		return true
	}
	valid, stray := 0, 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case n > 1:
			valid++
		case r == utf8.RuneError:
			stray++
		}
		b = b[n:]
	}
	return valid >= 2*stray
}

// MediaType names what the file that begins with sample is, by its first bytes; "application/octet-stream" when they
// tell nothing.
func MediaType(sample []byte) string { return http.DetectContentType(sample) }

// wholeRunes leaves out a character that the end of a full sample has cut.
func wholeRunes(sample []byte) []byte {
	if len(sample) != Sample {
		return sample // it is the whole file
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(sample); cut++ {
		if b := sample[len(sample)-cut]; utf8.RuneStart(b) {
			if !utf8.FullRune(sample[len(sample)-cut:]) {
				return sample[:len(sample)-cut]
			}
			break
		}
	}
	return sample
}

// named returns a legacy encoding by its name. Encodings that keep state between characters, and those that are no
// legacy, are not among them.
func named(name string) (Encoding, bool) {
	enc, err := htmlindex.Get(name)
	if err != nil {
		return Encoding{}, false
	}
	canonical, err := htmlindex.Name(enc)
	switch {
	case err != nil, canonical == "utf-8", canonical == "iso-2022-jp", canonical == "replacement", canonical == "x-user-defined",
		strings.HasPrefix(canonical, "utf-16"):
		return Encoding{}, false
	}
	return Encoding{name: canonical, legacy: enc}, true
}

// How files name their own encoding: an XML declaration, a meta element, an editor's line at the top.
var declarations = []*regexp.Regexp{
	regexp.MustCompile(`^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)`),
	regexp.MustCompile(`(?i)<meta[^>]*\bcharset\s*=\s*["']?([\w.:-]+)`),
	regexp.MustCompile(`^(?:[^\n]*\n)?[^\n]*\bcoding[:=][ \t]*([\w.-]+)`),
}

// declared returns the encoding that the file says it is in, if its bytes can be decoded so.
func declared(sample []byte) (Encoding, bool) {
	head := sample[:min(len(sample), 1024)]
	for _, d := range declarations {
		if m := d.FindSubmatch(head); m != nil {
			if e, ok := named(string(m[1])); ok && fits(e, sample) {
				return e, true
			}
		}
	}
	return Encoding{}, false
}

func fits(e Encoding, sample []byte) bool {
	out, err := e.legacy.NewDecoder().Bytes(sample)
	if err != nil {
		return false
	}
	bad := bytes.IndexRune(out, utf8.RuneError)
	return bad < 0 || bad > len(out)-utf8.UTFMax // the last character may have been cut
}
