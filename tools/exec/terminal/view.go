// What there is to be seen: the screen, and the lines that have left it.

package terminal

import (
	"strings"

	"github.com/charmbracelet/x/vt"
)

const (
	// maxPassed is how many lines that have left the screen are kept until they are shown, and maxPassedBytes how much
	// they may have together. The output file has all of them.
	maxPassed, maxPassedBytes = 5000, 1 << 20
	// pieceSize is how many bytes the screen gets at once, and mostAtOnce more lines than leave it by that: five bytes
	// scroll by the height of the screen.
	pieceSize, mostAtOnce = 256, 20_000
)

// A View is what a person would see.
type View struct {
	Passed  []string // lines that have left the screen since the last view
	Dropped int64    // bytes of such lines before them that were not kept
	Screen  []string // without empty lines at its end
	// Line and Column are where the cursor is on the screen, from 1 on.
	Line, Column int
	Asking       bool // a user is asked for a hidden line
}

// View returns what is to be seen, and what has been since the last view.
func (t *Terminal) View() View {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.shown
	if t.screen != nil {
		v = viewOf(t.screen)
	}
	v.Asking, v.Passed, v.Dropped = t.asking, t.passed.lines, t.passed.dropped
	t.passed = passed{}
	return v
}

// viewOf returns what is on the screen.
func viewOf(screen *vt.Emulator) View {
	at := screen.CursorPosition()
	v := View{Line: at.Y + 1, Column: at.X + 1}
	for line := range strings.SplitSeq(screen.String(), "\n") {
		v.Screen = append(v.Screen, strings.TrimRight(line, " "))
	}
	for len(v.Screen) > 0 && v.Screen[len(v.Screen)-1] == "" {
		v.Screen = v.Screen[:len(v.Screen)-1]
	}
	return v
}

// show has the screen show what was printed, and keeps the lines that leave it: as text, since those of the screen
// take a hundred times as much. mu is held.
func (t *Terminal) show(printed []byte) {
	for t.screen != nil && len(printed) > 0 {
		piece := printed[:min(pieceSize, len(printed))]
		printed = printed[len(piece):]
		_, _ = t.screen.Write(piece) // it never fails
		lines := t.screen.Scrollback().Lines()
		for _, line := range lines {
			t.passed.add(strings.TrimRight(line.String(), " "))
		}
		clear(lines)
		t.screen.ClearScrollback()
	}
}

// passed are lines that have left the screen: the last ones of them.
type passed struct {
	lines   []string
	bytes   int
	dropped int64 // bytes
}

func (p *passed) add(line string) {
	p.lines = append(p.lines, line)
	p.bytes += len(line) + 1
	for len(p.lines) > maxPassed || p.bytes > maxPassedBytes {
		first := len(p.lines[0]) + 1
		p.lines, p.bytes, p.dropped = p.lines[1:], p.bytes-first, p.dropped+int64(first)
	}
}
