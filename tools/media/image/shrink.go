// Making an image smaller, in pixels and in bytes.

package image

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// qualities are those of JPEG that are tried before the number of pixels is reduced further. With a
// lower one, text in screenshots cannot be read.
var qualities = []int{85, 70, 50}

// shrink returns p with the decoded image, turned by o, in place of its data: scaled to MaxSide,
// and further while it has too many bytes. A lossless original stays lossless if that fits.
func (p Picture) shrink(ctx context.Context, decoded image.Image, o orientation, most int) (Picture, error) {
	p.Changed = true
	bounds := decoded.Bounds()
	for side := min(MaxSide, max(bounds.Dx(), bounds.Dy())); ; side = side * 3 / 4 {
		if ctx.Err() != nil {
			return Picture{}, context.Cause(ctx)
		}
		small := oriented(scaled(decoded, side), o) // fewer pixels to turn
		p.Width, p.Height = small.Bounds().Dx(), small.Bounds().Dy()
		var out bytes.Buffer
		if p.Original.MediaType != "image/jpeg" {
			if err := png.Encode(&out, small); err == nil && out.Len() <= most {
				p.MediaType, p.Data = "image/png", out.Bytes()
				return p, nil
			}
		}
		opaque := onWhite(small)
		for _, quality := range qualities {
			out.Reset()
			if err := jpeg.Encode(&out, opaque, &jpeg.Options{Quality: quality}); err == nil && out.Len() <= most {
				p.MediaType, p.Data = "image/jpeg", out.Bytes()
				return p, nil
			}
		}
		if side <= 1 { // most is too small for any image
			return Picture{}, ErrUnknownForm
		}
	}
}

// scaled returns img with at most side pixels a side, in its own proportions.
func scaled(img image.Image, side int) image.Image {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if max(w, h) <= side {
		return img
	}
	longer := max(w, h)
	out := image.NewRGBA(image.Rect(0, 0, max(w*side/longer, 1), max(h*side/longer, 1)))
	draw.BiLinear.Scale(out, out.Bounds(), img, img.Bounds(), draw.Src, nil)
	return out
}

// onWhite returns img on a white background: JPEG has no transparency.
func onWhite(img image.Image) image.Image {
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		return img
	}
	out := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}
