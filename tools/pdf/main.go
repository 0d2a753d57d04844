// This program as a reader of PDF, for where there is no pdftotext: a process of its own, which may run out of memory or
// never end without harm to anybody. It knows its standard files, and nothing of daemons.

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

// Main makes the process a reader of PDF if args, which are os.Args, say that it was started as one, and then gives the
// exit code. A program whose processes read PDF calls it first thing.
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

// answer writes what pdfinfo or pdftotext would.
func answer(w io.Writer, data []byte, args []string) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("its structure is damaged (%v)", x)
		}
	}()
	r, err := open(data)
	if err != nil {
		return err
	}
	if args[0] == "count" {
		_, err := fmt.Fprintf(w, "Pages: %d\n", r.NumPage())
		return err
	}
	first, _ := strconv.Atoi(args[1])
	last, _ := strconv.Atoi(args[2])
	for n := first; n <= last; n++ {
		if _, err := io.WriteString(w, pageText(r, n)+"\f"); err != nil {
			return err
		}
	}
	return nil
}

// open forgives what the library does not: a header of another form, and bytes behind the end.
func open(data []byte) (*library.Reader, error) {
	if !bytes.HasPrefix(data, []byte("%PDF-")) || len(data) < 100 {
		return nil, errors.New("it has no beginning or no end")
	}
	if end := bytes.LastIndex(data, []byte("%%EOF")); end >= 0 {
		data = data[:end+len("%%EOF")]
	}
	data = append([]byte("%PDF-1.7\n"), data[len("%PDF-1.7\n"):]...)
	return library.NewReader(bytes.NewReader(data), int64(len(data)))
}

// pageText returns the text of a page; nothing of one that is damaged, since the others may be sound.
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

// content returns the pieces of text of a page; none when something on it is not understood.
func content(p library.Page) (pieces []library.Text) {
	defer func() { _ = recover() }()
	for _, piece := range p.Content().Text {
		// The library puts a line break behind each piece that is set with kerning, decoded as if it stood in the page.
		if piece.S != "\n" && piece.S != "\x00" && piece.S != "\ufffd" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// lines puts pieces, mostly single characters, into lines by where they stand: another line when a piece stands half its
// size higher or lower, a blank when it stands apart from the last one. Of fonts whose widths are not known all pieces of
// a run stand at one place, and the next run further on.
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
