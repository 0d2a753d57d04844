// The pixels of an image in a document: its filters and colour spaces, as far as scanners use them.

package pdf

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"image"
	"image/jpeg"
	"io"
	"regexp"
	"strconv"
	"strings"

	library "github.com/ledongthuc/pdf"
	"golang.org/x/image/ccitt"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff/lzw"
)

// Limits of one image. Our own: a page of A3 at 600 dots an inch has 70 million pixels.
const (
	maxPixels = 80_000_000
	maxRaw    = 4*maxPixels + 1<<20 // bytes of its samples
	maxHival  = 255
	// maxColumns is how many samples of a colour a row has that is predicted by the one above it.
	maxColumns = 1 << 17
)

// pixelsOf returns an image of the document with those bytes. It panics with ErrUndrawable if the
// image has a form that is not known here.
func pixelsOf(data []byte, x, resources library.Value) image.Image {
	w, h := int(x.Key("Width").Int64()), int(x.Key("Height").Int64())
	if w <= 0 || h <= 0 || w > maxPixels/h {
		panic(ErrUndrawable)
	}
	mask := x.Key("ImageMask").Kind() == library.Bool && x.Key("ImageMask").Bool()
	f := &filtered{Reader: io.LimitReader(stored(data, x), maxRaw), w: w, h: h}
	for i, name := range namesOf(x.Key("Filter")) {
		f.apply(name, parameters(x.Key("DecodeParms"), i))
	}
	inverted := false
	if decode := numbers(x.Key("Decode")); len(decode) >= 2 {
		inverted = decode[0] > decode[1]
	}
	if f.done != nil {
		return asMeant(f.done, inverted)
	}
	bits, space := 1, colours{components: 1, of: grayOf}
	if !mask {
		bits = int(x.Key("BitsPerComponent").Int64())
		space = colourSpace(x.Key("ColorSpace"), resources, 0)
	}
	if f.bits != 0 {
		bits = f.bits
	}
	raw, err := io.ReadAll(f)
	row := (w*space.components*bits + 7) / 8
	if err != nil && len(raw) == 0 || row == 0 || len(raw) < row*(h-1)+1 {
		panic(ErrUndrawable)
	}
	if missing := row*h - len(raw); missing > 0 {
		raw = append(raw, make([]byte, missing)...)
	}
	return samples{raw, w, h, bits, inverted, mask}.image(space)
}

// offset matches the end of how the library writes a stream: the position of its bytes, which it does
// not return in another way.
var offset = regexp.MustCompile(`@(\d+)$`)

// stored returns the bytes of a stream as they are stored.
func stored(data []byte, x library.Value) io.Reader {
	found := offset.FindStringSubmatch(x.String())
	if found == nil {
		panic(ErrUndrawable)
	}
	at, err := strconv.Atoi(found[1])
	length := int(x.Key("Length").Int64())
	if err != nil || at > len(data) || length < 0 || length > len(data)-at {
		panic(ErrUndrawable)
	}
	return bytes.NewReader(data[at : at+length])
}

// namesOf returns a name, or a list of them.
func namesOf(v library.Value) (names []string) {
	if v.Kind() == library.Name {
		return []string{v.Name()}
	}
	for i := range v.Len() {
		names = append(names, v.Index(i).Name())
	}
	return names
}

// parameters returns the parameters of the filter at the index.
func parameters(v library.Value, i int) library.Value {
	if v.Kind() == library.Array {
		return v.Index(i)
	}
	return v
}

// filtered is what has come through the filters so far.
type filtered struct {
	io.Reader
	w, h int
	bits int         // that the last filter has made of each component; 0: the image says
	done image.Image // that the last filter has made; nil: none has
}

func (f *filtered) apply(name string, parms library.Value) {
	var err error
	switch name {
	case "FlateDecode", "Fl":
		f.Reader, err = zlib.NewReader(f.Reader)
		f.Reader = predicted(f.Reader, parms)
	case "LZWDecode", "LZW":
		if parms.Key("EarlyChange").Kind() == library.Integer && parms.Key("EarlyChange").Int64() == 0 {
			panic(ErrUndrawable)
		}
		f.Reader = predicted(lzw.NewReader(f.Reader, lzw.MSB, 8), parms)
	case "ASCII85Decode", "A85":
		f.Reader = ascii85.NewDecoder(until(f.Reader, "~"))
	case "ASCIIHexDecode", "AHx":
		f.Reader = hex.NewDecoder(until(f.Reader, ">"))
	case "DCTDecode", "DCT":
		f.done, err = decodeJPEG(f.Reader)
	case "CCITTFaxDecode", "CCF":
		f.fax(parms)
	default: // JBIG2Decode, JPXDecode, and unknown ones
		err = ErrUndrawable
	}
	if err != nil {
		panic(ErrUndrawable)
	}
}

