// This program as a reader of PDF, where pdftotext is not installed: a separate process, which may
// run out of memory or hang without harm.

package pdf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	library "github.com/ledongthuc/pdf"
)

// mainName is the first argument of a process that is a reader of PDF.
const mainName = "toold-pdf"

// Main makes the process a reader of PDF if args, which is os.Args, shows that it was started as
// one, and then returns its exit code. A program that uses this package must call it first.
func Main(args []string) (code int, is bool) {
	if len(args) < 2 || args[0] != mainName {
		return 0, false
	}
	data, err := io.ReadAll(os.Stdin)
	if err == nil {
		out := bufio.NewWriter(os.Stdout)
		err = errors.Join(answer(out, data, args[1:]), out.Flush())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// answer writes the output of pdfinfo, pdftotext or pdftoppm.
func answer(w io.Writer, data []byte, args []string) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("its structure is damaged (%v)", x)
		}
	}()
	r, data, err := open(data)
	if err != nil {
		return err
	}
	if args[0] == "count" {
		_, err := fmt.Fprintf(w, "Pages: %d\n", r.NumPage())
		return err
	}
	first, _ := strconv.Atoi(args[1])
	if args[0] == "image" {
		page, err := drawScan(r, data, first, imageSide)
		if errors.Is(err, ErrUndrawable) {
			return nil // nothing is written
		}
		_, failed := w.Write(page)
		return errors.Join(err, failed)
	}
	last, _ := strconv.Atoi(args[2])
	for n := first; n <= last; n++ {
		if _, err := io.WriteString(w, pageText(r, n)+"\f"); err != nil {
			return err
		}
	}
	return nil
}

// open opens a document, and returns it as the library reads it. It tolerates what the library does
// not: another form of header, and bytes after the end.
func open(data []byte) (*library.Reader, []byte, error) {
	if !bytes.HasPrefix(data, []byte("%PDF-")) || len(data) < 100 {
		return nil, nil, errors.New("it has no beginning or no end")
	}
	data = normal(data)
	r, err := library.NewReader(bytes.NewReader(data), int64(len(data)))
	return r, data, err
}

// normal returns the document as the library reads it.
func normal(data []byte) []byte {
	if end := bytes.LastIndex(data, []byte("%%EOF")); end >= 0 {
		data = data[:end+len("%%EOF")]
	}
	return append([]byte("%PDF-1.7\n"), data[len("%PDF-1.7\n"):]...)
}

// pageText returns the text of a page, or nothing for a damaged one, since the others may be
// undamaged.
func pageText(r *library.Reader, n int) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	p := r.Page(n)
	if text = lines(content(p)); strings.TrimSpace(text) == "" {
		text, _ = p.GetPlainText(nil) // cruder, and content with less
	}
	return strings.ReplaceAll(text, "\f", " ")
}

// content returns the pieces of text of a page, or none if something on it is unsupported.
func content(p library.Page) (pieces []library.Text) {
	defer func() { _ = recover() }()
	for _, piece := range p.Content().Text {
		// The library adds a line break after each piece with kerning, decoded as if it stood in
		// the page.
		if piece.S != "\n" && piece.S != "\x00" && piece.S != "\ufffd" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// lines joins pieces, mostly single characters, to lines by their positions: a piece that is half
// its size higher or lower begins another line, and one at a distance from the last gets a blank.
// In fonts with unknown widths all pieces of a run have the same position, and the next run is
// further on.
func lines(pieces []library.Text) string {
	var b strings.Builder
	run := 0 // pieces of no width at one place
	for i, piece := range pieces {
		if i > 0 {
			last := pieces[i-1]
			size := max(math.Abs(piece.FontSize), 1)
			apart := math.Abs(piece.X - (last.X + last.W))
			if piece.X != last.X || last.W != 0 {
				if last.W == 0 && run < 2 {
					apart -= size * 2 / 3 // the width of one character
				}
				run = 0
			}
			switch {
			case math.Abs(piece.Y-last.Y) > size/2:
				b.WriteByte('\n')
			case apart > size/5 && last.S != " " && piece.S != " ":
				b.WriteByte(' ')
			}
		}
		run++
		b.WriteString(piece.S)
	}
	return b.String()
}
