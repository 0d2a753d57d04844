// The orientation of an image, which cameras store in its EXIF data, and turning pixels by it.
// Other EXIF data is not read.

package image

import (
	"bytes"
	"encoding/binary"
	"image"
)

// An orientation is how stored pixels are turned for showing, in EXIF's numbers (CIPA DC-008,
// 4.6.5): 1 and undefined values mean as stored.
type orientation uint16

const upright orientation = 1

// transposed reports whether rows become columns.
func (o orientation) transposed() bool { return o >= 5 && o <= 8 }

// orientationOf returns the orientation of an image of that media type; upright if it has none.
func orientationOf(media string, data []byte) orientation {
	switch media {
	case "image/jpeg":
		return readTIFF(exifOfJPEG(data))
	case "image/png":
		return readTIFF(chunkOfPNG(data, "eXIf"))
	case "image/webp":
		for kind, exif := range chunksOfWebP(data) {
			if kind == "EXIF" {
				return readTIFF(bytes.TrimPrefix(exif, exifMark)) // some writers take JPEG's form
			}
		}
	}
	return upright
}

// exifMark is what EXIF data begins with in a JPEG.
var exifMark = []byte("Exif\x00\x00")

// exifOfJPEG returns the EXIF data, which stands in a segment before the pixels; nil if there is
// none.
func exifOfJPEG(data []byte) []byte {
	const app1, startOfScan = 0xe1, 0xda
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker, length := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		switch {
		case marker == 0xff: // a byte that fills up
			at++
			continue
		case marker == startOfScan || length < 2 || at+2+length > len(data):
			return nil
		}
		if exif, ok := bytes.CutPrefix(data[at+4:at+2+length], exifMark); ok && marker == app1 {
			return exif
		}
		at += 2 + length
	}
	return nil
}

// readTIFF finds the orientation in the first directory of EXIF data, which is in the form of a
// TIFF file.
func readTIFF(data []byte) orientation {
	const tag, entry, short = 0x0112, 12, 3
	if len(data) < 8 {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if data[0] == 'I' {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(data[4:]))
	if order.Uint16(data[2:]) != 42 || at+2 > uint64(len(data)) {
		return upright
	}
	count := int(order.Uint16(data[at:]))
	for rest := data[at+2:]; count > 0 && len(rest) >= entry; rest, count = rest[entry:], count-1 {
		if order.Uint16(rest) == tag && order.Uint16(rest[2:]) == short {
			if o := orientation(order.Uint16(rest[8:])); o >= 1 && o <= 8 {
				return o
			}
			return upright
		}
	}
	return upright
}

// oriented returns img turned for showing.
func oriented(img image.Image, o orientation) image.Image {
	if o <= upright || o > 8 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if o.transposed() {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			from := o.source(image.Pt(x, y), w, h)
			out.Set(x, y, img.At(b.Min.X+from.X, b.Min.Y+from.Y))
		}
	}
	return out
}

// source returns where the pixel that is shown at p is stored, in an image that is stored with w x
// h pixels.
func (o orientation) source(p image.Point, w, h int) image.Point {
	if o.transposed() {
		p.X, p.Y = p.Y, p.X
	}
	if o == 2 || o == 3 || o == 7 || o == 8 {
		p.X = w - 1 - p.X
	}
	if o == 3 || o == 4 || o == 6 || o == 7 {
		p.Y = h - 1 - p.Y
	}
	return p
}
