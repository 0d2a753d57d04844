// Detection of a file's encoding from its bytes. File names do not count.

package text

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Sample is how many bytes of a file are enough for Detect. The number is our own: a long licence
// header in ASCII still leaves room for characters that decide.
const Sample = 64 << 10

// Detect returns the encoding of the file that begins with sample, and whether it is text at all. A
// sample is the whole file, or its first Sample bytes. A byte order mark decides; valid UTF-8 is
// UTF-8; then the file's own declaration counts, if its bytes fit; then the best guess from its
// bytes, which is windows-1252 if no other encoding fits.
func Detect(sample []byte) (e Encoding, isText bool) {
	switch {
	case bytes.HasPrefix(sample, []byte{0xFF, 0xFE, 0, 0}):
		return Encoding{}, false // UTF-32, which no program writes
	case bytes.HasPrefix(sample, bomUTF8):
		return Encoding{bom: bomUTF8}, bytes.IndexByte(sample, 0) < 0
	case bytes.HasPrefix(sample, bomUTF16LE):
		return utf16LE, true
	case bytes.HasPrefix(sample, bomUTF16BE):
		return utf16BE, true
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
	return named(guess(sample))
}

// DetectWhole is Detect for a whole content: a file that begins in ASCII may turn out not to be
// UTF-8 after the sample.
func DetectWhole(raw []byte) (e Encoding, isText bool) {
	e, isText = Detect(raw[:min(len(raw), Sample)])
	if isText && e.name == "" && e.bom == nil && len(raw) > Sample && !utf8.Valid(raw) {
		if whole, ok := Detect(raw); ok {
			return whole, true
		}
	}
	return e, isText
}

// mostlyUTF8 reports whether b is valid UTF-8 apart from damage. About one in seven double bytes of
// GBK happens to be valid UTF-8, and fewer of other encodings, so two valid sequences for each
// stray byte are enough.
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

// MediaType returns the media type of the file that begins with sample, or
// "application/octet-stream" if its first bytes do not show it.
func MediaType(sample []byte) string { return http.DetectContentType(sample) }

// wholeRunes removes a character that the end of a full sample has cut.
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

// named returns a legacy encoding by its name. Encodings that keep state between characters, and
// those that are not legacy encodings, are not among them.
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
	return Encoding{name: canonical, codec: enc}, true
}

// The ways in which files declare their encoding: an XML declaration, a meta element, an editor's
// line at the top.
var declarations = []*regexp.Regexp{
	regexp.MustCompile(`^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)`),
	regexp.MustCompile(`(?i)<meta[^>]*\bcharset\s*=\s*["']?([\w.:-]+)`),
	regexp.MustCompile(`^(?:[^\n]*\n)?[^\n]*\bcoding[:=][ \t]*([\w.-]+)`),
}

// declared returns the encoding that the file declares, if its bytes can be decoded with it.
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
	out, err := e.codec.NewDecoder().Bytes(sample)
	if err != nil {
		return false
	}
	bad := bytes.IndexRune(out, utf8.RuneError)
	return bad < 0 || bad > len(out)-utf8.UTFMax // the last character may have been cut
}
