package todo

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

func TestLists(t *testing.T) {
	for _, c := range []struct {
		input, want string
		todos       []tools.Todo
	}{
		{`{"todos": []}`, "The list is empty now.", []tools.Todo{}},
		{
			`{"todos": [{"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"}, {"content": "b", "status": "completed", "activeForm": ""}]}`,
			"The list is written: 0 pending, 1 in progress, 1 completed.",
			[]tools.Todo{{Content: "Run the tests", Status: "in_progress", ActiveForm: "Running the tests"}, {Content: "b", Status: "completed"}},
		},
		{
			`{"todos": [{"content": "a", "status": "in_progress", "activeForm": ""}, {"content": "b", "status": "in_progress", "activeForm": ""}, {"content": "c", "status": "pending", "activeForm": ""}]}`,
			"The list is written: 1 pending, 2 in progress, 0 completed. 2 entries are in progress; work on one at a time and set the others to pending.",
			[]tools.Todo{{Content: "a", Status: "in_progress"}, {Content: "b", Status: "in_progress"}, {Content: "c", Status: "pending"}},
		},
	} {
		action, err := Tool().Parse(json.RawMessage(c.input))
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		if e := action.Effects(); !e.Concurrent() {
			t.Errorf("%s: effects %+v are not concurrent", c.input, e)
		}
		result, err := action.Run(context.Background(), &tools.Env{})
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		if diff := cmp.Diff(c.want, result.Content[0].Text) + cmp.Diff(c.todos, result.Changes.Todos) + cmp.Diff(c.todos, result.Structured.(Written).Todos); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", c.input, diff)
		}
	}
}

func TestEveryMistakeIsNamed(t *testing.T) {
	for input, want := range map[string][]string{
		`{"todos": [{"content": " ", "status": "done", "activeForm": ""}, {"content": "b", "status": "", "activeForm": ""}]}`:            {"/todos/0/status", "/todos/1/status"},
		`{"todos": [{"content": " ", "status": "pending", "activeForm": ""}, {"content": "", "status": "completed", "activeForm": ""}]}`: {"/todos/0/content", "/todos/1/content"},
		`{}`: {""},
		`{"todos": [{"content": "` + strings.Repeat("x", 256<<10) + `", "status": "pending", "activeForm": ""}]}`: {"/todos"},
		`{"todos": [{"content": 1}]}`:             {"/todos/0", "/todos/0/content"},
		`{"todos": [], "more": true}`:             {""},
		`{"todos": {"content": "not in a list"}}`: {"/todos"},
	} {
		_, err := Tool().Parse(json.RawMessage(input))
		found := fault.From(err)
		details, ok := found.Details.(tools.Violations)
		if found.Code != "invalid_input" || !ok {
			t.Errorf("%s: got %v, want invalid_input with violations", input, err)
			continue
		}
		var fields []string
		for _, v := range details.Violations {
			fields = append(fields, v.Field)
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("%s: fields: want (-), got (+):\n%s", input, diff)
		}
	}
}
