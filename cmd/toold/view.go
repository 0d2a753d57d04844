// The live view: one line per call, drawn over while a turn runs. What a line says is pure (callLine, boardLines); the
// view alone knows that a terminal's cursor can go back up.

package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Widths in cells of the columns that do not stretch.
const (
	batchWidth = 3
	markWidth  = 1
	nameWidth  = 10
	stateWidth = 16
)

// boardLines pictures the board in at most height lines of at most width cells; height 0: as many as there are calls.
func boardLines(b *board, k ink, width, height int, now time.Time) []string {
	shown, hidden := choose(b.calls, height)
	lines := make([]string, 0, len(shown)+1)
	for _, c := range shown {
		lines = append(lines, callLine(c, k, width, now))
	}
	if hidden != "" {
		lines = append(lines, k.dim.Render(fit(hidden, width)))
	}
	return lines
}

// choose keeps what is happening when there is not room for everything, and counts the rest.
func choose(calls []*call, height int) (shown []*call, hidden string) {
	if height <= 0 || len(calls) <= height {
		return calls, ""
	}
	room := max(height-1, 0)
	over := map[string]int{}
	for _, c := range calls {
		if (c.state == running || c.state == asking) && len(shown) < room {
			shown = append(shown, c)
			continue
		}
		over[roughly(c.state)]++
	}
	for _, word := range []string{"ended", "running", "waiting"} {
		if over[word] > 0 {
			hidden += fmt.Sprintf(", %d %s", over[word], word)
		}
	}
	return shown, "… and" + strings.TrimPrefix(hidden, ",")
}

func roughly(s state) string {
	switch s {
	case ended, refused:
		return "ended"
	case running, asking:
		return "running"
	default:
		return "waiting"
	}
}

func callLine(c *call, k ink, width int, now time.Time) string {
	flexible := max(0, width-batchWidth-markWidth-nameWidth-stateWidth-5)
	subjectWidth := flexible * 3 / 5
	batch := ""
	if c.batch > 0 {
		batch = fmt.Sprint(c.batch)
	}
	style, mark, word := stateLook(c, k, now)
	if c.state == running && c.last != "" {
		word = pad(word, stateWidth)
	}
	line := fmt.Sprintf("%*s %s %s %s %s", batchWidth, batch, style.Render(mark),
		k.name.Render(pad(visibleLine(c.name), nameWidth)), pad(c.subject, subjectWidth), style.Render(fit(word, stateWidth)))
	if c.state == running && c.last != "" {
		line += " " + k.dim.Render(fit(c.last, flexible-subjectWidth))
	}
	return line
}

// stateLook is how a call's state looks: its style, its mark and its words.
func stateLook(c *call, k ink, now time.Time) (style lipgloss.Style, mark, word string) {
	switch c.state {
	case ended:
		style, mark = outcomeLook(c.result.GetOutcome(), k)
		word = outcomeWord(c.result.GetOutcome())
		if ran, ok := c.ran(); ok {
			word += " " + span(ran)
		}
		return style, mark, word
	case refused:
		return k.bad, "✗", "refused"
	case running:
		return k.warn, "▸", "running " + span(now.Sub(c.begun))
	case asking:
		return k.strong, "?", "asking"
	case waiting:
		return k.dim, "·", "waiting"
	default:
		return k.dim, "·", "sent"
	}
}

func outcomeLook(o tooldv1.Outcome, k ink) (lipgloss.Style, string) {
	if o == tooldv1.Outcome_OUTCOME_OK {
		return k.good, "✓"
	}
	return k.bad, "✗"
}

// outcomeWord is the outcome as the documentation writes it: "ok", "timed_out".
func outcomeWord(o tooldv1.Outcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_"))
}

// ran is how long the call ran; false when it never did.
func (c *call) ran() (time.Duration, bool) {
	if ran := c.result.GetUsage().GetRan(); ran != nil && !c.started.IsZero() {
		return ran.AsDuration(), true
	}
	if c.started.IsZero() || c.finished.IsZero() {
		return 0, false
	}
	return c.finished.Sub(c.started), true
}

// span is a duration for a person, in at most seven cells below an hour.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Truncate(time.Second).String()
	}
}

// A view draws a board on a terminal, over itself.
type view struct {
	page  page
	drawn int // lines that stand on the terminal and may be drawn over
}

// drawEvery is how often elapsed times are drawn again.
const drawEvery = 100 * time.Millisecond

func (v *view) draw(b *board, now time.Time) {
	width, height := v.page.size()
	lines := boardLines(b, v.page.ink, width-1, height-2, now)
	var out strings.Builder
	v.home(&out)
	for _, line := range lines {
		out.WriteString(line + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	v.drawn = len(lines)
	fmt.Fprint(v.page.file, out.String())
}

// leave lets what is drawn stand, so that something else can be written below it.
func (v *view) leave() { v.drawn = 0 }

func (v *view) home(out *strings.Builder) {
	if v.drawn > 0 {
		fmt.Fprintf(out, "\x1b[%dA\r", v.drawn)
	}
}
