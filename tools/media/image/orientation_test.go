package image

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"testing"
)

// exif is EXIF data that says nothing but an orientation.
func exif(order binary.AppendByteOrder, o uint16) []byte {
	out := []byte("MM")
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		out = []byte("II")
	}
	out = order.AppendUint16(out, 42)
	out = order.AppendUint32(out, 8)
	out = order.AppendUint16(out, 2)
	for _, entry := range [][2]uint16{{0x010f, 7}, {0x0112, o}} {
		out = order.AppendUint16(out, entry[0])
		out = order.AppendUint16(out, 3)
		out = order.AppendUint32(out, 1)
		out = order.AppendUint16(out, entry[1])
		out = order.AppendUint16(out, 0)
	}
	return order.AppendUint32(out, 0)
}

// marked puts EXIF data into a JPEG, behind a segment of another kind.
func marked(data, exif []byte) []byte {
	segment := append([]byte("\xff\xfe\x00\x04no\xff\xff\xe1"), 0, byte(len(exif)+8))
	return append(append(append(data[:2:2], segment...), append([]byte("Exif\x00\x00"), exif...)...), data[2:]...)
}

// Where the red corner, stored at the top left of an image that is wider than high, is meant to be shown.
var corners = []struct{ wide, right, bottom bool }{
	1: {true, false, false}, 2: {true, true, false}, 3: {true, true, true}, 4: {true, false, true},
	5: {false, false, false}, 6: {false, true, false}, 7: {false, true, true}, 8: {false, false, true},
}

func TestOrientation(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 320, 160))
	for y := range 160 {
		for x := range 320 {
			img.Set(x, y, color.White)
			if x < 96 && y < 48 {
				img.Set(x, y, color.RGBA{R: 255, A: 255})
			}
		}
	}
	data := coded(t, "image/jpeg", img)
	for o, want := range corners {
		if o == 0 {
			want = corners[1] // is none, and counts for nothing
		}
		order := []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian}[o%2]
		p, err := Fit(t.Context(), "image/jpeg", marked(data, exif(order, uint16(o))), len(data))
		if err != nil {
			t.Fatal(err)
		}
		got, err := jpeg.Decode(bytes.NewReader(p.Data))
		if err != nil || got.Bounds().Dx() != p.Width || got.Bounds().Dy() != p.Height {
			t.Fatalf("%v: %v, said to be %d x %d", err, got.Bounds(), p.Width, p.Height)
		}
		red := func(x, y int) bool {
			_, g, _, _ := got.At(x, y).RGBA()
			return g < 0x4000
		}
		for _, right := range []bool{false, true} {
			for _, bottom := range []bool{false, true} {
				x, y := 20, 20
				if right {
					x = p.Width - 21
				}
				if bottom {
					y = p.Height - 21
				}
				if red(x, y) != (right == want.right && bottom == want.bottom) || want.wide != (p.Width > p.Height) {
					t.Errorf("orientation %d, %d x %d: the corner right %v, bottom %v is red: %v", o, p.Width, p.Height, right, bottom, red(x, y))
				}
			}
		}
	}
}

// chunk is one of a PNG's.
func chunk(kind string, content []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	out = append(append(out, kind...), content...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// riff is a WebP file of those chunks.
func riff(chunks ...string) []byte {
	body := "WEBP"
	for _, c := range chunks {
		body += c[:4] + string(binary.LittleEndian.AppendUint32(nil, uint32(len(c)-4))) + c[4:]
		if len(c)%2 == 1 {
			body += "\x00"
		}
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func TestMarksOfOtherFormats(t *testing.T) {
	turned := exif(binary.LittleEndian, 6)
	png := append([]byte("\x89PNG\r\n\x1a\n"), append(chunk("tEXt", []byte("a")), chunk("eXIf", turned)...)...)
	for name, c := range map[string]struct {
		media string
		data  []byte
		want  orientation
	}{
		"PNG": {"image/png", png, 6}, "cut PNG": {"image/png", png[:len(png)-20], 1},
		"WebP": {"image/webp", riff("VP8Xodd", "EXIF"+string(turned)), 6}, "WebP in JPEG's form": {"image/webp", riff("EXIFExif\x00\x00" + string(turned)), 6},
		"GIF": {"image/gif", turned, 1}, "no EXIF": {"image/jpeg", coded(t, "image/jpeg", noise(3, 3)), 1}, "nothing": {"image/jpeg", nil, 1},
	} {
		if got := orientationOf(c.media, c.data); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestFrames(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 30, 4), palette.Plan9)
	moving := func(n int) []byte {
		var out bytes.Buffer
		all := gif.GIF{}
		for range n {
			all.Image, all.Delay = append(all.Image, frame), append(all.Delay, 1)
		}
		if err := gif.EncodeAll(&out, &all); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, c := range map[string]struct {
		media string
		data  []byte
		want  int
	}{
		"a still GIF": {"image/gif", moving(1), 1}, "a GIF of five": {"image/gif", moving(5), 5}, "a cut GIF": {"image/gif", moving(5)[:900], 2},
		"a PNG": {"image/png", coded(t, "image/png", frame), 1}, "a PNG of three": {"image/png", append([]byte("\x89PNG\r\n\x1a\n"), chunk("acTL", []byte("\x00\x00\x00\x03\x00\x00\x00\x00"))...), 3},
		"a WebP of two": {"image/webp", riff("VP8X", "ANMF1", "ANMF22"), 2}, "nothing": {"image/gif", nil, 1},
	} {
		if got := frames(c.media, c.data); got != c.want {
			t.Errorf("%s: %d frames, want %d", name, got, c.want)
		}
	}
}

// Whatever the bytes: an orientation and a number.
func FuzzMarks(f *testing.F) {
	f.Add(marked(coded(f, "image/jpeg", noise(3, 3)), exif(binary.BigEndian, 8)))
	f.Add(riff("VP8X", "ANMF", "EXIF"+string(exif(binary.LittleEndian, 3))))
	f.Add(append([]byte("\x89PNG\r\n\x1a\n"), chunk("eXIf", exif(binary.LittleEndian, 3))...))
	f.Add(coded(f, "image/gif", noise(3, 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for media := range formats {
			if o := orientationOf(media, data); o < 1 || o > 8 {
				t.Errorf("%s: orientation %d", media, o)
			}
			if n := frames(media, data); n < 1 {
				t.Errorf("%s: %d frames", media, n)
			}
		}
	})
}
