// The live view: one line per call, drawn over while a turn runs. The text of a line is pure (callLine, boardLines); only
// the view moves the terminal's cursor.

package terminal

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

// TurnLines draws the turn state in at most height lines of at most width cells; height 0: as many as there are calls.
func TurnLines(b *TurnState, k Ink, width, height int, now time.Time) []string {
	shown, hidden := choose(b.Calls, height)
	lines := make([]string, 0, len(shown)+1)
	for _, c := range shown {
		lines = append(lines, callLine(c, k, width, now))
	}
	if hidden != "" {
		lines = append(lines, k.Dim.Render(Fit(hidden, width)))
	}
	return lines
}

// choose keeps what is happening when there is not room for everything, and counts the rest.
func choose(calls []*Call, height int) (shown []*Call, hidden string) {
	if height <= 0 || len(calls) <= height {
		return calls, ""
	}
	room := max(height-1, 0)
	over := map[string]int{}
	for _, c := range calls {
		if (c.State == running || c.State == asking) && len(shown) < room {
			shown = append(shown, c)
			continue
		}
		over[roughly(c.State)]++
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
	case Ended, Refused:
		return "ended"
	case running, asking:
		return "running"
	default:
		return "waiting"
	}
}

func callLine(c *Call, k Ink, width int, now time.Time) string {
	flexible := max(0, width-batchWidth-markWidth-nameWidth-stateWidth-5)
	subjectWidth := flexible * 3 / 5
	batch := ""
	if c.batch > 0 {
		batch = fmt.Sprint(c.batch)
	}
	style, mark, word := StateStyle(c, k, now)
	if c.State == running && c.last != "" {
		word = Pad(word, stateWidth)
	}
	line := fmt.Sprintf("%*s %s %s %s %s", batchWidth, batch, style.Render(mark),
		k.Name.Render(Pad(VisibleLine(c.Name), nameWidth)), Pad(c.Subject, subjectWidth), style.Render(Fit(word, stateWidth)))
	if c.State == running && c.last != "" {
		line += " " + k.Dim.Render(Fit(c.last, flexible-subjectWidth))
	}
	return line
}

// StateStyle is how a call's state looks: its style, its mark and its words.
func StateStyle(c *Call, k Ink, now time.Time) (style lipgloss.Style, mark, word string) {
	switch c.State {
	case Ended:
		style, mark = OutcomeStyle(c.result.GetOutcome(), k)
		word = Word(c.result.GetOutcome())
		if ran, ok := c.ran(); ok {
			word += " " + Span(ran)
		}
		return style, mark, word
	case Refused:
		return k.Bad, "✗", "refused"
	case running:
		return k.Warn, "▸", "running " + Span(now.Sub(c.begun))
	case asking:
		return k.Strong, "?", "asking"
	case waiting:
		return k.Dim, "·", "waiting"
	default:
		return k.Dim, "·", "sent"
	}
}

// OutcomeStyle returns the style and the mark of an outcome.
func OutcomeStyle(o tooldv1.Outcome, k Ink) (lipgloss.Style, string) {
	if o == tooldv1.Outcome_OUTCOME_OK {
		return k.Good, "✓"
	}
	return k.Bad, "✗"
}

// ran is how long the call ran; false when it never did.
func (c *Call) ran() (time.Duration, bool) {
	if ran := c.result.GetUsage().GetRan(); ran != nil && !c.started.IsZero() {
		return ran.AsDuration(), true
	}
	if c.started.IsZero() || c.finished.IsZero() {
		return 0, false
	}
	return c.finished.Sub(c.started), true
}

// Span is a duration for the user, in at most seven cells below an hour.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Truncate(time.Second).String()
	}
}

// A Renderer draws a turn state on a terminal, over itself.
type Renderer struct {
	Page  Terminal
	drawn int // lines that stand on the terminal and may be drawn over
}

// DrawEvery is how often elapsed times are drawn again.
const DrawEvery = 100 * time.Millisecond

// Draw draws the calls as they are at now, over what was drawn before unless that was released.
func (v *Renderer) Draw(b *TurnState, now time.Time) {
	width, height := v.Page.Size()
	lines := TurnLines(b, v.Page.Ink, width-1, height-2, now)
	var out strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", v.drawn)
	}
	for _, line := range lines {
		out.WriteString(line + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	v.drawn = len(lines)
	fmt.Fprint(v.Page.file, out.String())
}

// Release lets what is drawn stand, so that something else can be written below it.
func (v *Renderer) Release() { v.drawn = 0 }
