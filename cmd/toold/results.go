// Prints the results of a turn: for a person, for a program, or as the message that a model API takes. It does not
// know how they came about.

package main

import (
	"bytes"
	"fmt"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/dialect"
)

// formContent is one call's content alone, as call prints it.
const formContent = "content"

// say tells a person something beside the results.
func (s *app) say(format string, args ...any) {
	fmt.Fprintln(s.stderr, "toold: "+terminal.VisibleText(fmt.Sprintf(format, args...)))
}

func (s *app) printResults(conv *conversation, format dialect.Format, form string) error {
	var uses []answered
	for i, c := range conv.turn.Calls {
		uses = append(uses, answered{conv.uses[i], c.Answer()})
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
		for _, c := range conv.turn.Calls {
			text = fmt.Append(text, terminal.ContentText(c.Answer(), terminal.Open(s.stdout)))
		}
	default:
		text = []byte(terminal.ResultsText(conv.turn, terminal.Open(s.stdout).Ink))
	}
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(text)
	return err
}

// resultsJSON is the results as the wire has them, as one JSON array.
func resultsJSON(uses []answered) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, a := range uses {
		if i > 0 {
			out.WriteString(",\n ")
		}
		text, err := terminal.WireJSON(a.result)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}
