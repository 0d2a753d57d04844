// Pages that consist of images, as scanners make them, drawn by the reader of PDF itself. Fonts, lines
// and shadings are not drawn: a page that shows any is refused, so that no image lacks a part of its
// page.

package pdf

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"math"

	library "github.com/ledongthuc/pdf"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

// Limits of a page that is drawn. Our own: scans have a few images, and a form within a form.
const (
	maxOperators = 100_000
	maxImages    = 500
	maxForms     = 5 // within each other
	// smallPNG is the size in bytes up to which a page is a PNG; a larger one is a JPEG.
	smallPNG    = 300_000
	jpegQuality = 80
)

// A scan is a page that is being drawn. A panic with ErrUndrawable ends it.
type scan struct {
	data   []byte // of the document
	canvas *image.RGBA
	graphics
	saved           []graphics
	images, did     int // drawn, and operators carried out
	resources       library.Value
	depth, textMode int
}

// graphics is the part of the graphics state that matters here.
type graphics struct {
	toDevice f64.Aff3 // from the coordinates of the page's content
	white    bool     // what is filled is white
	special  bool     // the colour space in which that is set has a light of its own
}

// drawScan returns page n as a PNG or a JPEG whose longer side has that many pixels, or ErrUndrawable.
func drawScan(r *library.Reader, data []byte, n, side int) (out []byte, err error) {
	defer func() {
		if recover() != nil { // an error of the library, or of the page
			out, err = nil, ErrUndrawable
		}
	}()
	if r.Trailer().Key("Encrypt").Kind() != library.Null {
		return nil, ErrUndrawable // what the library decrypts it also decodes
	}
	p := r.Page(n)
	s := &scan{data: data}
	s.resources = s.inherited(p, "Resources")
	s.lay(p, side)
	s.run(p.V.Key("Contents"))
	if s.images == 0 {
		return nil, ErrUndrawable
	}
	return encoded(s.canvas)
}

// lay makes a white canvas for the page, as it is turned.
func (s *scan) lay(p library.Page, side int) {
	box := numbers(s.inherited(p, "CropBox"))
	if len(box) != 4 {
		box = numbers(s.inherited(p, "MediaBox"))
	}
	if len(box) != 4 {
		panic(ErrUndrawable)
	}
	x, y := min(box[0], box[2]), max(box[1], box[3])
	w, h := math.Abs(box[2]-box[0]), math.Abs(box[3]-box[1])
	scale := float64(side) / max(w, h)
	if !(w > 0 && h > 0) || math.IsInf(scale, 0) {
		panic(ErrUndrawable)
	}
	w, h = w*scale, h*scale
	upright := f64.Aff3{scale, 0, -x * scale, 0, -scale, y * scale}
	switch (s.inherited(p, "Rotate").Int64()%360 + 360) % 360 {
	case 0:
		s.toDevice = upright
	case 90:
		s.toDevice = after(f64.Aff3{0, -1, h, 1, 0, 0}, upright)
		w, h = h, w
	case 180:
		s.toDevice = after(f64.Aff3{-1, 0, w, 0, -1, h}, upright)
	case 270:
		s.toDevice = after(f64.Aff3{0, 1, 0, -1, 0, w}, upright)
		w, h = h, w
	default:
		panic(ErrUndrawable)
	}
	s.canvas = image.NewRGBA(image.Rect(0, 0, max(1, int(w+0.5)), max(1, int(h+0.5))))
	draw.Draw(s.canvas, s.canvas.Bounds(), image.White, image.Point{}, draw.Src)
}

// inherited returns what the page, or the nearest node above it, has under the key.
func (s *scan) inherited(p library.Page, key string) library.Value {
	for at := p.V; at.Kind() == library.Dict; at = at.Key("Parent") {
		if v := at.Key(key); v.Kind() != library.Null {
			return v
		}
		s.step()
	}
	return library.Value{}
}

// after returns the transformation that does first, and then then.
func after(then, first f64.Aff3) f64.Aff3 {
	return f64.Aff3{
		then[0]*first[0] + then[1]*first[3], then[0]*first[1] + then[1]*first[4], then[0]*first[2] + then[1]*first[5] + then[2],
		then[3]*first[0] + then[4]*first[3], then[3]*first[1] + then[4]*first[4], then[3]*first[2] + then[4]*first[5] + then[5],
	}
}

// numbers returns the numbers of an array.
func numbers(v library.Value) (all []float64) {
	for i := range v.Len() {
		all = append(all, v.Index(i).Float64())
	}
	return all
}

// matrix returns a matrix of PDF, which has six numbers.
func matrix(n []float64) f64.Aff3 {
	if len(n) != 6 {
		panic(ErrUndrawable)
	}
	return f64.Aff3{n[0], n[2], n[4], n[1], n[3], n[5]}
}

// step counts the work on a page, and ends it if it is too much.
func (s *scan) step() {
	if s.did++; s.did > maxOperators {
		panic(ErrUndrawable)
	}
}

