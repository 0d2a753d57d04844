package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"
)

// noise is an image that no format makes much smaller.
func noise(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(img.Pix); i += 4 {
		binary.LittleEndian.PutUint32(img.Pix[i:], random.Uint32()|0xff<<24)
	}
	return img
}

func coded(t testing.TB, media string, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch media {
	case "image/png":
		err = png.Encode(&out, img)
	case "image/jpeg":
		err = jpeg.Encode(&out, img, nil)
	case "image/gif":
		err = gif.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tinyWebP is one black pixel, in the lossless form.
var tinyWebP = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

func TestWhatFitsStays(t *testing.T) {
	small := image.NewRGBA(image.Rect(0, 0, 30, 20))
	for media, data := range map[string][]byte{
		"image/png": coded(t, "image/png", small), "image/jpeg": coded(t, "image/jpeg", small), "image/gif": coded(t, "image/gif", small),
		"image/webp": tinyWebP,
	} {
		p, err := Fit(t.Context(), media, data, MaxBytes)
		if err != nil || p.Changed || !bytes.Equal(p.Data, data) || p.MediaType != media || p.Width != p.Original.Width || p.Frames != 1 {
			t.Errorf("%s: %v %+v", media, err, p)
		}
	}
}

func TestLargeIsScaledDown(t *testing.T) {
	for _, c := range []struct {
		media         string
		w, h, most    int
		want          string
		wantW, wantH  int
		fewer, clears bool
	}{
		{media: "image/png", w: 4000, h: 10, most: MaxBytes, want: "image/png", wantW: 2000, wantH: 5},
		{media: "image/png", w: 1, h: 3000, most: MaxBytes, want: "image/png", wantW: 1, wantH: 2000},
		{media: "image/jpeg", w: 2500, h: 100, most: MaxBytes, want: "image/jpeg", wantW: 2000, wantH: 80},
		{media: "image/gif", w: 2100, h: 21, most: MaxBytes, want: "image/png", wantW: 2000, wantH: 20},
		{media: "image/png", w: 300, h: 200, most: 100_000, want: "image/jpeg", wantW: 300, wantH: 200},
		{media: "image/png", w: 300, h: 300, most: 5_000, want: "image/jpeg", fewer: true},
	} {
		p, err := Fit(t.Context(), c.media, coded(t, c.media, noise(c.w, c.h)), c.most)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if !p.Changed || len(p.Data) > c.most || p.MediaType != c.want || p.Original.Width != c.w || p.Original.Height != c.h {
			t.Errorf("%+v: %s, %d bytes, %d x %d, of %+v", c, p.MediaType, len(p.Data), p.Width, p.Height, p.Original)
		}
		if !c.fewer && (p.Width != c.wantW || p.Height != c.wantH) || c.fewer && p.Width >= c.w {
			t.Errorf("%+v: %d x %d", c, p.Width, p.Height)
		}
		if got, _, err := image.Decode(bytes.NewReader(p.Data)); err != nil || got.Bounds().Dx() != p.Width {
			t.Errorf("%+v: what came out: %v", c, err)
		}
	}
}

// What is transparent becomes white where the format has no transparency, not black.
func TestTransparencyBecomesWhite(t *testing.T) {
	img := noise(300, 300)
	for i := range img.Pix[:len(img.Pix)/2] {
		img.Pix[i] = 0
	}
	p, err := Fit(t.Context(), "image/png", coded(t, "image/png", img), 60_000)
	if err != nil || p.MediaType != "image/jpeg" {
		t.Fatalf("%v %s", err, p.MediaType)
	}
	got, err := jpeg.Decode(bytes.NewReader(p.Data))
	if err != nil {
		t.Fatal(err)
	}
	if y := color.GrayModel.Convert(got.At(1, 1)).(color.Gray).Y; y < 250 {
		t.Errorf("a transparent corner has the brightness %d", y)
	}
}

func TestFirstFrameOfAnAnimation(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 2500, 4), color.Palette{color.Black, color.White})
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	p, err := Fit(t.Context(), "image/gif", out.Bytes(), MaxBytes)
	if err != nil || p.Frames != 2 || p.Width != MaxSide {
		t.Errorf("%v: %d frames, %d wide", err, p.Frames, p.Width)
	}
}

// bomb is a PNG that says it is huge, with no pixels in it.
func bomb(w, h uint32) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	header = append(binary.BigEndian.AppendUint32(header, h), 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(header))
}

func TestRefused(t *testing.T) {
	var tooLarge *LargeError
	if _, err := Fit(t.Context(), "image/png", bomb(100_000, 100_000), MaxBytes); !errors.As(err, &tooLarge) || tooLarge.Width != 100_000 {
		t.Errorf("a bomb: %v", err)
	}
	sound := coded(t, "image/png", noise(50, 50))
	for name, c := range map[string]struct {
		media string
		data  []byte
	}{
		"nothing":       {"image/png", nil},
		"cut":           {"image/png", sound[:len(sound)/2]},
		"header alone":  {"image/png", bomb(10, 10)},
		"another":       {"image/jpeg", sound},
		"cut JPEG":      {"image/jpeg", coded(t, "image/jpeg", noise(50, 50))[:700]},
		"cut WebP":      {"image/webp", tinyWebP[:25]},
		"GIF and death": {"image/gif", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00")},
	} {
		var damaged *DamagedError
		if _, err := Fit(t.Context(), c.media, c.data, MaxBytes); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user broke in")
	cancel(why)
	if _, err := Fit(ctx, "image/png", coded(t, "image/png", noise(100, 100)), MaxBytes); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// Whatever comes: an image that fits, or an error.
func FuzzFit(f *testing.F) {
	f.Add([]byte(tinyWebP))
	f.Add(bomb(3, 3))
	for _, media := range []string{"image/png", "image/jpeg", "image/gif"} {
		f.Add(coded(f, media, noise(5, 4)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for media := range formats {
			if c, err := Check(media, data); err != nil || c.Width*c.Height > 1_000_000 {
				continue
			}
			p, err := Fit(t.Context(), media, data, 10_000)
			if err == nil && (len(p.Data) > 10_000 || max(p.Width, p.Height) > MaxSide) {
				t.Errorf("%s: %d bytes, %d x %d", media, len(p.Data), p.Width, p.Height)
			}
		}
	})
}
