// Package lines reads messages of one line each from a peer that may send anything.
package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Max is how many bytes a line may have: the daemon takes inputs of 10 MiB, and JSON may escape some of it.
const Max = 16 << 20

// ErrTooLong is the error for a line that was skipped.
var ErrTooLong = fmt.Errorf("the line has more than %d bytes", Max)

// A Reader reads lines. It is used by one goroutine.
type Reader struct{ in *bufio.Reader }

// NewReader returns a Reader of in.
func NewReader(in io.Reader) *Reader { return &Reader{bufio.NewReaderSize(in, 64<<10)} }

// Next reads up to the next line break, or to the end of input, which is its error then. A line that is too long is
// read to its end and dropped. The line is the caller's.
func (r *Reader) Next() ([]byte, error) {
	var line []byte
	for long := false; ; {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > Max; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long:
			return nil, ErrTooLong
		default:
			return line, err
		}
	}
}
