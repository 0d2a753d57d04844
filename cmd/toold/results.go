// The results of a turn, printed for the user, for a program, or as the message that a model API takes.

package main

import (
	"bytes"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	"github.com/toold/toold/daemon/dialect"
)

// Forms in which results are printed.
const (
	formText      = "text"
	formJSON      = "json"
	formJSONL     = "jsonl"
	formAnthropic = "anthropic"
	formOpenAI    = "openai"
	formResponses = "responses"
	formContent   = "content" // only one call's content, as call prints it
)

// runForms are those that run has. appendForms are what is to be appended to the conversation with the model.
var (
	runForms    = []string{formText, formJSON, formJSONL, formAnthropic, formOpenAI, formResponses}
	appendForms = runForms[3:]
)

func (s *app) printResults(conv *turn.Turn, format dialect.Format, form string) error {
	uses := conv.Answers()
	var text []byte
	var err error
	switch form {
	case formAnthropic:
		text, err = turn.AnthropicReply(format, uses)
	case formOpenAI:
		text, err = turn.OpenAIReply(format, uses)
	case formResponses:
		text, err = turn.ResponsesReply(uses)
	case formJSONL: // they came as events
	case formJSON:
		text, err = resultsJSON(uses)
	case formContent:
		for _, a := range uses {
			text = append(text, terminal.PlainContent(a.Result)...)
		}
		if terminal.Open(s.Stdout).Terminal {
			text = []byte(terminal.VisibleText(string(text)))
		}
	default:
		text = []byte(terminal.ResultsText(conv.State, terminal.Open(s.Stdout).Ink))
	}
	if err != nil {
		return err
	}
	_, err = s.Stdout.Write(text)
	return err
}

// resultsJSON is the results as the wire has them, as one JSON array.
func resultsJSON(uses []turn.Answered) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, a := range uses {
		if i > 0 {
			out.WriteString(",\n ")
		}
		text, err := terminal.WireJSON(a.Result)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	out.WriteString("]\n")
	return out.Bytes(), nil
}
