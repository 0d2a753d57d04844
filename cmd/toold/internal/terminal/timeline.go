// A turn as a picture: a bar for each call over the time that the turn took, by batch or with what it waited for. Pure.

package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// labelWidth is the width in cells of what stands before a bar; factsWidth, of what stands behind it.
const (
	labelWidth = 34
	factsWidth = 18
)

// Timeline draws the calls of a turn in width cells, by batch.
func Timeline(b *TurnState, k Ink, width int) string {
	last := uint32(0)
	return drawing(b, k, width, "batch", func(_ int, c *Call) string {
		batch := ""
		if c.batch != last && c.batch > 0 {
			batch, last = fmt.Sprint(c.batch), c.batch
		}
		return fmt.Sprintf("%*s  %s %s", batchWidth, batch, Pad(VisibleLine(c.Name), 5), c.Subject)
	})
}

// Dependencies draws a turn in the dependency order, with the numbers of the calls that each waits for.
func Dependencies(b *TurnState, k Ink, width int) string {
	number := map[string]string{}
	for i, c := range b.Calls {
		number[c.ID] = fmt.Sprint(i + 1)
	}
	return drawing(b, k, width, "call", func(i int, c *Call) string {
		label := fmt.Sprintf("%*d  %s %s", batchWidth, i+1, Pad(VisibleLine(c.Name), 5), c.Subject)
		var after []string
		for _, id := range slices.Backward(c.after) {
			after = append(after, number[id])
		}
		if after == nil {
			return label
		}
		waits := " after " + strings.Join(after, ", ")
		return Pad(label, labelWidth-len(waits)) + waits
	})
}

// drawing is a line for each call: what label returns of it, its bar, and how it ended. first is the heading of the labels.
func drawing(b *TurnState, k Ink, width int, first string, label func(i int, c *Call) string) string {
	begin, end := extent(b)
	cells := max(10, width-labelWidth-factsWidth-4)
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s\n", Pad(first, labelWidth), k.Dim.Render(ruler(end.Sub(begin), cells)))
	for i, c := range b.Calls {
		style, mark, word := StateStyle(c, k, end)
		fmt.Fprintf(&out, "%s  %s  %s\n", Pad(label(i, c), labelWidth), style.Render(bar(c, begin, end, cells)),
			style.Render(Fit(mark+" "+word, factsWidth)))
	}
	return out.String()
}

// extent is the time from the first start to the last end.
func extent(b *TurnState) (begin, end time.Time) {
	for _, c := range b.Calls {
		if c.started.IsZero() {
			continue
		}
		if begin.IsZero() || c.started.Before(begin) {
			begin = c.started
		}
		if c.finished.After(end) {
			end = c.finished
		}
	}
	return begin, end
}

// bar is a call's own stretch of the picture. A call that ran at all has at least one mark; one that never did has a
// row of dots.
func bar(c *Call, begin, end time.Time, cells int) string {
	whole := end.Sub(begin)
	if c.started.IsZero() || whole <= 0 {
		return strings.Repeat("·", cells)
	}
	at := func(t time.Time) int { return int(int64(cells) * int64(t.Sub(begin)) / int64(whole)) }
	from := min(at(c.started), cells-1)
	to := max(min(at(c.finished), cells), from+1)
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from) + strings.Repeat(" ", cells-to)
}

// ruler is the picture's axis: 0 on the left, the whole time on the right.
func ruler(whole time.Duration, cells int) string {
	right := Span(whole)
	return "0" + strings.Repeat("─", max(0, cells-1-len([]rune(right)))) + right
}
