// Package image turns the bytes of an image into what a model can be shown: it checks an image by
// decoding it, and scales it down if it is too large. It works on bytes in memory and does not know
// files or tools.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"golang.org/x/image/webp"
)

// Limits of a picture that is shown. MaxSide is in pixels: above it model APIs scale down by
// themselves. MaxBytes leaves room for the base64 form below their 5 MB.
const (
	MaxSide  = 2000
	MaxBytes = 3_500_000
)

// maxPixels is the largest image that is decoded. The number is our own: above the 48 megapixels of
// telephones, and at most 0.8 GB of memory for the costliest form, a progressive JPEG.
const maxPixels = 50_000_000

// A Picture is an image that can be shown as it is.
type Picture struct {
	MediaType     string
	Data          []byte
	Width, Height int      // pixels
	Original      Original // equal to it if nothing was changed
	Changed       bool     // Data differs from the original
	Frames        int      // of the original; more than 1: an animation, of which only the first was read
}

// Original describes an image before any change.
type Original struct {
	MediaType     string
	Bytes         int
	Width, Height int // pixels
}

// A LargeError is an image that is too large to be decoded.
type LargeError struct{ Width, Height int }

func (e *LargeError) Error() string {
	return fmt.Sprintf("it has %d x %d pixels; more than %d million, or %d a side, are not decoded", e.Width, e.Height, maxPixels/1_000_000, longest)
}

// A DamagedError is data that begins like an image and cannot be decoded.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string { return "its data is damaged: " + e.Why }

// ErrUnknownForm is an image of a known format in a form that is not decoded here, and that is too
// large to be shown as it is.
var ErrUnknownForm = errors.New("it is in a form that cannot be scaled down here, and too large to be shown as it is")

// longestTurn is how long one image may be worked on: others may wait for the memory. The number is
// our own: many times what the largest image takes.
const longestTurn = 15 * time.Second

// ErrSlow is an image that takes too long.
var ErrSlow = fmt.Errorf("it takes longer than %s to be decoded and scaled down", longestTurn)

// A format is a kind of image. unknown reports whether an error of the decoder means that the image
// may be undamaged, and that the decoder does not support its form.
type format struct {
	config  func(io.Reader) (image.Config, error)
	decode  func(io.Reader) (image.Image, error)
	unknown func(data []byte, err error) bool
}

var formats = map[string]format{
	"image/png":  {png.DecodeConfig, png.Decode, is[png.UnsupportedError]},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode, is[jpeg.UnsupportedError]},
	"image/gif":  {gif.DecodeConfig, gif.Decode, func([]byte, error) bool { return false }},
	"image/webp": {webp.DecodeConfig, webp.Decode, isAnimatedWebP},
}

func is[E error](_ []byte, err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Shown reports whether images of the media type can be shown.
func Shown(media string) bool {
	_, ok := formats[media]
	return ok
}

// longest is how many pixels a side may have. The number is our own: scaling a strip takes memory
// for each line of it.
const longest = 1<<16 - 1

// plainSize is the size in bytes up to which a picture is looked at by Uniform. Our own: a page of one
// colour is far smaller.
const plainSize = 64 << 10

// Uniform reports whether a picture of a few bytes has only one colour.
func Uniform(p Picture) bool {
	if len(p.Data) > plainSize {
		return false
	}
	m, err := formats[p.MediaType].decode(bytes.NewReader(p.Data))
	if err != nil {
		return false
	}
	first := m.At(m.Bounds().Min.X, m.Bounds().Min.Y)
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			if m.At(x, y) != first {
				return false
			}
		}
	}
	return true
}

// Check returns the size of an image, for which its beginning is enough. Its error is one of Fit's.
func Check(media string, data []byte) (image.Config, error) {
	f, ok := formats[media]
	if !ok {
		return image.Config{}, ErrUnknownForm
	}
	config, err := f.config(bytes.NewReader(data))
	switch {
	case err != nil && f.unknown(data, err):
		return config, ErrUnknownForm
	case err != nil:
		return config, &DamagedError{err.Error()}
	case config.Width <= 0 || config.Height <= 0:
		return config, &DamagedError{"it has no pixels"}
	case config.Width > maxPixels/config.Height, config.Width > longest, config.Height > longest:
		return config, &LargeError{config.Width, config.Height}
	}
	return config, nil
}

// Fit returns an image, of a media type that is Shown, in a form of at most MaxSide pixels a side
// and most bytes. An image that fits is returned unchanged. Fit checks the size before it decodes
// anything, and decodes everything before it returns it, since an image that a model API cannot
// decode spoils the whole conversation. A changed image is turned as it is meant to be shown; of an
// animation it is the first frame. The errors are *LargeError, *DamagedError, ErrUnknownForm,
// ErrSlow, and the cause of ctx.
func Fit(ctx context.Context, media string, data []byte, most int) (Picture, error) {
	config, err := Check(media, data)
	if err != nil {
		return Picture{}, err
	}
	f := formats[media]
	p := Picture{MediaType: media, Data: data, Width: config.Width, Height: config.Height, Frames: frames(media, data)}
	p.Original = Original{MediaType: media, Bytes: len(data), Width: config.Width, Height: config.Height}
	fits := len(data) <= most && max(config.Width, config.Height) <= MaxSide
	done, err := queue(ctx, config)
	if err != nil {
		return Picture{}, err
	}
	defer done()
	ctx, stop := context.WithTimeoutCause(ctx, longestTurn, ErrSlow)
	defer stop()
	decoded, err := f.decode(&patient{ctx, bytes.NewReader(data)})
	switch {
	case ctx.Err() != nil:
		return Picture{}, context.Cause(ctx)
	case err != nil && f.unknown(data, err) && fits:
		return p, nil
	case err != nil && f.unknown(data, err):
		return Picture{}, ErrUnknownForm
	case err != nil:
		return Picture{}, &DamagedError{err.Error()}
	case fits:
		return p, nil
	}
	return p.shrink(ctx, decoded, orientationOf(media, data), most)
}

// large is how many pixels make an image one that is decoded alone.
const large = 4_000_000

// turn is filled while a large image is decoded, so that several calls at once do not fill the
// memory.
var turn = make(chan struct{}, 1)

// queue waits until there is memory for an image; done releases it.
func queue(ctx context.Context, c image.Config) (done func(), err error) {
	if c.Width*c.Height < large {
		return func() {}, nil
	}
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A patient reader ends when its context does.
type patient struct {
	ctx  context.Context
	from io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.from.Read(b[:min(len(b), 64<<10)])
}

// isAnimatedWebP reads the flags of an extended WebP file (RFC 9649, 2.7.1).
func isAnimatedWebP(data []byte, _ error) bool {
	const flags, animation = 20, 0x02
	return len(data) > flags && string(data[12:16]) == "VP8X" && data[flags]&animation != 0
}
