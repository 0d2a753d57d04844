// Prints the results of a turn: for a person, for a program, or as the message that a model API takes. It does not
// know how they came about.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// formContent is one call's content alone, as call prints it.
const formContent = "content"

// say tells a person something beside the results.
func (s *setup) say(format string, args ...any) {
	fmt.Fprintln(s.stderr, "toold: "+visibleText(fmt.Sprintf(format, args...)))
}

func (s *setup) printResults(conv *conversation, format dialect.Format, form string) error {
	var uses []answered
	for i, c := range conv.board.calls {
		uses = append(uses, answered{conv.uses[i], c.answer()})
	}
	var text []byte
	var err error
	switch form {
	case formAnthropic:
		text, err = anthropicReply(uses)
	case formOpenAI:
		text, err = openaiReply(format, uses)
	case formResponses:
		text, err = responsesReply(uses)
	case formJSONL: // they came as events
	case formJSON:
		text, err = resultsJSON(uses)
	case formContent:
		for _, c := range conv.board.calls {
			text = fmt.Append(text, contentText(c.answer(), pageOf(s.stdout)))
		}
	default:
		text = []byte(resultsText(conv.board, pageOf(s.stdout).ink))
	}
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(text)
	return err
}

// answer is the call's result; for a tool use that was refused, one that says so, since a conversation with a model
// cannot go on without.
func (c *call) answer() *tooldv1.ToolResult {
	if c.result != nil {
		return c.result
	}
	return &tooldv1.ToolResult{
		ToolUseId: c.id, IsError: true, Outcome: tooldv1.Outcome_OUTCOME_INVALID,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: c.refusal}}},
		Error:   &tooldv1.Error{Code: "duplicate_id", Message: c.refusal},
	}
}

// resultsJSON is the results as the wire has them, as one JSON array.
func resultsJSON(uses []answered) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, a := range uses {
		if i > 0 {
			out.WriteString(",\n ")
		}
		text, err := wireJSON(a.result)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}

// wireJSON is a message with the names that the proto files use, compact and always the same.
func wireJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, text) // protojson varies its spaces on purpose
	return compact.Bytes(), err
}

// printJSON writes a message as one line.
func printJSON(w io.Writer, m proto.Message) error {
	text, err := wireJSON(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// resultsText shows each call with what it gave, in the order of the tool uses.
func resultsText(b *board, k ink) string {
	var out strings.Builder
	for i, c := range b.calls {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(resultHead(c, k) + "\n")
		out.WriteString(visibleText(plainContent(c.answer())))
		if diff := diffOf(c.answer()); diff != "" {
			out.WriteString(diffText(diff, k))
		}
	}
	return out.String()
}

func resultHead(c *call, k ink) string {
	style, mark := outcomeLook(c.answer().GetOutcome(), k)
	facts := []string{outcomeWord(c.answer().GetOutcome())}
	if code := c.answer().GetError().GetCode(); code != "" && code != facts[0] {
		facts = append(facts, code)
	}
	if ran, ok := c.ran(); ok {
		facts = append(facts, span(ran))
	}
	if c.replayed {
		facts = append(facts, "from the journal")
	}
	return fmt.Sprintf("%s %s %s  %s", style.Render(mark), k.name.Render(visibleLine(c.name)), c.subject,
		k.dim.Render(strings.Join(facts, " · ")))
}

// plainContent is the content as text that ends in a newline; empty when there is none.
func plainContent(r *tooldv1.ToolResult) string {
	var parts []string
	for _, c := range r.GetContent() {
		if text := asText(c); text != "" {
			parts = append(parts, strings.TrimSuffix(text, "\n"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "\n") + "\n"
}

// contentText is what one call gave: exactly that for a pipe, safe to look at for a terminal.
func contentText(r *tooldv1.ToolResult, p page) string {
	if p.terminal {
		return visibleText(plainContent(r))
	}
	return plainContent(r)
}

// diffOf is the change that an edit made, if the result tells it.
func diffOf(r *tooldv1.ToolResult) string {
	return r.GetStructured().GetFields()["diff"].GetStringValue()
}

// failureLine is the last thing said about a turn in which something went wrong.
func failureLine(b *board, n int) string {
	if len(b.calls) > 1 {
		return fmt.Sprintf("%d of %s did not succeed", n, count(len(b.calls), "call"))
	}
	r := b.calls[0].answer()
	return fmt.Sprintf("%s ended as %s (%s)", b.calls[0].name, outcomeWord(r.GetOutcome()), r.GetError().GetCode())
}
