// Package todo is the TodoWrite tool: it replaces the session's list of things to be done. The list
// is a change that the session applies; the package does not know where it is kept.
package todo

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
)

//go:embed description.md
var description string

// Input is the input of a call.
type Input struct {
	Todos []tools.Todo `json:"todos" jsonschema:"the whole new list"`
}

// Written is the structured result: the list, and how many of its entries are in each state.
type Written struct {
	Todos      []tools.Todo `json:"todos"`
	Pending    int          `json:"pending"`
	InProgress int          `json:"in_progress"`
	Completed  int          `json:"completed"`
}

const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

// Tool returns the TodoWrite tool.
func Tool() tools.Tool {
	spec := tools.Spec{Name: "TodoWrite", Description: description, ReadOnly: true}
	return tools.New(spec, tools.Funcs[Input]{
		Validate: validate,
		Effects:  func(Input) tools.Effects { return tools.Effects{State: "todo list"} },
		Run:      run,
	})
}

// maxList is how many bytes of text a list may have. Messages hold the whole list, and most
// receivers accept 4 MiB.
const maxList = 256 << 10

// size is how many bytes of text the list has.
func (in *Input) size() (bytes int) {
	for _, t := range in.Todos {
		bytes += len(t.Content) + len(t.ActiveForm) + len(t.Status)
	}
	return bytes
}

// validate finds a list that is too long, and every entry without content.
func validate(in *Input) error {
	var wrong []tools.Violation
	if size := in.size(); size > maxList {
		wrong = append(wrong, tools.Violation{Field: "/todos", Expected: fmt.Sprintf("it has %d bytes of text, and may have %d; say less of each entry", size, maxList)})
	}
	for i, t := range in.Todos {
		if strings.TrimSpace(t.Content) == "" {
			wrong = append(wrong, tools.Violation{Field: fmt.Sprintf("/todos/%d/content", i), Expected: "it is empty; say what is to be done"})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return tools.Violated("TodoWrite", wrong)
}

func run(_ context.Context, _ *tools.Env, in Input) (tools.Result, error) {
	list := append([]tools.Todo{}, in.Todos...) // not nil: an empty list is a change too
	written := Written{Todos: list}
	for _, t := range list {
		switch t.Status {
		case pending:
			written.Pending++
		case inProgress:
			written.InProgress++
		case completed:
			written.Completed++
		}
	}
	result := tools.TextWith(written.text(), written)
	result.Changes.Todos = list
	return result, nil
}

func (w Written) text() string {
	if len(w.Todos) == 0 {
		return "The list is empty now."
	}
	text := fmt.Sprintf("The list is written: %d pending, %d in progress, %d completed.", w.Pending, w.InProgress, w.Completed)
	if w.InProgress > 1 {
		text += fmt.Sprintf(" %d entries are in progress; work on one at a time and set the others to pending.", w.InProgress)
	}
	return text
}
