// Package text turns the bytes of a file into text and back: which encoding they are in, which text
// that is, which bytes a piece of it came from, how its lines end, and how a change is shown. It
// works on bytes in memory and does not know files or tools.
package text

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// An Encoding is how text is stored in a file. The zero value is UTF-8 without a byte order mark.
type Encoding struct {
	name  string            // the WHATWG name; empty: UTF-8
	bom   []byte            // byte order mark at the beginning; nil: none
	wide  binary.ByteOrder  // of UTF-16; nil: another encoding
	codec encoding.Encoding // nil: UTF-8
}

var (
	bomUTF8    = []byte{0xEF, 0xBB, 0xBF}
	bomUTF16LE = []byte{0xFF, 0xFE}
	bomUTF16BE = []byte{0xFE, 0xFF}

	utf16LE = Encoding{"utf-16le", bomUTF16LE, binary.LittleEndian, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}
	utf16BE = Encoding{"utf-16be", bomUTF16BE, binary.BigEndian, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
)

// Name returns the encoding's name in lower case: "utf-8", "utf-16le", "gbk".
func (e Encoding) Name() string { return cmp.Or(e.name, "utf-8") }

// BOM returns the byte order mark at the beginning of files of this encoding, or nil if they have
// none. It must not be modified.
func (e Encoding) BOM() []byte { return e.bom }

// Decoder returns a transformer to UTF-8 for a stream, its byte order mark included. It returns nil
// for UTF-8, which needs no decoding.
func (e Encoding) Decoder() transform.Transformer {
	if e.codec == nil {
		return nil
	}
	return e.codec.NewDecoder()
}

// Lossy is the error of Encode for a character that the encoding cannot hold.
type Lossy struct {
	Rune     rune
	Encoding string
}

func (l *Lossy) Error() string { return l.Encoding + " cannot hold " + string(l.Rune) }

// Encode returns s in the encoding, without adding a byte order mark. Its error is a *Lossy that
// names the first character that the encoding cannot hold.
func (e Encoding) Encode(s string) ([]byte, error) {
	if e.codec == nil {
		return []byte(s), nil
	}
	out, err := e.codec.NewEncoder().Bytes([]byte(s))
	if err == nil {
		return out, nil
	}
	for _, r := range s {
		if _, err := e.codec.NewEncoder().String(string(r)); err != nil {
			return nil, &Lossy{Rune: r, Encoding: e.Name()}
		}
	}
	return nil, err
}

// A Text is a file's content as text. A byte order mark is part of it, as U+FEFF.
type Text struct {
	// String is UTF-8. Invalid bytes of a UTF-8 file are kept as they are. Bytes of another
	// encoding that cannot be decoded become U+FFFD.
	String   string
	Encoding Encoding
	raw      []byte
	starts   []int32 // starts[i]: where the bytes of the character at String[i] begin; nil: at i
}

// Decode returns raw as text of the encoding. raw must not be modified afterwards.
func Decode(raw []byte, e Encoding) *Text {
	t := &Text{Encoding: e, raw: raw}
	if e.codec == nil {
		t.String = unsafe.String(unsafe.SliceData(raw), len(raw)) // raw is not modified; a copy would cost as much as reading
		return t
	}
	next := t.wideRune
	if e.wide == nil {
		next = legacyRune(e.codec.NewDecoder())
	}
	var out bytes.Buffer
	for at := 0; at < len(raw); {
		char, n := next(raw[at:])
		out.Write(char)
		for range char {
			t.starts = append(t.starts, int32(at))
		}
		at += n
	}
	t.starts = append(t.starts, int32(len(raw)))
	t.String = out.String()
	return t
}

// Offset returns the offset in the file's bytes of the character at offset at of String. at may be
// the end.
func (t *Text) Offset(at int) int {
	if t.starts == nil {
		return at
	}
	return int(t.starts[at])
}

// wideRune decodes the first character of b, which is not empty, and returns its length in bytes.
func (t *Text) wideRune(b []byte) ([]byte, int) {
	if len(b) < 2 {
		return utf8.AppendRune(nil, utf8.RuneError), len(b)
	}
	r := rune(t.Encoding.wide.Uint16(b))
	if utf16.IsSurrogate(r) && len(b) >= 4 {
		if pair := utf16.DecodeRune(r, rune(t.Encoding.wide.Uint16(b[2:]))); pair != utf8.RuneError {
			return utf8.AppendRune(nil, pair), 4
		}
	}
	return utf8.AppendRune(nil, r), 2 // a lone half of a pair becomes U+FFFD
}

// legacyRune returns a function like wideRune for an encoding that extends ASCII and keeps no state
// between characters.
func legacyRune(d *encoding.Decoder) func([]byte) ([]byte, int) {
	dst := make([]byte, 16)
	return func(b []byte) ([]byte, int) {
		if b[0] < utf8.RuneSelf {
			return b[:1], 1
		}
		for n := 1; n <= min(len(b), 4); n++ {
			d.Reset()
			wrote, took, err := d.Transform(dst, b[:n], n == len(b))
			if took > 0 && !errors.Is(err, transform.ErrShortDst) {
				return dst[:wrote], took
			}
		}
		return utf8.AppendRune(dst[:0], utf8.RuneError), 1
	}
}