// run carries out the operators of a content stream.
func (s *scan) run(content library.Value) {
	library.Interpret(content, func(stack *library.Stack, op string) {
		s.step()
		args := make([]library.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		s.do(op, args)
	})
}

// do carries out one operator. Paths and clips are not followed: only what would be painted matters.
func (s *scan) do(op string, args []library.Value) {
	switch op {
	case "q":
		s.saved = append(s.saved, s.graphics)
	case "Q":
		if last := len(s.saved) - 1; last >= 0 {
			s.graphics, s.saved = s.saved[last], s.saved[:last]
		}
	case "cm":
		s.toDevice = after(s.toDevice, matrix(floats(args)))
	case "g", "rg", "k":
		s.white, s.special = isWhite(floats(args)), false
	case "sc", "scn":
		s.white = !s.special && isWhite(floats(args))
	case "cs":
		s.white, s.special = false, isSpecial(args[0], s.resources)
	case "Tr":
		s.textMode = int(floats(args)[0])
	case "Tj", "TJ", "'", "\"":
		const invisible = 3 // the text that a scanner's software has recognised
		if s.textMode != invisible {
			panic(ErrUndrawable)
		}
	case "f", "F", "f*":
		if !s.white || s.images > 0 {
			panic(ErrUndrawable)
		}
	case "B", "B*", "b", "b*", "S", "s", "sh", "BI":
		panic(ErrUndrawable)
	case "gs":
		if s.resources.Key("ExtGState").Key(args[0].Name()).Key("SMask").Kind() == library.Dict {
			panic(ErrUndrawable)
		}
	case "Do":
		s.external(s.resources.Key("XObject").Key(args[0].Name()))
	}
}

func floats(args []library.Value) (all []float64) {
	for _, arg := range args {
		all = append(all, arg.Float64())
	}
	return all
}

// isSpecial reports whether the components of a colour space are not the light of gray or RGB or the
// inks of CMYK: 1 is no light but all ink in Separation, and the second colour in Indexed.
func isSpecial(v, resources library.Value) bool {
	name := v.Name()
	if named := resources.Key("ColorSpace").Key(name); named.Kind() == library.Array {
		name = named.Index(0).Name()
	}
	switch name {
	case "DeviceGray", "DeviceRGB", "DeviceCMYK", "CalGray", "CalRGB", "ICCBased":
		return false
	}
	return true
}

// isWhite reports whether the components are white in gray, RGB or CMYK, by their number.
func isWhite(components []float64) bool {
	ink := 0.0
	for _, c := range components {
		if len(components) < 4 {
			c = 1 - c
		}
		ink = max(ink, c)
	}
	return len(components) > 0 && ink < 0.01
}

// external draws an image, or carries out a form.
func (s *scan) external(x library.Value) {
	if x.Kind() != library.Stream {
		panic(ErrUndrawable)
	}
	switch x.Key("Subtype").Name() {
	case "Image":
		s.image(x)
	case "Form":
		if s.depth++; s.depth > maxForms {
			panic(ErrUndrawable)
		}
		resources, was, saved := s.resources, s.graphics, s.saved
		if own := x.Key("Resources"); own.Kind() == library.Dict {
			s.resources = own
		}
		if m := numbers(x.Key("Matrix")); len(m) > 0 {
			s.toDevice = after(s.toDevice, matrix(m))
		}
		s.run(x)
		s.resources, s.graphics, s.saved = resources, was, saved
		s.depth--
	default:
		panic(ErrUndrawable)
	}
}

// image draws an image over the unit square.
func (s *scan) image(x library.Value) {
	if s.images++; s.images > maxImages || x.Key("SMask").Kind() == library.Stream || x.Key("Mask").Kind() != library.Null {
		panic(ErrUndrawable) // without its mask it would hide others
	}
	picture := pixelsOf(s.data, x, s.resources)
	size := picture.Bounds().Size()
	unit := f64.Aff3{1 / float64(size.X), 0, 0, 0, -1 / float64(size.Y), 1}
	m := after(s.toDevice, unit)
	for _, v := range m {
		if math.IsNaN(v) || math.Abs(v) > 1e6 {
			panic(ErrUndrawable)
		}
	}
	if m[1] == 0 && m[3] == 0 && m[0] > 0 && m[4] > 0 { // much the most, and much faster
		to := image.Rect(int(math.Floor(m[2]+0.5)), int(math.Floor(m[5]+0.5)), int(math.Ceil(m[2]+m[0]*float64(size.X)-0.5)), int(math.Ceil(m[5]+m[4]*float64(size.Y)-0.5)))
		draw.BiLinear.Scale(s.canvas, to, picture, picture.Bounds(), draw.Over, nil)
		return
	}
	draw.BiLinear.Transform(s.canvas, m, picture, picture.Bounds(), draw.Over, nil)
}

// encoded returns the page as a PNG, or as a JPEG if that is large.
func encoded(canvas *image.RGBA) ([]byte, error) {
	var page image.Image = canvas
	if gray := colourless(canvas); gray != nil {
		page = gray
	}
	var out bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := fast.Encode(&out, page); err != nil || out.Len() <= smallPNG {
		return out.Bytes(), err
	}
	out.Reset()
	err := jpeg.Encode(&out, page, &jpeg.Options{Quality: jpegQuality})
	return out.Bytes(), err
}

// colourless returns the page without colours; nil if it has some.
func colourless(page *image.RGBA) *image.Gray {
	gray := image.NewGray(page.Rect)
	for i := range gray.Pix {
		p := page.Pix[4*i : 4*i+3]
		if p[0] != p[1] || p[1] != p[2] {
			return nil
		}
		gray.Pix[i] = p[0]
	}
	return gray
}
