package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

type counted struct {
	Name  string  `json:"name" jsonschema:"what is counted"`
	Limit int     `json:"limit,omitempty" jsonschema:"at most so many"`
	Parts []parts `json:"parts,omitempty" jsonschema:"the parts"`
}

type parts struct {
	Size int `json:"size" jsonschema:"how large it is"`
}

// TestParse: every violation is named by its field, and whole numbers are integers however they are written.
func TestParse(t *testing.T) {
	tool := tools.New(tools.Spec{Name: "Count"}, tools.Funcs[counted]{
		Effects: func(counted) tools.Effects { return tools.Effects{} },
		Run: func(_ context.Context, _ *tools.Env, in counted) (tools.Result, error) {
			return tools.Result{Structured: in}, nil
		},
	})
	for _, c := range []struct {
		input string
		want  counted
		wrong []string // the fields that are blamed
	}{
		{input: `{"name":"a"}`, want: counted{Name: "a"}},
		{input: `{"name":"a","limit":50.0}`, want: counted{Name: "a", Limit: 50}},
		{input: `{"name":"a","limit":5e1}`, want: counted{Name: "a", Limit: 50}},
		{input: `{"name":"a","limit":9007199254740993}`, want: counted{Name: "a", Limit: 9007199254740993}},
		{input: `{"name":1,"limit":"3","more":true}`, wrong: []string{"", "/limit", "/name"}},
		{input: `{"limit":1.5}`, wrong: []string{"", "/limit"}},
		{input: `{"name":"a","limit":99999999999999999999}`, wrong: []string{"/limit"}},
		{input: `{"name":"a","limit":1e400}`, wrong: []string{"/limit"}},
		{input: `{"name":"a","parts":[{"size":null}]}`, wrong: []string{"/parts/0/size"}},
	} {
		action, err := tool.Parse(json.RawMessage(c.input))
		if len(c.wrong) == 0 {
			result, _ := run(t, action)
			if err != nil || result.Name != c.want.Name || result.Limit != c.want.Limit {
				t.Errorf("%s: got %+v, %v; want %+v", c.input, result, err, c.want)
			}
			continue
		}
		var found *fault.Error
		if !errors.As(err, &found) || found.Code != "invalid_input" {
			t.Errorf("%s: %v, want invalid_input", c.input, err)
			continue
		}
		var fields []string
		for _, v := range found.Details.(tools.Violations).Violations {
			fields = append(fields, v.Field)
		}
		slices.Sort(fields)
		if !slices.Equal(fields, c.wrong) {
			t.Errorf("%s: blames %q, want %q: %v", c.input, fields, c.wrong, err)
		}
	}
}

func run(t *testing.T, action tools.Action) (counted, error) {
	t.Helper()
	if action == nil {
		return counted{}, nil
	}
	result, err := action.Run(t.Context(), nil)
	return result.Structured.(counted), err
}

// TestRepeatedKeys: an input that different readers take for different things is none, however deep.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	type part struct {
		Size int `json:"size"`
	}
	type input struct {
		Name  string `json:"name"`
		Parts []part `json:"parts,omitempty"`
	}
	tool := tools.New(tools.Spec{Name: "Echo", Description: "Echoes."}, tools.Funcs[input]{
		Effects: func(input) tools.Effects { return tools.Effects{} },
		Run:     func(context.Context, *tools.Env, input) (tools.Result, error) { return tools.Result{}, nil },
	})
	for text, fits := range map[string]bool{
		`{"name":"name","parts":[{"size":1},{"size":2}]}`: true,
		`{"name":"a","name":"b"}`:                         false,
		`{"name":"a","na\u006de":"b"}`:                    false,
		`{"name":"a","parts":[{"size":1,"size":2}]}`:      false,
		`{"name":"a","parts":[],"parts":[]}`:              false,
	} {
		_, err := tool.Parse(json.RawMessage(text))
		var found *fault.Error
		if (err == nil) != fits || err != nil && (!errors.As(err, &found) || !strings.Contains(found.Message, "twice")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
