// A question as text: all of it, or as much as a terminal has room for, so that its title, its reason and the keys stay
// on the screen.

package terminal

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// QuestionText is what the user reads before deciding. The daemon has made the input safe to show; the rest is made
// safe here.
func QuestionText(q *tooldv1.Question, k Ink) string {
	return questionHead(q, k) + questionInput(q) + DiffText(q.GetDiff(), k, "  ")
}

// questionHead is the title, the reasons and the effects.
func questionHead(q *tooldv1.Question, k Ink) string {
	var b strings.Builder
	title := VisibleLine(q.GetTitle())
	if name := VisibleLine(q.GetToolName()); !strings.HasPrefix(title, name) {
		title = name + " " + title
	}
	fmt.Fprintf(&b, "\n%s\n", k.Strong.Render("? "+title))
	reason := VisibleLine(q.GetReason())
	if reason != "" {
		fmt.Fprintf(&b, "  %s\n", paint(k.Warn, reason))
	}
	for _, g := range q.GetGrounds() {
		if _, shown := Shows(g); !shown && g.GetRule() != "" {
			fmt.Fprintf(&b, "  %s\n", paint(k.Warn, RuleWords(g)))
		}
	}
	if level := q.GetLevel(); level > tooldv1.Level_LEVEL_UNSPECIFIED {
		fmt.Fprintf(&b, "  %s\n", k.Dim.Render("level: "+Word(level)))
	}
	if q.GetDiff() == "" { // else the diff shows it better
		for _, line := range q.GetEffects() {
			if !strings.HasPrefix(line, "runs ") {
				fmt.Fprintf(&b, "  %s\n", k.Dim.Render(VisibleLine(line)))
			}
		}
	}
	return b.String()
}

func questionInput(q *tooldv1.Question) string { return Indent(VisibleText(Pretty(q.GetInputJson()))) }

// leastBody is how many rows of input and diff are shown on a terminal that is too low for anything. Ours.
const leastBody = 3

// fitQuestion is a question in at most height rows of width cells, as far as it can be cut; height 0: in full. hidden is
// how many lines of it are left out.
func fitQuestion(q *tooldv1.Question, k Ink, width, height int) (text string, hidden int) {
	head, body := questionHead(q, k), questionInput(q)+DiffText(q.GetDiff(), k, "  ")
	room := max(height-rowsOf(head, width), leastBody)
	if height == 0 || rowsOf(body, width) <= room {
		return head + body, 0
	}
	if q.GetDiff() != "" { // which shows better what happens
		body = DiffText(q.GetDiff(), k, "  ")
	}
	var out strings.Builder
	room-- // for what is said of the rest
	for line := range strings.Lines(body) {
		rows := rowsOf(line, width)
		if room > 0 && rows > room && !strings.Contains(line, "\x1b") {
			line = Fit(strings.TrimSuffix(line, "\n"), room*width) + "\n"
			rows, hidden = room, hidden+1
		}
		if room -= rows; room < 0 {
			hidden++
			continue
		}
		out.WriteString(line)
	}
	if q.GetDiff() != "" {
		hidden += strings.Count(questionInput(q), "\n")
	}
	return head + out.String() + k.Dim.Render("  … "+Count(hidden, "more line")+": d shows all") + "\n", hidden
}

// rowsOf is how many rows a text takes on a terminal of that width.
func rowsOf(text string, width int) (rows int) {
	for line := range strings.Lines(text) {
		cells := lipgloss.Width(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        "))
		rows += max(1, (cells+width-1)/width)
	}
	return rows
}
