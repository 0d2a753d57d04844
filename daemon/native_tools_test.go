package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A nativeUse is a call of a model's own tool, and what comes of it.
type nativeUse struct {
	name, input string // ROOT stands for the session's root
	canonical   string // the tool that is called; empty: none
	want        string // what its result has in it; behind "!" that of one that failed
}

var nativeUses = map[tooldv1.ModelFormat][]nativeUse{
	tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC_NATIVE: {
		{"bash", `{"command":"mkdir sub; cd sub; export X=1; pwd"}`, "Bash", "ROOT/sub"},
		{"bash", `{"restart":true}`, "Bash", "new shell"},
		{"bash", `{"command":"pwd; echo [$X]"}`, "Bash", `ROOT\n[]`},
		{"str_replace_based_edit_tool", `{"command":"create","path":"ROOT/sub/a.txt","file_text":"one\ntwo\n"}`, "Write", "Created"},
		{"str_replace_based_edit_tool", `{"command":"view","path":"ROOT/sub"}`, "Read", `ROOT/sub/\n  a.txt (8 bytes)`},
		{"str_replace_based_edit_tool", `{"command":"view","path":"ROOT/sub/a.txt","view_range":[2,-1]}`, "Read", `     2\ttwo\n`},
		{"str_replace_based_edit_tool", `{"command":"str_replace","path":"ROOT/sub/a.txt","old_str":"one","new_str":"1"}`, "Edit", "one place was changed"},
		{"str_replace_based_edit_tool", `{"command":"insert","path":"ROOT/sub/a.txt","insert_line":1,"insert_text":"1.5"}`, "Edit", `     2\t1.5\n`},
		{"str_replace_based_edit_tool", `{"command":"str_replace","path":"ROOT/sub/a.txt","old_str":"no","new_str":"1"}`, "Edit", `!Edit is str_replace and insert`},
		{"str_replace_based_edit_tool", `{"command":"undo_edit","path":"ROOT/sub/a.txt"}`, "", `!command is \"undo_edit\", and is one of create, insert, str_replace, view`},
		{"memory", `{"command":"create","path":"/memories/a.md","file_text":"note"}`, "Memory", "File created successfully at: /memories/a.md"},
		{"memory", `{"command":"delete","path":"/memories/no"}`, "Memory", `!"The path /memories/no does not exist"}],`},
		{"memory", `{"command":"view","path":"/memories/a.md"}`, "Memory", `     1\tnote`},
		{"Glob", `{"pattern":"**/*.txt"}`, "Glob", "a.txt"},
	},
	tooldv1.ModelFormat_MODEL_FORMAT_AGENT_TOOLSET: {
		{"write", `{"file_path":"sub/a.txt","content":"one\ntwo\n"}`, "Write", "Created"},
		{"bash", `{"command":"cd sub; pwd","timeout_ms":5000}`, "Bash", "ROOT/sub"},
		{"read", `{"file_path":"sub/a.txt","view_range":[1,1]}`, "Read", `     1\tone\n`},
		{"edit", `{"file_path":"sub/a.txt","old_string":"one","new_string":"1"}`, "Edit", "one place was changed"},
		{"edit", `{"file_path":"sub/a.txt","old_string":"no","new_string":"1"}`, "Edit", "!Bash are read, write, edit"},
		{"glob", `{"pattern":"**/*.txt"}`, "Glob", "ROOT/sub/a.txt"},
		{"grep", `{"pattern":"tw."}`, "Grep", "two"},
		{"bash", `{"restart":true}`, "Bash", "new shell"},
	},
}

// eventsOf returns the message in which a model makes these calls, as the Messages API sends it.
func eventsOf(t *testing.T, uses []nativeUse, root string) (events []string) {
	t.Helper()
	add := func(event map[string]any) {
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, string(text))
	}
	add(map[string]any{"type": "message_start", "message": map[string]any{"id": "msg_1"}})
	for i, u := range uses {
		input := strings.ReplaceAll(u.input, "ROOT", root)
		add(map[string]any{"type": "content_block_start", "index": i, "content_block": map[string]any{"type": "tool_use", "id": fmt.Sprint("id", i), "name": u.name, "input": map[string]any{}}})
		for _, part := range []string{input[:5], input[5:]} {
			add(map[string]any{"type": "content_block_delta", "index": i, "delta": map[string]any{"type": "input_json_delta", "partial_json": part}})
		}
		add(map[string]any{"type": "content_block_stop", "index": i})
	}
	add(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": "tool_use"}})
	add(map[string]any{"type": "message_stop"})
	return events
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// checkNative compares the results, which are of a type, with what is wanted of the uses; their ids are "id" and their place.
func (c *conversation) checkNative(h *house, format tooldv1.ModelFormat, results map[string]*tooldv1.ToolResult, resultType string) {
	c.t.Helper()
	accepted := map[string]*tooldv1.Accepted{}
	for _, e := range c.events {
		if a := e.GetAccepted(); a != nil {
			accepted[a.GetToolUseId()] = a
		}
	}
	for i, u := range nativeUses[format] {
		id := fmt.Sprint("id", i)
		got, a := results[id].GetNativeJson(), accepted[id]
		want, failed := strings.CutPrefix(strings.ReplaceAll(u.want, "ROOT", h.root), "!")
		if !strings.HasPrefix(got, fmt.Sprintf(`{"type":"%s","tool_use_id":"%s","content":[{`, resultType, id)) || !strings.Contains(got, want) || !strings.HasSuffix(got, fmt.Sprintf(`"is_error":%t}`, failed)) {
			c.t.Errorf("%s %s\n got  %s\n want %s", u.name, u.input, got, u.want)
		}
		if u.canonical != "" && a.GetName() != u.canonical || a.GetFormat() != format || a.GetName() != u.name && a.GetNativeName() != u.name {
			c.t.Errorf("%s %s: accepted as %v, want %s", u.name, u.input, a, u.canonical)
		}
	}
}

// TestNativeTools feeds messages to whose models the tools are their own: they are calls of the daemon's tools.
func TestNativeTools(t *testing.T) {
	for format, uses := range nativeUses {
		t.Run(format.String(), func(t *testing.T) {
			h := serve(t)
			h.root = resolved(t, h.root)
			c, _ := h.natively("s", -1)
			for i, e := range eventsOf(t, uses, h.root) {
				c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ModelEvent{
					ModelEvent: &tooldv1.ModelEvent{TurnId: "m1", Index: uint64(i), Json: e, Format: format},
				}})
			}
			c.checkNative(h, format, c.results(), "tool_result")
		})
	}
}

