// The results of calls as text to read.

package terminal

import (
	"fmt"
	"strings"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// AsText is a block in words.
func AsText(c *tooldv1.Content) string { return dialect.TextOf(convert.Block(c)) }

// FailureLine is the last thing said about a turn in which something went wrong.
func FailureLine(b *TurnState, n int) string {
	if len(b.Calls) > 1 {
		return fmt.Sprintf("%d of %s did not succeed", n, Count(len(b.Calls), "call"))
	}
	r := b.Calls[0].Answer()
	return fmt.Sprintf("%s ended as %s (%s)", b.Calls[0].Name, Word(r.GetOutcome()), r.GetError().GetCode())
}

// DiffOf is the change that an edit made, if the result has it.
func DiffOf(r *tooldv1.ToolResult) string {
	return r.GetStructured().GetFields()["diff"].GetStringValue()
}

// PlainContent is the content as text that ends in a newline; empty when there is none.
func PlainContent(r *tooldv1.ToolResult) string {
	var parts []string
	for _, c := range r.GetContent() {
		if text := AsText(c); text != "" {
			parts = append(parts, strings.TrimSuffix(text, "\n"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "\n") + "\n"
}

// ResultHead returns the line above a result: its outcome, its call, and how long that ran.
func ResultHead(c *Call, k Ink) string {
	style, mark := OutcomeStyle(c.Answer().GetOutcome(), k)
	facts := []string{Word(c.Answer().GetOutcome())}
	if code := c.Answer().GetError().GetCode(); code != "" && code != facts[0] {
		facts = append(facts, code)
	}
	if ran, ok := c.ran(); ok {
		facts = append(facts, Span(ran))
	}
	if c.replayed {
		facts = append(facts, "from the journal")
	}
	return fmt.Sprintf("%s %s %s  %s", style.Render(mark), k.Name.Render(VisibleLine(c.Name)), c.Subject,
		k.Dim.Render(strings.Join(facts, " · ")))
}

// ResultsText shows each call with what it gave, in the order of the tool uses.
func ResultsText(b *TurnState, k Ink) string {
	var out strings.Builder
	for i, c := range b.Calls {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(ResultHead(c, k) + "\n")
		out.WriteString(VisibleText(PlainContent(c.Answer())))
		out.WriteString(DiffText(DiffOf(c.Answer()), k, "  "))
	}
	return out.String()
}
