package terminal

import (
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/toold/toold/cmd/toold/internal/golden"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestLiveView(t *testing.T) {
	b, events := aTurn(t)
	play(b, events[:livePicture])
	now := epoch.Add(time.Second)
	for name, size := range map[string]struct{ width, height int }{
		"live-wide.txt":   {100, 0},
		"live-narrow.txt": {50, 0},
		"live-low.txt":    {80, 4},
	} {
		lines := TurnLines(b, Ink{}, size.width, size.height, now)
		for _, line := range lines {
			if lipgloss.Width(line) > size.width {
				t.Errorf("%s: %d cells wide: %q", name, lipgloss.Width(line), line)
			}
		}
		if size.height > 0 && len(lines) > size.height {
			t.Errorf("%s: %d lines for a height of %d", name, len(lines), size.height)
		}
		golden.Check(t, name, strings.Join(lines, "\n")+"\n")
	}
}

func TestEndedPictures(t *testing.T) {
	b, events := aTurn(t)
	play(b, events)
	golden.Check(t, "ended.txt", strings.Join(TurnLines(b, Ink{}, 100, 0, epoch), "\n")+"\n")
	golden.Check(t, "results.txt", ResultsText(b, Ink{}))
	golden.Check(t, "timeline.txt", Timeline(b, Ink{}, 100))
	golden.Check(t, "question.txt", QuestionText(events[13].GetQuestion(), Ink{}))
	golden.Check(t, "suggestions.txt", suggestionText([]*tooldv1.Suggestion{
		{Rule: "Bash(npm run test *)", List: "allow"}, {Rule: "Edit(./src/**)", List: "allow"}, {Rule: "mcp__x__\x1b[2J", List: "allow"},
	}, Keepers, Ink{}))
	var lines []string
	for _, e := range events {
		e.Time = nil // local time differs by machine
		if line := EventLine(e, Ink{}); line != "" {
			_, words, _ := strings.Cut(line, "turn ")
			lines = append(lines, "turn "+words)
		}
	}
	golden.Check(t, "log.txt", strings.Join(lines, "\n")+"\n")
}

// Colours change no width, so that what is drawn over fits with them as without.
func TestColoursKeepWidths(t *testing.T) {
	b, events := aTurn(t)
	play(b, events[:livePicture])
	plain := TurnLines(b, Ink{}, 90, 0, epoch)
	coloured := TurnLines(b, Colours(), 90, 0, epoch)
	for i := range plain {
		if !strings.Contains(coloured[i], "\x1b[") {
			t.Errorf("no colour in %q", coloured[i])
		}
		if lipgloss.Width(plain[i]) != lipgloss.Width(coloured[i]) {
			t.Errorf("%q is wider or narrower with colours: %q", plain[i], coloured[i])
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 0: "0 ms", 999 * time.Millisecond: "999 ms", 1250 * time.Millisecond: "1.2 s",
		61 * time.Second: "1m1s", time.Hour + 500*time.Millisecond: "1h0m0s",
	} {
		if got := Span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestTimelineWithoutAStart(t *testing.T) {
	b := NewTurnState("", "")
	b.Add("a", "LS", "")
	if got := Timeline(b, Ink{}, 60); !strings.Contains(got, "····") {
		t.Errorf("a call that never ran has no row of dots:\n%s", got)
	}
}
