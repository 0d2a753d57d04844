package terminal

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
)

// TestPassedLines: of lines that have left the screen the last ones are kept, within their bounds, and the rest is counted.
func TestPassedLines(t *testing.T) {
	const rows = 10
	for name, c := range map[string]struct{ lines, width int }{
		"few": {100, 8}, "many": {6000, 8}, "long ones": {2500, 490}, "none": {rows - 1, 8},
	} {
		term := New(sandbox.Size{Columns: uint16(c.width + 10), Rows: rows}, io.Discard)
		for n := range c.lines {
			_, _ = fmt.Fprintf(term, "%d%s\r\n", n, strings.Repeat(".", c.width))
		}
		v := term.View()
		gone := c.lines - (rows - 1)
		bytes := 0
		for i, line := range v.Passed {
			if want := fmt.Sprint(gone-len(v.Passed)+i) + strings.Repeat(".", c.width); line != want {
				t.Fatalf("%s: line %d is %q, want %q", name, i, line, want)
			}
			bytes += len(line) + 1
		}
		whole := 0
		for n := range gone {
			whole += len(fmt.Sprint(n)) + c.width + 1
		}
		if v.Dropped != int64(whole-bytes) || len(v.Passed) > maxPassed || bytes < min(whole, maxPassedBytes-500) && len(v.Passed) < min(gone, maxPassed) {
			t.Errorf("%s: %d lines of %d bytes are kept, %d bytes are dropped of %d", name, len(v.Passed), bytes, v.Dropped, whole)
		}
		if again := term.View(); len(again.Passed) > 0 || again.Dropped > 0 || strings.Join(again.Screen, "") != strings.Join(v.Screen, "") {
			t.Errorf("%s: the second view is %+v", name, again)
		}
	}
}

// TestPassedAtOnce: what scrolls by the height of the screen, many times at once, loses nothing unsaid.
func TestPassedAtOnce(t *testing.T) {
	term := New(sandbox.Size{Columns: 20, Rows: 200}, io.Discard)
	_, _ = io.WriteString(term, strings.Repeat("\x1b[999S", 50)+"end")
	if v := term.View(); len(v.Passed) != maxPassed || v.Dropped != 50*200-maxPassed {
		t.Errorf("%d lines, %d bytes dropped", len(v.Passed), v.Dropped)
	}
}
