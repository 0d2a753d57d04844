// Command picture draws timelines of `toold demo` as an SVG image: it reads the demo's output and writes the image. Its arguments
// are the beginnings of the lines above the timelines. The lines themselves are drawn if there are several.
// It does not know what the lines mean, beside the marks that stand for a result.
package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"strings"
)

// The picture's measures, in pixels. A character of the font is 8.4 wide at this size.
const (
	fontSize  = 14
	charWidth = 8.4
	lineStep  = 21
	margin    = 16
)

func main() {
	if err := draw(os.Stdin, os.Stdout, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func draw(from io.Reader, to io.Writer, headings ...string) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var lines []string
	for _, heading := range headings {
		found := timeline(string(text), heading)
		switch {
		case len(found) == 0:
			return fmt.Errorf("the input has no line %q: give it the output of `toold demo`", heading)
		case len(headings) == 1:
			found = found[1:]
		case lines != nil:
			lines = append(lines, "")
		}
		lines = append(lines, found...)
	}
	width := 0
	for _, line := range lines {
		width = max(width, len([]rune(line)))
	}
	var b strings.Builder
	w, h := float64(width)*charWidth+2*margin, len(lines)*lineStep+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="%d">`+"\n", w, h, fontSize)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>`+"\n")
	for i, line := range lines {
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve" fill="#d7dae0">%s</text>`+"\n", margin, margin+fontSize+i*lineStep, coloured(line))
	}
	b.WriteString("</svg>\n")
	_, err = io.WriteString(to, b.String())
	return err
}

// timeline returns the line that begins with heading and the lines of the timeline after it, which ends with an empty one.
func timeline(text, heading string) (lines []string) {
	_, rest, ok := strings.Cut(text, "\n"+heading)
	if !ok {
		return nil
	}
	for line := range strings.Lines(heading + rest) {
		if line = strings.TrimRight(line, " \n"); line == "" {
			break
		}
		lines = append(lines, line)
	}
	return lines
}

// coloured returns a line with its bar and its result in colours.
func coloured(line string) string {
	result, colour := "", ""
	if at := strings.IndexAny(line, "✓✗"); at >= 0 {
		line, result, colour = line[:at], line[at:], "#7ec97e"
		if strings.HasPrefix(result, "✗") {
			colour = "#e07b7b"
		}
	}
	text := html.EscapeString(line)
	if bar := strings.IndexRune(line, '█'); bar >= 0 {
		text = html.EscapeString(line[:bar]) + `<tspan fill="#6ea8fe">` + html.EscapeString(line[bar:]) + `</tspan>`
	}
	if result != "" {
		text += `<tspan fill="` + colour + `">` + html.EscapeString(result) + `</tspan>`
	}
	return text
}
