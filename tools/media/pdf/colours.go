// Samples of images and the colours that they stand for.

package pdf

import (
	"image"
	"image/color"
	"io"

	library "github.com/ledongthuc/pdf"
)

// colours are a colour space.
type colours struct {
	components int
	// of returns the colour of a value from 0 to 1, where there is one component.
	of func(v float64) color.Color
	// indexed are the colours of an indexed space; nil: it is not one.
	indexed color.Palette
}

// colourSpace reads a colour space; depth is how many others it is the base of.
func colourSpace(v, resources library.Value, depth int) colours {
	if depth > 2 {
		panic(ErrUndrawable)
	}
	name := v.Name()
	if v.Kind() == library.Array {
		name = v.Index(0).Name()
	} else if named := resources.Key("ColorSpace").Key(name); name != "" && named.Kind() != library.Null {
		return colourSpace(named, library.Value{}, depth+1)
	}
	switch name {
	case "DeviceGray", "G", "CalGray":
		return colours{components: 1, of: grayOf}
	case "DeviceRGB", "RGB", "CalRGB":
		return colours{components: 3}
	case "DeviceCMYK", "CMYK":
		return colours{components: 4}
	case "Separation":
		return colours{components: 1, of: func(v float64) color.Color { return grayOf(1 - v) }}
	case "ICCBased":
		if n := int(v.Index(1).Key("N").Int64()); n == 1 || n == 3 || n == 4 {
			return colours{components: n, of: grayOf}
		}
	case "Indexed", "I":
		return colours{components: 1, indexed: palette(v, colourSpace(v.Index(1), resources, depth+1))}
	}
	panic(ErrUndrawable)
}

// grayOf returns a gray from 0, black, to 1.
func grayOf(v float64) color.Color { return color.Gray{Y: uint8(255*v + 0.5)} }

// palette reads the colours of an indexed space over base.
func palette(v library.Value, base colours) color.Palette {
	table := []byte(v.Index(3).RawString())
	if v.Index(3).Kind() == library.Stream {
		var err error
		if table, err = io.ReadAll(io.LimitReader(v.Index(3).Reader(), 4*(maxHival+1))); err != nil {
			panic(ErrUndrawable)
		}
	}
	last := v.Index(2).Int64()
	n := base.components
	if last < 0 || last > maxHival || base.indexed != nil || len(table) < n*int(last+1) {
		panic(ErrUndrawable)
	}
	var all color.Palette
	for i := range int(last) + 1 {
		all = append(all, base.colour(table[n*i:]))
	}
	return all
}

// colour returns the colour of 8-bit samples.
func (c colours) colour(s []byte) color.Color {
	switch c.components {
	case 1:
		return c.of(float64(s[0]) / 255)
	case 3:
		return color.RGBA{s[0], s[1], s[2], 255}
	}
	r, g, b := color.CMYKToRGB(s[0], s[1], s[2], s[3])
	return color.RGBA{r, g, b, 255}
}

// samples are an image in rows of whole bytes.
type samples struct {
	raw      []byte
	w, h     int
	bits     int  // of a component
	inverted bool // the highest value stands for the lowest
	mask     bool // a stencil: 1 is left as it is
}

// image returns the samples as an image.
func (s samples) image(space colours) image.Image {
	switch s.bits {
	case 1, 2, 4, 8, 16:
	default:
		panic(ErrUndrawable)
	}
	bounds, per := image.Rect(0, 0, s.w, s.h), s.w*space.components
	if space.components == 1 {
		out := image.NewPaletted(bounds, s.palette(space))
		s.each(per, func(i int, v byte) { out.Pix[i] = min(v, byte(len(out.Palette)-1)) })
		return out
	}
	scale := byte(255 / (1<<min(s.bits, 8) - 1))
	if space.components == 4 {
		out := image.NewCMYK(bounds)
		s.each(per, func(i int, v byte) { out.Pix[i] = s.turned(v * scale) })
		return out
	}
	out := image.NewRGBA(bounds)
	s.each(per, func(i int, v byte) { out.Pix[i/3*4+i%3], out.Pix[i/3*4+3] = s.turned(v*scale), 255 })
	return out
}

func (s samples) turned(v byte) byte {
	if s.inverted {
		return 255 - v
	}
	return v
}

// palette returns the colour of each value of a sample.
func (s samples) palette(space colours) color.Palette {
	if space.indexed != nil {
		return space.indexed
	}
	last := 1<<min(s.bits, 8) - 1
	var all color.Palette
	for v := range last + 1 {
		if s.inverted {
			v = last - v
		}
		c := space.of(float64(v) / float64(last))
		if s.mask && v == last {
			c = color.Transparent
		}
		all = append(all, c)
	}
	return all
}

// each calls do with the high 8 bits of each sample, numbered from the first row on.
func (s samples) each(per int, do func(i int, v byte)) {
	stride := (per*s.bits + 7) / 8
	for y := range s.h {
		row := s.raw[y*stride:]
		for x := range per {
			var v byte
			switch s.bits {
			case 16:
				v = row[2*x]
			case 8:
				v = row[x]
			default:
				at := x * s.bits
				v = row[at/8] >> (8 - s.bits - at%8) & (1<<s.bits - 1)
			}
			do(y*per+x, v)
		}
	}
}
