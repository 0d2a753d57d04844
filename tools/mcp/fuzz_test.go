//go:build !no_mcp

package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
)

func nobody(context.Context, *tools.Env, string, json.RawMessage) (tools.Result, error) {
	return tools.Result{}, nil
}

// Whatever a server says of its tools, what is made of it is fit for model APIs, and is the same each time.
func FuzzOffer(f *testing.F) {
	f.Add("fake", `[{"name":"a b","description":"x","inputSchema":{"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"a":true}}}}},{"name":"a_b"}]`)
	f.Add("a.very.long.name.of.a.server.that.goes.on.and.on.and.on.and.on.and.on", `[{"name":"","inputSchema":null},null,{"name":"x","inputSchema":{"allOf":[{"$ref":"#"}]}}]`)
	f.Add("s", `[{"name":"x","inputSchema":{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},true]}}},"_meta":{"anthropic/maxResultSizeChars":1e99}}]`)
	f.Fuzz(func(t *testing.T, server, text string) {
		var offered []*sdk.Tool
		if err := json.Unmarshal([]byte(text), &offered); err != nil {
			return
		}
		defined, leftOut := define(Entry{Name: server}, offered, nobody)
		if len(defined)+len(leftOut) != len(offered) {
			t.Errorf("of %d tools %d are served and %d left out", len(offered), len(defined), len(leftOut))
		}
		again, _ := define(Entry{Name: server}, offered, nobody)
		names := map[string]bool{}
		for i, tool := range defined {
			spec := tool.Spec()
			if names[spec.Name] || len(spec.Name) > maxName || safe(spec.Name) != spec.Name || again[i].Spec().Name != spec.Name {
				t.Errorf("the name %q is no name", spec.Name)
			}
			names[spec.Name] = true
			checkShown(t, spec)
			_, _ = tool.Parse(json.RawMessage(`{"a":"b","n":[1,{"x":null}]}`))
		}
	})
}

func checkShown(t *testing.T, spec tools.Spec) {
	t.Helper()
	if !utf8.ValidString(spec.Description) || utf8.RuneCountInString(spec.Description) > maxDescription || spec.Description == "" {
		t.Errorf("%s has the description %q", spec.Name, spec.Description)
	}
	var shown map[string]any
	if err := json.Unmarshal(spec.InputSchema, &shown); err != nil || shown["type"] != "object" || shown["oneOf"] != nil || shown["anyOf"] != nil || shown["allOf"] != nil {
		t.Errorf("%s is shown with %s, %v", spec.Name, spec.InputSchema, err)
	}
}

// Whatever a server answers, what is made of it can be sent.
func FuzzResult(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"a\u0000b"},{"type":"image","mimeType":"image/png","data":"iVBO"},{"type":"audio","mimeType":"","data":""},{"type":"resource_link","uri":"x","name":"y"},{"type":"resource","resource":{"uri":"x","blob":"AAAA"}},{"type":"resource"}],"structuredContent":[1],"isError":true}`)
	f.Add(`{"content":[],"structuredContent":{"a":1e400}}`)
	f.Add(`{"content":null,"structuredContent":"text"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var given sdk.CallToolResult
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return
		}
		result, err := resultOf(t.Context(), "fake", &given)
		if (err != nil) != given.IsError || len(result.Content) == 0 {
			t.Errorf("it gave %+v, %v", result, err)
		}
		for _, block := range result.Content {
			if block.Text == "" && block.Image == nil && block.Document == nil && block.Link == nil || !utf8.ValidString(block.Text) {
				t.Errorf("a block is %+v", block)
			}
		}
		if structured, err := json.Marshal(result.Structured); err != nil || structured[0] != '{' && string(structured) != "null" {
			t.Errorf("structured is %s, %v", structured, err)
		}
	})
}

// Whatever a server prints is cut into the same lines however it comes, and no line is read as more than it says.
func FuzzLines(f *testing.F) {
	f.Add("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\nplain\r\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n{", 3)
	f.Add("[]\n[[]]\nnull\n{}\n", 1)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		piece = max(1, piece%100)
		var whole, pieces []string
		all := splitter{give: func(line []byte) { whole = append(whole, string(line)) }}
		_, _ = all.Write([]byte(text))
		all.flush()
		parts := splitter{give: func(line []byte) { pieces = append(pieces, string(line)) }}
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			_, _ = parts.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		parts.flush()
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("at once it gave %q, in pieces %q", whole, pieces)
		}
		for _, line := range whole {
			for _, message := range messages([]byte(line)) {
				if message == nil {
					t.Errorf("%q has a message that is none", line)
				}
			}
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, test := range []struct{ server, tool, want string }{
		{"github", "get_issue", "mcp__github__get_issue"},
		{"my.server", "get issue", "mcp__my_server__get_issue"},
		{"grüße", "ß", "mcp__gr__e___"},
		{"s", long, named("s", long)},
	} {
		got := named(test.server, test.tool)
		if test.server == "grüße" {
			test.want = "mcp__gr__e___" // each character gives one underscore
		}
		if got != test.want || len(got) > maxName {
			t.Errorf("%s of %s is %q", test.tool, test.server, got)
		}
	}
	if named("s", long) == named("s", long+"y") {
		t.Error("what is cut is not told apart")
	}
	got := distinct("s", []string{"a.b", "a b", "a_b", "c"})
	if got[2] != "mcp__s__a_b" || got[3] != "mcp__s__c" || got[0] == got[1] || !strings.HasPrefix(got[0], "mcp__s__a_b_") {
		t.Errorf("the names are %q", got)
	}
	if swapped := distinct("s", []string{"a_b", "c", "a b", "a.b"}); swapped[3] != got[0] || swapped[2] != got[1] {
		t.Errorf("the names depend on the order: %q and %q", got, swapped)
	}
}

func TestFlat(t *testing.T) {
	for _, test := range []struct{ full, shown string }{
		{`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		{`{"properties":{"a":{}},"required":["a"],"additionalProperties":false}`, `{"additionalProperties":false,"properties":{"a":{}},"required":["a"],"type":"object"}`},
		{
			`{"properties":{"a":{}},"required":["a"],"anyOf":[{"properties":{"b":{}},"required":["b","c"]},{"properties":{"c":{}},"required":["c"]}],"additionalProperties":false}`,
			`{"properties":{"a":{},"b":{},"c":{}},"required":["a","c"],"type":"object"}`,
		},
		{
			`{"allOf":[{"$ref":"#/$defs/x"},{"properties":{"a":{"type":"number"}}}],"$defs":{"x":{"properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			`{"$defs":{"x":{"properties":{"a":{"type":"string"}},"required":["a"]}},"properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]}},"required":["a"],"type":"object"}`,
		},
		{`{"oneOf":[true,{"properties":{"a":{}},"required":["a"]}]}`, `{"properties":{"a":{}},"type":"object"}`},
		{`{"$ref":"#"}`, `{"properties":{},"type":"object"}`},
	} {
		var full map[string]any
		if err := json.Unmarshal([]byte(test.full), &full); err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(tools.Flat(full))
		if err != nil || string(shown) != test.shown {
			t.Errorf("%s\nis shown as %s\n       not as %s, %v", test.full, shown, test.shown, err)
		}
	}
}