// TestAgentEvents: the events of a managed agent need no format, and are answered by events.
func TestAgentEvents(t *testing.T) {
	h := serve(t)
	h.root = resolved(t, h.root)
	c, _ := h.natively("s", -1)
	const format = tooldv1.ModelFormat_MODEL_FORMAT_AGENT_TOOLSET
	for i, u := range nativeUses[format] {
		item := fmt.Sprintf(`{"type":"agent.tool_use","id":"id%d","name":"%s","input":%s,"processed_at":"2026-11-26T00:00:00Z","evaluated_permission":"allow"}`, i, u.name, strings.ReplaceAll(u.input, "ROOT", h.root))
		c.ask(&tooldv1.ToolUse{NativeJson: item})
	}
	c.endTurn()
	c.checkNative(h, format, c.results(), "user.tool_result")
}

// TestNativeNames: outside of their format the names are those of a client's own tools, and rules know only the tools.
func TestNativeNames(t *testing.T) {
	h := serve(t)
	block := func(id, name, input string, format tooldv1.ModelFormat) *tooldv1.ToolUse {
		return &tooldv1.ToolUse{NativeJson: fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":%s}`, id, name, input), Format: format}
	}
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, &tooldv1.ClientTool{Name: "bash", Description: "A tool of the client.", InputSchemaJson: `{"type":"object"}`, ReadOnly: true})
	c.ask(block("1", "bash", `{"x":1}`, tooldv1.ModelFormat_MODEL_FORMAT_UNSPECIFIED))
	if u := c.asked("1"); u.GetName() != "bash" {
		t.Errorf("the client was asked for %v", u)
	}
	c.gives("1", &tooldv1.ClientToolResult{Content: textOf("mine")})
	c.ask(block("2", "bash", `{"command":"echo the daemon\\'s"}`, tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC_NATIVE))
	c.ask(block("3", "str_replace_based_edit_tool", `{"command":"view","path":"/x"}`, tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC))
	c.endTurn()
	results := c.results()
	for id, want := range map[string]string{"1": "mine", "2": "the daemon's", "3": "unknown_tool"} {
		result := results[id]
		if got := fmt.Sprint(result.GetContent(), result.GetError().GetCode()); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if err := os.WriteFile(h.settings, []byte(`{"permissions":{"deny":["Edit(*.lock)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.file("a.lock", "x\n")
	c.ask(block("5", "str_replace_based_edit_tool", fmt.Sprintf(`{"command":"create","path":%q,"file_text":"x"}`, filepath.Join(h.root, "b.lock")), tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC_NATIVE))
	c.endTurn()
	if got := c.results()["5"].GetError().GetCode(); got != "rule_denied" {
		t.Errorf("what a rule denies ends as %q", got)
	}
}

// TestNativeDefinitions: the model's own tools stand in place of those that they stand for.
func TestNativeDefinitions(t *testing.T) {
	h := serve(t)
	for format, want := range map[tooldv1.ToolFormat]string{
		tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC:        "Bash BashInput BashOutput Edit Glob Grep KillShell LS MultiEdit Read TodoWrite Write",
		tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC_NATIVE: "bash:bash_20250124 BashInput BashOutput str_replace_based_edit_tool:text_editor_20250728 Glob Grep KillShell memory:memory_20250818 MultiEdit TodoWrite",
		tooldv1.ToolFormat_TOOL_FORMAT_AGENT_TOOLSET:    "bash BashInput BashOutput edit glob grep KillShell LS MultiEdit read TodoWrite write",
	} {
		list, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		var definitions []struct {
			Name, Type string
			Schema     json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal([]byte(list.GetDefinitionsJson()), &definitions); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range definitions {
			if (d.Schema == nil) != (d.Type != "") {
				t.Errorf("%s has the type %q and the schema %s", d.Name, d.Type, d.Schema)
			}
			got = append(got, strings.TrimSuffix(d.Name+":"+d.Type, ":"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n got  %s\n want %s", format, strings.Join(got, " "), want)
		}
	}
}
