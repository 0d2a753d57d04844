// Fetched images and PDF documents, shown as Read shows them.

package webfetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/media/pdf"
)

const typePDF = "application/pdf"

// maxPages is how many pages of a document are returned: as many as by one call of Read.
const maxPages = 20

// Blob is the details of unsupported_media, response_too_large and damaged_file.
type Blob struct {
	MediaType string `json:"mediaType"`
	Bytes     int    `json:"bytes"` // that were fetched
}

// draw decodes an image, scaled down if needed.
func (p *page) draw(ctx context.Context, data []byte) error {
	fit, err := image.Fit(ctx, p.facts.MediaType, data, image.MaxBytes)
	switch {
	case errors.Is(err, image.ErrUnknownForm), errors.Is(err, image.ErrSlow):
		return fault.Failedf("unsupported_media", "The image at %s cannot be shown: %v.", p.facts.URL, err).With(p.blob())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return p.damaged(err)
	}
	p.image = &tools.Blob{MediaType: fit.MediaType, Data: fit.Data}
	p.text = fmt.Sprintf("(An image of %d x %d pixels, shown below.)", fit.Original.Width, fit.Original.Height)
	if fit.Changed {
		p.text = fmt.Sprintf("(An image of %d x %d pixels, shown below with %d x %d.)", fit.Original.Width, fit.Original.Height, fit.Width, fit.Height)
	}
	if fit.Frames > 1 {
		p.text += fmt.Sprintf("\n(It is an animation of %d frames, of which only the first was read.)", fit.Frames)
	}
	return nil
}

// pages extracts the text of a document's first pages.
func (p *page) pages(ctx context.Context, env *tools.Env, data []byte) error {
	doc := pdf.Document{Data: data, Call: env.CallID, Box: reading(env.Box)}
	count, err := doc.Count(ctx)
	if err != nil {
		return p.unreadable(ctx, err)
	}
	env.Report(tools.Step{Message: "reading the document", Total: int64(count)})
	all, err := doc.Text(ctx, 1, min(count, maxPages))
	if err != nil {
		return p.unreadable(ctx, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "(A PDF document of %d pages.)\n", count)
	for i, text := range all {
		if text == "" {
			text = "(This page has no text.)"
		}
		fmt.Fprintf(&b, "\n--- Page %d ---\n%s\n", i+1, text)
	}
	p.text, p.facts.Pages, p.facts.Truncated = b.String(), count, len(all) < count
	return nil
}

// reading returns the call's box for a process that only needs to read.
func reading(box *sandbox.Box) *sandbox.Box {
	policy := box.Ready().Policy
	policy.Places = slices.Clone(policy.Places)
	for i := range policy.Places {
		if policy.Places[i].Access == sandbox.Write && policy.Places[i].Source == "" {
			policy.Places[i].Access = sandbox.Read
		}
	}
	return box.Under(policy)
}

func (p *page) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = pdf.Fault(err, "The PDF document at "+p.facts.URL, fault.Failed)
	if errors.Is(err, pdf.ErrEmpty) {
		return p.damaged(err)
	}
	if found, ok := errors.AsType[*fault.Error](err); ok {
		return found.With(p.blob())
	}
	return err
}

func (p *page) damaged(err error) error {
	return fault.Failedf("damaged_file", "%s begins like %s, but cannot be shown: %v.", p.facts.URL, p.facts.MediaType, err).With(p.blob())
}

func (p *page) blob() Blob { return Blob{p.facts.MediaType, p.facts.Bytes} }
