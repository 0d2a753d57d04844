// PDF documents: the requested pages, as text or as images, or the whole file. tools/media/pdf
// extracts the text and draws the pages.

package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/media/pdf"
)

// A form is how a PDF document is given; empty: as text, and pages without text as images.
type form string

// The forms.
const (
	asText     form = "text"
	asImage    form = "image"
	asDocument form = "document"
)

// Document is the structured result for a PDF document.
type Document struct {
	Type       string `json:"type"`     // "pdf"
	FilePath   string `json:"filePath"` // absolute, as named
	Size       int64  `json:"size"`     // bytes
	TotalPages int    `json:"totalPages"`
	Pages      string `json:"pages"`               // shown, such as "1-5,9"; empty: none
	NextPages  string `json:"nextPages,omitempty"` // requested and not shown, for lack of room; empty: none
	Textless   string `json:"textless,omitempty"`  // without any text, as far as that was looked at; empty: none
	Images     string `json:"images,omitempty"`    // shown as images; empty: none
}

// maxDocument is the largest document that is given as a whole, in bytes. A message has at most 4 MiB.
const maxDocument = image.MaxBytes

// A reading is a document and its requested pages.
type reading struct {
	doc   pdf.Document
	count int
	runs  []pageRange
}

// reading counts the pages and determines which are requested.
func (s *source) reading(ctx context.Context, env *tools.Env, in input) (*reading, error) {
	data, err := s.whole(ctx)
	if err != nil {
		return nil, err
	}
	r := &reading{doc: pdf.Document{Data: data, Call: env.CallID, Box: env.Box}}
	if r.count, err = r.doc.Count(ctx); err != nil {
		return r, s.unreadable(err)
	}
	if in.As == asDocument {
		r.runs = []pageRange{{1, r.count}}
		return r, s.checkDocument(in)
	}
	if in.Pages == "" {
		if r.count > maxUnasked {
			return nil, fault.Invalidf("pages_needed", "%s has %d pages. Say which to read, at most %d a call, for example pages=1-%d.", s.file.Path.Shown(), r.count, maxPages, maxUnasked).
				At("/pages").With(Document{Type: "pdf", FilePath: s.file.Path.Name(), Size: s.file.Info.Size(), TotalPages: r.count})
		}
		r.runs = []pageRange{{1, r.count}}
		return r, nil
	}
	ranges, err := parsePages(in.Pages)
	if err != nil {
		return nil, err
	}
	pages := 0
	if r.runs, pages = within(ranges, r.count); pages > maxPages {
		return nil, fault.Invalidf("invalid_input", "pages names %d pages of the document's %d; one call returns at most %d. Request fewer.", pages, r.count, maxPages).At("/pages")
	}
	return r, nil
}

// checkDocument returns the fault for a document that cannot be given as a whole.
func (s *source) checkDocument(in input) error {
	size := s.file.Info.Size()
	switch {
	case in.Pages != "":
		return fault.Invalidf("invalid_input", "as=document gives the whole file. Leave pages out, or use as=image for some pages.").At("/pages")
	case size > maxDocument:
		return fault.Invalidf("file_too_large", "%s has %d bytes, and as=document gives at most %d. Read it by pages, as text or as images.", s.file.Path.Shown(), size, maxDocument).
			At("/as").With(Binary{MediaType: s.media, Size: size})
	}
	return nil
}

// unreadable returns the fault for a document that cannot be read.
func (s *source) unreadable(err error) error {
	size := s.file.Info.Size()
	err = pdf.Fault(err, fmt.Sprintf("%s (PDF document, %s)", s.file.Path.Shown(), text.Count(size, "byte")), fault.Invalid)
	if found, ok := errors.AsType[*fault.Error](err); ok && found.Kind == fault.Invalid {
		return found.At("/file_path").With(Binary{MediaType: "application/pdf", Size: size})
	}
	return err
}

// document returns the document in the requested form, as far as there is room.
func (s *source) document(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	r, err := s.reading(ctx, env, in)
	if err != nil && !errors.Is(err, pdf.ErrEmpty) {
		return tools.Result{}, err
	}
	d := Document{Type: "pdf", FilePath: s.file.Path.Name(), Size: s.file.Info.Size(), TotalPages: r.count}
	if in.As == asDocument && r.count > 0 {
		s.remember(env, workspace.State{Whole: true})
		d.Pages = listing(r.runs)
		return tools.Result{Content: []tools.Block{{Document: &tools.Blob{MediaType: s.media, Data: r.doc.Data}}}, Structured: d}, nil
	}
	out := leaves{total: r.count, room: room(env), bytes: image.MaxBytes}
	for _, run := range r.runs {
		if err := s.addRun(ctx, env, in, r, &out, run); err != nil {
			return tools.Result{}, err
		}
	}
	if in.As == asImage && len(out.undrawn) > 0 && len(out.images) == 0 {
		return tools.Result{}, undrawable(out.undrawn)
	}
	s.remember(env, workspace.State{Whole: out.given == r.count && !out.cut})
	d.Pages, d.NextPages, d.Textless, d.Images = listing(out.shown), listing(out.left), listing(out.blank), listing(out.images)
	return tools.Result{Content: out.finish(in), Structured: d}, nil
}

// addRun adds a run of pages, until there is no more room.
func (s *source) addRun(ctx context.Context, env *tools.Env, in input, r *reading, out *leaves, run pageRange) error {
	if out.full {
		out.left = append(out.left, run)
		return nil
	}
	pages := make([]string, run.last-run.first+1)
	if in.As != asImage {
		env.Report(tools.Step{Message: fmt.Sprintf("reading page %d of %d", run.first, r.count), Done: int64(out.given), Total: int64(r.count)})
		var err error
		if pages, err = r.doc.Text(ctx, run.first, run.last); err != nil {
			return s.unreadable(err)
		}
	}
	draw := func(page int) (image.Picture, error) {
		env.Report(tools.Step{Message: fmt.Sprintf("drawing page %d of %d", page, r.count), Done: int64(out.given), Total: int64(r.count)})
		data, err := r.doc.Image(ctx, page)
		if err != nil {
			return image.Picture{}, err
		}
		p, err := image.Fit(ctx, text.MediaType(data), data, image.MaxBytes)
		if err != nil {
			err = s.unshowable(err)
		}
		return p, err
	}
	err := out.add(run, pages, in.As, draw)
	if err != nil && ctx.Err() == nil {
		return s.unreadable(err)
	}
	return err
}

// undrawable returns the fault for pages of which none can be drawn.
func undrawable(pages []pageRange) error {
	if pdf.DrawsAll() {
		return fault.Failedf("damaged_file", "No image: %s. Read with as=text or as=document.", noImage(pages)).At("/as")
	}
	return fault.Failedf("program_not_found", "No image: %s. Read with as=text or as=document, or ask the user to install poppler-utils.", noImage(pages)).At("/as")
}
