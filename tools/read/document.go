// PDF documents: the requested pages, as text. tools/media/pdf extracts the text.

package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/pdf"
)

// Document is the structured result for a PDF document.
type Document struct {
	Type       string `json:"type"`     // "pdf"
	FilePath   string `json:"filePath"` // absolute, as named
	Size       int64  `json:"size"`     // bytes
	TotalPages int    `json:"totalPages"`
	Pages      string `json:"pages"`               // shown, such as "1-5,9"; empty: none
	NextPages  string `json:"nextPages,omitempty"` // requested and not shown, for lack of room; empty: none
	Textless   string `json:"textless,omitempty"`  // shown, and without any text; empty: none
}

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

// unreadable returns the fault for a document that cannot be read.
func (s *source) unreadable(err error) error {
	size := s.file.Info.Size()
	err = pdf.Fault(err, fmt.Sprintf("%s (PDF document, %s)", s.file.Path.Shown(), text.Count(size, "byte")), fault.Invalid)
	if found, ok := errors.AsType[*fault.Error](err); ok && found.Kind == fault.Invalid {
		return found.At("/file_path").With(Binary{MediaType: "application/pdf", Size: size})
	}
	return err
}

// document returns the requested pages, as far as there is room.
func (s *source) document(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	r, err := s.reading(ctx, env, in)
	if err != nil && !errors.Is(err, pdf.ErrEmpty) {
		return tools.Result{}, err
	}
	d := Document{Type: "pdf", FilePath: s.file.Path.Name(), Size: s.file.Info.Size(), TotalPages: r.count}
	out := leaves{total: r.count, room: room(env)}
	for _, run := range r.runs {
		if out.full {
			out.left = append(out.left, run)
			continue
		}
		env.Report(tools.Step{Message: fmt.Sprintf("reading page %d of %d", run.first, r.count), Done: int64(out.given), Total: int64(r.count)})
		pages, err := r.doc.Text(ctx, run.first, run.last)
		if err != nil {
			return tools.Result{}, s.unreadable(err)
		}
		out.add(run, pages)
	}
	s.remember(env, workspace.State{Whole: out.given == r.count && !out.cut})
	d.Pages, d.NextPages, d.Textless = listing(out.shown), listing(out.left), listing(out.blank)
	return tools.TextWith(out.text(in), d), nil
}

// leaves are the pages of a result that is being built.
type leaves struct {
	total, room        int // pages of the document; characters of the result
	out                strings.Builder
	used, given        int // characters, and pages, in out
	full, cut          bool
	shown, left, blank []pageRange
}

// add adds the pages of a run, until the text is too long.
func (l *leaves) add(run pageRange, pages []string) {
	for i, page := range pages {
		number := run.first + i
		if strings.TrimSpace(page) == "" {
			page = "(no text on this page: it is empty, or an image)"
			l.blank = grown(l.blank, number)
		}
		entry := fmt.Sprintf("--- page %d of %d ---\n%s\n", number, l.total, page)
		count := utf8.RuneCountInString(entry)
		if count > l.room-l.used && l.given > 0 {
			l.stop(pageRange{number, run.last})
			return
		}
		if left := count - l.room; left > 0 {
			entry = beginning(entry, l.room) + fmt.Sprintf("... [%d characters of this page left out; pdftotext through Bash prints them, if it is installed]\n", left)
			l.cut = true
		}
		l.out.WriteString(entry)
		l.used += count
		l.given++
		l.shown = grown(l.shown, number)
	}
	if missing := run.first + len(pages); missing <= run.last {
		l.stop(pageRange{missing, run.last})
	}
}

// stop records that the pages of rest, and all after them, are not shown.
func (l *leaves) stop(rest pageRange) {
	l.full = true
	l.left = append(l.left, rest)
}

// grown adds a page after the others.
func grown(runs []pageRange, page int) []pageRange {
	if n := len(runs); n > 0 && runs[n-1].last+1 == page {
		runs[n-1].last = page
		return runs
	}
	return append(runs, pageRange{page, page})
}

// text returns the text for the model.
func (l *leaves) text(in input) string {
	switch {
	case l.total == 0:
		return "The document has no pages."
	case len(l.shown) == 0 && len(l.left) == 0:
		return fmt.Sprintf("The document has %s; pages=%s is past its end.", text.Count(l.total, "page"), in.Pages)
	case listing(l.blank) == listing(l.shown):
		l.out.WriteString("(None of these pages holds text; the document is probably scanned. A program such as ocrmypdf or tesseract, through Bash, may get text out of it.)\n")
	}
	if len(l.left) > 0 {
		fmt.Fprintf(&l.out, "(there was no room for more; continue with pages=%s)\n", listing(l.left))
	}
	return strings.TrimSuffix(l.out.String(), "\n")
}