// asMeant returns a decoded JPEG with its lowest values for the highest if that is inverted. The
// decoder takes CMYK for inverted already, as Adobe's programs write it.
func asMeant(m image.Image, inverted bool) image.Image {
	switch m := m.(type) {
	case *image.CMYK:
		if !inverted {
			negate(m.Pix)
		}
		return m
	case *image.Gray:
		if inverted {
			negate(m.Pix)
		}
		return m
	}
	if !inverted {
		return m
	}
	out := image.NewRGBA(m.Bounds())
	draw.Draw(out, out.Rect, m, out.Rect.Min, draw.Src)
	negate(out.Pix)
	for i := 3; i < len(out.Pix); i += 4 {
		out.Pix[i] = 255 // it is opaque
	}
	return out
}

func negate(values []byte) {
	for i, v := range values {
		values[i] = 255 - v
	}
}

// decodeJPEG checks the size before it decodes anything.
func decodeJPEG(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	config, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width > maxPixels/max(config.Height, 1) {
		return nil, ErrUndrawable
	}
	return jpeg.Decode(bytes.NewReader(data))
}

// fax decodes what a fax sends: one bit a pixel.
func (f *filtered) fax(parms library.Value) {
	columns, rows := 1728, f.h
	if c := parms.Key("Columns"); c.Kind() == library.Integer {
		columns = int(c.Int64())
	}
	form := ccitt.Group3
	if parms.Key("K").Int64() < 0 {
		form = ccitt.Group4
	}
	if parms.Key("K").Int64() > 0 || columns != f.w {
		panic(ErrUndrawable)
	}
	truth := func(key string) bool { v := parms.Key(key); return v.Kind() == library.Bool && v.Bool() }
	options := &ccitt.Options{Invert: truth("BlackIs1"), Align: truth("EncodedByteAlign")}
	f.Reader = ccitt.NewReader(f.Reader, ccitt.MSB, form, columns, rows, options)
	f.bits = 1
}

// until returns what comes before the end mark, without white space.
func until(r io.Reader, mark string) io.Reader {
	text, err := io.ReadAll(r)
	if err != nil {
		panic(ErrUndrawable)
	}
	before, _, _ := strings.Cut(string(text), mark)
	return strings.NewReader(strings.Join(strings.Fields(before), ""))
}

// predicted undoes the prediction of samples by their neighbours.
func predicted(r io.Reader, parms library.Value) io.Reader {
	kind := parms.Key("Predictor").Int64()
	if kind <= 1 {
		return r
	}
	number := func(key string, otherwise int) int {
		if v := parms.Key(key); v.Kind() == library.Integer {
			return int(v.Int64())
		}
		return otherwise
	}
	colors, bits, columns := number("Colors", 1), number("BitsPerComponent", 8), number("Columns", 1)
	if kind < 10 || colors < 1 || colors > 4 || bits < 1 || bits > 16 ||
		columns < 1 || columns > maxColumns {
		panic(ErrUndrawable)
	}
	p := &pngRows{from: r, step: max(1, colors*bits/8)}
	row := 1 + (colors*bits*columns+7)/8
	p.row, p.above = make([]byte, row), make([]byte, row)
	return p
}

// pngRows undoes the filters of PNG, of which each row begins with its own.
type pngRows struct {
	from       io.Reader
	step       int
	row, above []byte // with the filter's number before them
	left       []byte // of row
}

// Read implements io.Reader.
func (p *pngRows) Read(to []byte) (int, error) {
	if len(p.left) == 0 {
		p.row, p.above = p.above, p.row
		if _, err := io.ReadFull(p.from, p.row); err != nil {
			return 0, io.EOF // a row that is cut counts as missing
		}
		p.undo()
		p.left = p.row[1:]
	}
	n := copy(to, p.left)
	p.left = p.left[n:]
	return n, nil
}

func (p *pngRows) undo() {
	for i := 1; i < len(p.row); i++ {
		var a, c byte
		b := p.above[i]
		if i > p.step {
			a, c = p.row[i-p.step], p.above[i-p.step]
		}
		switch p.row[0] {
		case 1:
			p.row[i] += a
		case 2:
			p.row[i] += b
		case 3:
			p.row[i] += byte((int(a) + int(b)) / 2)
		case 4:
			p.row[i] += paeth(int(a), int(b), int(c))
		}
	}
}

// paeth is the predictor of that name (PNG, 9.4).
func paeth(a, b, c int) byte {
	distance := func(v int) int { return max(a+b-c-v, v-a-b+c) }
	switch {
	case distance(a) <= distance(b) && distance(a) <= distance(c):
		return byte(a)
	case distance(b) <= distance(c):
		return byte(b)
	}
	return byte(c)
}
