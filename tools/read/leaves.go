// A result of pages that is being built.

package read

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/media/pdf"
)

// leaves are the pages of a result that is being built.
type leaves struct {
	total, room int // pages of the document; characters of the result
	bytes       int // of images, left
	out         strings.Builder
	blocks      []tools.Block // before out
	used, given int           // characters, and pages
	full, cut   bool
	// shown, left and blank are pages that are given, that have no room, and that have no text;
	// images and undrawn are given as images, and cannot be.
	shown, left, blank, images, undrawn []pageRange
}

// flush makes a block of the text so far.
func (l *leaves) flush() {
	if t := strings.TrimSuffix(l.out.String(), "\n"); t != "" {
		l.blocks = append(l.blocks, tools.Block{Text: t})
	}
	l.out.Reset()
}

// add adds the pages of a run, until there is no more room. draw returns the image of a page.
func (l *leaves) add(run pageRange, pages []string, as form, draw func(page int) (image.Picture, error)) error {
	for i, page := range pages {
		number := run.first + i
		textless := strings.TrimSpace(page) == ""
		if textless && as != asImage {
			l.blank = grown(l.blank, number)
		}
		var p image.Picture
		if textless && as != asText {
			var err error
			switch p, err = draw(number); {
			case errors.Is(err, pdf.ErrUndrawable):
				l.undrawn = grown(l.undrawn, number)
			case err != nil:
				return err
			case as != asImage && image.Uniform(p):
				p, page = image.Picture{}, "(this page is empty)"
			}
		}
		if len(p.Data) > l.bytes || !l.put(number, page, p) {
			l.stop(pageRange{number, run.last})
			return nil
		}
	}
	if missing := run.first + len(pages); missing <= run.last {
		l.stop(pageRange{missing, run.last})
	}
	return nil
}

// put adds one page, unless there is no room for it after others.
func (l *leaves) put(number int, page string, p image.Picture) bool {
	drawn := p.Data != nil
	switch {
	case drawn:
		page = ""
	case strings.TrimSpace(page) == "":
		page = "(no text on this page: it is empty, or an image)\n"
	default:
		page += "\n"
	}
	entry := fmt.Sprintf("--- page %d of %d ---\n%s", number, l.total, page)
	count := utf8.RuneCountInString(entry)
	if count > l.room-l.used && l.given > 0 {
		return false
	}
	if left := count - l.room; left > 0 {
		entry = beginning(entry, l.room) + fmt.Sprintf("... [%d characters of this page left out; pdftotext through Bash prints them, if it is installed]\n", left)
		l.cut = true
	}
	l.out.WriteString(entry)
	l.used += count
	l.given++
	l.shown = grown(l.shown, number)
	if drawn {
		l.flush()
		l.blocks = append(l.blocks, tools.Block{Image: &tools.Blob{MediaType: p.MediaType, Data: p.Data}})
		l.images, l.bytes = grown(l.images, number), l.bytes-len(p.Data)
	}
	return true
}

// noImage returns a sentence, without its end, about pages that cannot be drawn.
func noImage(pages []pageRange) string {
	noun := "pages"
	if len(pages) == 1 && pages[0].first == pages[0].last {
		noun = "page"
	}
	return fmt.Sprintf("%s %s cannot be drawn: pdftoppm is not installed, and without it only pages that consist of images can be", noun, listing(pages))
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

// finish returns the result, with a sentence about what is missing in it.
func (l *leaves) finish(in input) []tools.Block {
	switch {
	case l.total == 0:
		l.out.WriteString("The document has no pages.")
	case len(l.shown) == 0 && len(l.left) == 0:
		fmt.Fprintf(&l.out, "The document has %s; pages=%s is past its end.", text.Count(l.total, "page"), in.Pages)
	case len(l.undrawn) > 0:
		fmt.Fprintf(&l.out, "(%s; %s)\n", noImage(l.undrawn), "as=document gives the whole file, and the user can install poppler-utils")
	case in.As == asText && len(l.shown) > 0 && listing(l.blank) == listing(l.shown):
		l.out.WriteString("(None of these pages holds text; the document is probably scanned. as=image gives them as images.)\n")
	}
	if len(l.left) > 0 {
		fmt.Fprintf(&l.out, "(there was no room for more; continue with pages=%s)\n", listing(l.left))
	}
	l.flush()
	return l.blocks
}
