// Text that came from a model, a file or a process is shown here without letting it act on the terminal: control and
// bidirectional characters are made visible. No colours are kept.

package terminal

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Zero-width joiner and non-joiner stay as they are: scripts and emoji need them and they reorder nothing.
const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// VisibleText makes text of several lines safe to show: newlines and tabs stay.
func VisibleText(s string) string { return makeVisible(s, "\n\t") }

// VisibleLine makes text safe to show on one line.
func VisibleLine(s string) string { return makeVisible(s, "") }

func makeVisible(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return acts(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, "<%02X>", s[i])
		case !acts(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			b.WriteString(picture(r))
		}
	}
	return b.String()
}

// acts reports whether a terminal or a reader's eye would be led by r instead of seeing it.
func acts(r rune) bool {
	if r == zwj || r == zwnj {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

func picture(r rune) string {
	switch {
	case r < 0x20:
		return string(0x2400 + r)
	case r == 0x7f:
		return "\u2421"
	default:
		return fmt.Sprintf("<U+%04X>", r)
	}
}

// escapes matches what programs send to style their output or to set a title.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]`)

// LastLine is the newest line of text that holds something to see, as a progress bar would leave it: what follows the
// last carriage return, without colours.
func LastLine(text string) string {
	text = escapes.ReplaceAllString(text, "")
	for len(text) > 0 {
		rest, line := "", text
		if cut := strings.LastIndexAny(text, "\r\n"); cut >= 0 {
			rest, line = text[:cut], text[cut+1:]
		}
		if line = strings.TrimSpace(line); line != "" {
			return VisibleLine(line)
		}
		text = rest
	}
	return ""
}

// Fit cuts a line without escape sequences to at most width cells, with an ellipsis where something was cut.
func Fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if lipgloss.Width(s) <= width {
		return s
	}
	used, end := 0, 0
	for i, r := range s {
		cells := lipgloss.Width(string(r))
		if used+cells > width-1 {
			break
		}
		used += cells
		end = i + utf8.RuneLen(r)
	}
	for end > 0 && lipgloss.Width(s[:end]+"…") > width { // characters that make the one before them wider
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return s[:end] + "…"
}

// Pad fits a line and fills it up to width cells.
func Pad(s string, width int) string {
	s = Fit(s, width)
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

// A SafeWriter makes a stream of bytes visible as it passes. What may be the beginning of a rune is held back until
// more comes.
type SafeWriter struct {
	W    io.Writer
	rest []byte
}

func (s *SafeWriter) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	_, err := io.WriteString(s.W, VisibleText(string(text[:whole])))
	return len(p), err
}

// Flush writes what was held back.
func (s *SafeWriter) Flush() {
	_, _ = io.WriteString(s.W, VisibleText(string(s.rest)))
	s.rest = nil
}
