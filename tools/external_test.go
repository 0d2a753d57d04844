package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

func foreign(schema string) (tools.Tool, error) {
	return tools.NewExternal(tools.Spec{Name: "foreign"}, json.RawMessage(schema), tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return tools.Effects{} },
		Run: func(_ context.Context, _ *tools.Env, input json.RawMessage) (tools.Result, error) {
			return tools.Text(string(input)), nil
		},
	})
}

// A schema is taken when it can be checked against, and an input is passed on as it is.
func TestForeign(t *testing.T) {
	const choice = `"oneOf":[{"required":["a"]},{"required":["b"]}]`
	many := `{"a":[1` + strings.Repeat(",1", 100_000) + `]}`
	for _, test := range []struct{ schema, input, want string }{
		{`{}`, ``, `{}`},
		{`{"type":"object"}`, `{"n":12345678901234567890,"f":1.5}`, `{"f":1.5,"n":12345678901234567890}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"integer"}}}`, `{"a":"x"}`, "invalid_input"},
		{`{` + choice + `}`, `{"a":1}`, `{"a":1}`},
		{`{` + choice + `}`, `{"a":1,"b":1}`, "invalid_input"},
		{`{}`, `[]`, "invalid_input"},
		{`{}`, `{"a":1,"a":2}`, "invalid_input"},
		{`{"type":"string"}`, ``, "refused"},
		{`[]`, ``, "refused"},
		{`{`, ``, "refused"},
		{`{"type":"objct"}`, ``, "refused"},
		{`{"$ref":"file:///etc/passwd"}`, ``, "refused"},
		{`{"$schema":"http://127.0.0.1:1/meta"}`, ``, "refused"},
		{`{"properties":{"a":{"pattern":"("}}}`, ``, "refused"},
		{`{"description":"` + strings.Repeat("x", 200_000) + `"}`, ``, "refused"},
		{forks(`{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, "#"), ``, "refused"},
		{forks(`{"properties":{"a":{"$ref":"#/$defs/d%d"}},"allOf":[{"properties":{"a":{"$ref":"#/$defs/d%d"}}}]}`, "#"), nested(50), "invalid_input"},
		{`{"$defs":{"n":{"properties":{"left":{"$ref":"#/$defs/n"},"right":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, strings.ReplaceAll(nested(50), "a", "left"), strings.ReplaceAll(nested(50), "a", "left")},
		{`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, nested(100), "invalid_input"},
		{`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, nested(5), nested(5)},
		{`{"$ref":"#"}`, `{}`, "invalid_input"},
		{`{"properties":{"a":` + forks(`{"allOf":[{"$ref":"#/properties/a/$defs/d%d"},{"$ref":"#/properties/a/$defs/d%d"}]}`, "#/properties/a") + `}}`, `{"a":1}`, "invalid_input"},
		{`{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}}`, many, many},
		{`{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}}`, `{"a":[1,true]}`, "invalid_input"},
	} {
		tool, err := foreign(test.schema)
		got := "refused"
		if err == nil {
			got = given(t, tool, test.input)
		}
		if got != test.want {
			t.Errorf("%.100s with %.100s gave %.200s, %v", test.schema, test.input, got, err)
		}
	}
}

// forks is a schema of 60 parts that each lead twice to the next. It stands at that place of a schema.
func forks(part, place string) string {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":`+part, i, i+1, i+1))
	}
	return `{"$ref":"` + place + `/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":{}}}`
}

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + `{}` + strings.Repeat("}", depth)
}

func given(t *testing.T, tool tools.Tool, input string) string {
	t.Helper()
	action, err := tool.Parse(json.RawMessage(input))
	var found *fault.Error
	if errors.As(err, &found) {
		return found.Code
	}
	result, err := action.Run(t.Context(), &tools.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].Text
}

// Results are kept by what the input says, for their time, of calls that change nothing and that succeed.
func TestCached(t *testing.T) {
	calls := 0
	var effects tools.Effects
	var failure error
	plain, err := tools.NewExternal(tools.Spec{Name: "foreign"}, json.RawMessage(`{}`), tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return effects },
		Run: func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
			calls++
			return tools.Text("result"), failure
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(tool tools.Tool, inputs ...string) int {
		calls = 0
		for _, input := range inputs {
			action, err := tool.Parse(json.RawMessage(input))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = action.Run(t.Context(), &tools.Env{})
		}
		return calls
	}
	tool := tools.Cached(plain, time.Hour)
	if n := run(tool, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":2}`, `{"a":1,"b":2}`); n != 2 {
		t.Errorf("two inputs made %d calls", n)
	}
	if n := run(tools.Cached(plain, 0), `{}`, `{}`); n != 2 {
		t.Errorf("what is kept for no time made %d calls of 2", n)
	}
	calls = 0
	for _, dir := range []string{"/a", "/b", "/a"} {
		action, err := tool.Parse(json.RawMessage(`{"a":3}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = action.Run(t.Context(), &tools.Env{Dir: dir})
	}
	if calls != 2 {
		t.Errorf("two directories made %d calls", calls)
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`{"n":%d}`, i))
	}
	if n := run(tool, append(many, many[199], many[0])...); n != 201 {
		t.Errorf("200 inputs, then the last and the first, made %d calls", n)
	}
	failure = errors.New("failed")
	if n := run(tools.Cached(plain, time.Hour), `{}`, `{}`); n != 2 {
		t.Errorf("two failures made %d calls", n)
	}
	failure, effects = nil, tools.Effects{Opaque: true}
	if n := run(tools.Cached(plain, time.Hour), `{}`, `{}`); n != 2 {
		t.Errorf("two changes made %d calls", n)
	}
}
