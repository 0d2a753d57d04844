// Images: shown unchanged, or scaled down by tools/media/image.

package read

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/media/image"
)

// Image is the structured result for an image.
type Image struct {
	Type      string `json:"type"`      // "image"
	FilePath  string `json:"filePath"`  // absolute, as named
	Size      int64  `json:"size"`      // bytes of the file
	MediaType string `json:"mediaType"` // of the file
	Width     int    `json:"width"`     // pixels, of the file
	Height    int    `json:"height"`    // pixels, of the file
	Frames    int    `json:"frames"`    // images in it; more than 1 for an animation, of which only the first was read
	Shown     Shown  `json:"shown"`
}

// Shown is an image in the form in which it is shown.
type Shown struct {
	MediaType  string `json:"mediaType"`
	Size       int    `json:"size"`       // bytes
	Width      int    `json:"width"`      // pixels
	Height     int    `json:"height"`     // pixels
	Scaled     bool   `json:"scaled"`     // it differs from the file
	FirstFrame bool   `json:"firstFrame"` // of an animation
}

// checkImage reads only the size and the beginning.
func (s *source) checkImage() error {
	if err := s.checkSize(); err != nil {
		return err
	}
	_, err := image.Check(s.media, s.sample)
	if _, large := errors.AsType[*image.LargeError](err); large {
		return s.unshowable(err)
	}
	return nil // another error may be caused by the end of the sample
}

// unshowable returns the fault for an image that cannot be shown.
func (s *source) unshowable(err error) error {
	f := fault.Invalidf("file_too_large", "%s (%s) cannot be shown: %v.", s.file.Path.Shown(), s.media, err).
		At("/file_path").With(Binary{MediaType: s.media, Size: s.file.Info.Size()})
	advice := " Scale it down with a program through Bash, if there is one, and read the result."
	_, large := errors.AsType[*image.LargeError](err)
	_, damaged := errors.AsType[*image.DamagedError](err)
	switch {
	case damaged:
		f.Code, advice = "damaged_file", " Get an undamaged copy."
	case errors.Is(err, image.ErrUnknownForm):
		f.Code, advice = "unsupported_media", " Convert it with a program through Bash, if there is one, and read the result."
	case errors.Is(err, image.ErrSlow):
		f.Kind = fault.Failed
	case !large:
		return err
	}
	f.Message += advice
	return f
}

// image returns the image as a block, after a sentence if it is not shown unchanged.
func (s *source) image(ctx context.Context, env *tools.Env) (tools.Result, error) {
	data, err := s.whole(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	p, err := image.Fit(ctx, s.media, data, image.MaxBytes)
	if err != nil {
		return tools.Result{}, s.unshowable(err)
	}
	s.remember(env, workspace.State{Whole: true})
	var result tools.Result
	if said := remarks(p); said != "" {
		result = tools.Text("(" + said + ")")
	}
	result.Content = append(result.Content, tools.Block{Image: &tools.Blob{MediaType: p.MediaType, Data: p.Data}})
	result.Structured = Image{
		Type: "image", FilePath: s.file.Path.Name(), Size: int64(p.Original.Bytes), MediaType: p.Original.MediaType,
		Width: p.Original.Width, Height: p.Original.Height, Frames: p.Frames,
		Shown: Shown{MediaType: p.MediaType, Size: len(p.Data), Width: p.Width, Height: p.Height, Scaled: p.Changed, FirstFrame: p.Changed && p.Frames > 1},
	}
	return result, nil
}

// remarks returns how an image was changed, and which part of it was not read; empty: it is shown
// unchanged.
func remarks(p image.Picture) string {
	var said []string
	if p.Changed {
		said = append(said, fmt.Sprintf("The image has %d x %d pixels and %d bytes; it is shown with %d x %d pixels, as %s.", p.Original.Width, p.Original.Height, p.Original.Bytes, p.Width, p.Height, p.MediaType))
	}
	if p.Frames > 1 {
		read := "only the first was read"
		if p.Changed {
			read = "the first is shown"
		}
		said = append(said, fmt.Sprintf("It is an animation of %d frames, of which %s.", p.Frames, read))
	}
	return strings.Join(said, " ")
}
