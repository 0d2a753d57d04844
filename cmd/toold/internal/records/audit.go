package records

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An audit is one session's calls as they come by in its records.
type audit struct {
	wanted *selection
	ink    terminal.Ink
	width  int

	peer  string // who uses the session, by the records so far
	told  string // who was named last
	calls map[string]*audited
	order []string // of those that have not ended
}

// audited is a call whose end has not come by.
type audited struct {
	*tooldv1.Accepted
	peer     string // who has sent it
	accepted time.Time
	started  *tooldv1.Started
}

func newAudit(wanted *selection, k terminal.Ink, width int) *audit {
	return &audit{wanted: wanted, ink: k, width: width, calls: map[string]*audited{}}
}

// take takes the next record and returns the lines that it comes to.
func (a *audit) take(event *tooldv1.ExecuteResponse) (lines []string) {
	key := fmt.Sprint(event.GetTurn(), " ", terminal.CallOf(event)) // an id may come again in another turn
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_SessionChanged:
		if p := e.SessionChanged.GetPeer(); p != nil {
			a.peer = terminal.PeerWords(p)
		}
	case *tooldv1.ExecuteResponse_Accepted:
		a.calls[key] = &audited{Accepted: e.Accepted, peer: a.peer, accepted: event.GetTime().AsTime()}
		a.order = append(a.order, key)
	case *tooldv1.ExecuteResponse_Started:
		if c := a.calls[key]; c != nil {
			c.started = e.Started
		}
	case *tooldv1.ExecuteResponse_ToolResult:
		c := a.calls[key]
		if c == nil { // its acceptance is not kept any more
			c = &audited{Accepted: &tooldv1.Accepted{Title: terminal.CallOf(event)}, peer: a.peer}
		}
		delete(a.calls, key)
		if a.wanted.call(c.GetName(), event.GetTime().AsTime(), terminal.Word(e.ToolResult.GetOutcome())) {
			lines = a.ended(c, event.GetTime().AsTime(), e.ToolResult)
		}
	}
	return lines
}

// open returns the lines of the calls that have not ended.
func (a *audit) open() (lines []string) {
	for _, key := range a.order {
		c := a.calls[key]
		if c == nil || !a.wanted.call(c.GetName(), c.accepted, "") {
			continue
		}
		word := "waiting"
		if c.started != nil {
			word = "running"
		}
		lines = append(lines, a.heading(c, c.accepted, a.ink.Warn, word, ""))
		lines = append(lines, a.reasons(c, nil)...)
	}
	return lines
}

func (a *audit) ended(c *audited, at time.Time, r *tooldv1.ToolResult) []string {
	style, _ := terminal.OutcomeStyle(r.GetOutcome(), a.ink)
	took := ""
	if ran := r.GetUsage().GetRan(); c.started != nil && ran != nil {
		took = terminal.Span(ran.AsDuration())
	}
	return append([]string{a.heading(c, at, style, terminal.Word(r.GetOutcome()), took)}, a.reasons(c, r)...)
}

// heading is the first line of a call, behind one that names who had it done, if that is another client than before.
func (a *audit) heading(c *audited, at time.Time, style lipgloss.Style, word, took string) string {
	who := ""
	if c.peer != a.told {
		a.told = c.peer
		who = a.ink.Name.Render("by "+c.peer) + "\n"
	}
	front := at.Local().Format("2006-01-02 15:04:05") + "  "
	facts := terminal.Pad(word, 12) + terminal.Pad(took, 9)
	title := terminal.Fit(terminal.VisibleLine(cmp.Or(c.GetTitle(), c.GetName())), a.width-lipgloss.Width(front)-lipgloss.Width(facts))
	return who + a.ink.Dim.Render(front) + style.Render(facts) + title
}

// reasons are the lines below: the input if it was asked for, why it might run, and what went wrong.
func (a *audit) reasons(c *audited, r *tooldv1.ToolResult) (lines []string) {
	if c.GetInputJson() != "" {
		for line := range strings.Lines(terminal.Indent(terminal.VisibleText(terminal.Pretty(c.GetInputJson())))) {
			lines = append(lines, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	if s := c.started; s != nil && s.GetReason() != "" {
		text := "allowed: "
		switch {
		case c.GetName() == "Restore": // the client that asks for it has answered by that
			text = "asked for by a client itself: "
		case s.GetAsked():
			text = "asked and allowed: "
		}
		text += terminal.VisibleLine(s.GetReason())
		for _, g := range s.GetGrounds() {
			if _, shown := terminal.Shows(g); !shown && g.GetRule() != "" {
				text += " (" + terminal.RuleWords(g) + ")"
			}
		}
		lines = a.below(lines, text)
	}
	if e := r.GetError(); e != nil {
		lines = a.below(lines, terminal.VisibleLine(e.GetCode())+": "+terminal.VisibleLine(e.GetMessage()))
	}
	return lines
}

// mostReasons is how many lines a reason may take. --json has all of it.
const mostReasons = 4

// below adds a text, wrapped and indented.
func (a *audit) below(lines []string, text string) []string {
	const indent = "    "
	wrapped := wrap(text, a.width-len(indent))
	if len(wrapped) > mostReasons {
		wrapped = wrapped[:mostReasons]
		wrapped[mostReasons-1] = terminal.Fit(wrapped[mostReasons-1]+" …", a.width-len(indent))
	}
	for _, line := range wrapped {
		lines = append(lines, a.ink.Dim.Render(indent+line))
	}
	return lines
}

// wrap breaks a text into lines of at most width cells, at spaces where there are any.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, terminal.Fit(line, width)), word
		}
	}
	if line != "" {
		lines = append(lines, terminal.Fit(line, width))
	}
	return lines
}
