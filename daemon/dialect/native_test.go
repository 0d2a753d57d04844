package dialect

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestCanonical: calls of native tools, and what they stand for. An error is written behind "!".
func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		format            Format
		name, input, want string
	}{
		{AnthropicNative, "bash", `{"command": "ls <a>"}`, `Bash {"command":"ls <a>"}`},
		{AnthropicNative, "bash", `{"restart": true}`, `Bash {"command":"","restart":true}`},
		{AnthropicNative, "bash", `{}`, `Bash {"command":""}`},
		{AnthropicNative, "bash", `{"command": "ls", "timeout": 1}`, `! there is no field timeout`},
		{AnthropicNative, "bash", `[`, `! the input is not a JSON object`},
		{AnthropicNative, "bash", `null`, `! the input is not a JSON object`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a"}`, `Read {"file_path":"/w/a"} or LS {"ignore":[".*","node_modules"],"path":"/w/a"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a", "view_range": [3, 5]}`, `Read {"file_path":"/w/a","limit":3,"offset":3} or LS {"ignore":[".*","node_modules"],"path":"/w/a"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a", "view_range": [3, -1]}`, `Read {"file_path":"/w/a","limit":1000000000,"offset":3} or LS {"ignore":[".*","node_modules"],"path":"/w/a"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a", "view_range": null}`, `Read {"file_path":"/w/a"} or LS {"ignore":[".*","node_modules"],"path":"/w/a"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a", "view_range": [5, 3]}`, `! view_range ends with line 3, before it begins`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view", "path": "/w/a", "view_range": [5]}`, `! view_range is [5], and should be the numbers of the first and the last line, such as [1, 20] or [20, -1]`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "view"}`, `! path is missing`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"path": "/w/a"}`, `! command is missing, and is one of create, insert, str_replace, view`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "undo_edit", "path": "/w/a"}`, `! command is "undo_edit", and is one of create, insert, str_replace, view`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "str_replace", "path": "/w/a", "old_str": "x", "new_str": "y"}`, `Edit {"file_path":"/w/a","new_string":"y","old_string":"x"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "str_replace", "path": "/w/a", "old_str": "x"}`, `Edit {"file_path":"/w/a","new_string":"","old_string":"x"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "create", "path": "/w/a", "file_text": "x\u0041"}`, `Write {"content":"x\u0041","file_path":"/w/a"}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "insert", "path": "/w/a", "insert_line": 2, "insert_text": "x"}`, `Edit {"file_path":"/w/a","insert_line":2,"new_string":"x","old_string":""}`},
		{AnthropicNative, "str_replace_based_edit_tool", `{"command": "insert", "path": "/w/a", "insert_line": 0, "new_str": "x"}`, `Edit {"file_path":"/w/a","insert_line":0,"new_string":"x","old_string":""}`},
		{AnthropicNative, "memory", `{"command": "view", "path": "/memories"}`, `Memory {"command":"view","path":"/memories"}`},
		{AnthropicNative, "Glob", `{"pattern": "*"}`, `Glob {"pattern": "*"}`},
		{Anthropic, "bash", `{"x": 1}`, `bash {"x": 1}`},
		{AgentToolset, "bash", `{"command": "ls", "timeout_ms": 5}`, `Bash {"command":"ls","timeout":5}`},
		{AgentToolset, "bash", `{"restart": true}`, `Bash {"command":"","restart":true}`},
		{AgentToolset, "read", `{"file_path": "a/../b"}`, `Read {"file_path":"/w/b"}`},
		{AgentToolset, "read", `{"file_path": "/x", "view_range": [2, 0]}`, `Read {"file_path":"/x","limit":1000000000,"offset":2}`},
		{AgentToolset, "write", `{"file_path": "a", "content": ""}`, `Write {"content":"","file_path":"/w/a"}`},
		{AgentToolset, "edit", `{"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}`, `Edit {"file_path":"/w/a","new_string":"y","old_string":"x","replace_all":true}`},
		{AgentToolset, "glob", `{"pattern": "*"}`, `Glob {"path":"/w","pattern":"*"}`},
		{AgentToolset, "grep", `{"pattern": "x", "path": "sub"}`, `Grep {"output_mode":"content","path":"/w/sub","pattern":"x"}`},
		{AgentToolset, "memory", `{}`, `memory {}`},
	} {
		u, err := Canonical(c.format, Use{ID: "1", Name: c.name, Input: c.input}, "/w")
		got := u.Name + " " + u.Input
		if u.Directory != nil {
			got += " or " + u.Directory.Name + " " + u.Directory.Input
		}
		if err != nil {
			got = "! " + err.Error()
		}
		if got != c.want || u.ID != "1" || err == nil && (u.Native != "") != (u.Name != c.name) {
			t.Errorf("%s %s\n got  %s (%+v)\n want %s", c.name, c.input, got, u, c.want)
		}
	}
}

// TestNativeDefinitions: each definition is of a tool that has a mapping, and each mapping is of a tool that is defined.
func TestNativeDefinitions(t *testing.T) {
	for format, table := range tables {
		names := map[string]bool{}
		for _, own := range NativeTools(format) {
			var defined struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal([]byte(own.Definition), &defined); err != nil {
				t.Errorf("%s: %v", own.Definition, err)
			}
			if names[defined.Name] = true; !slices.ContainsFunc(slices.Collect(maps.Keys(table.calls)), func(key string) bool {
				return (key == defined.Name || strings.HasPrefix(key, defined.Name+" ")) && slices.Contains(own.For, table.calls[key].tool)
			}) {
				t.Errorf("%s has no mapping", defined.Name)
			}
		}
		for key := range table.calls {
			if name, _, _ := strings.Cut(key, " "); !names[name] {
				t.Errorf("%s is not defined", name)
			}
		}
	}
}

// FuzzCanonical holds that the input of what a call stands for is a JSON object, whatever the model has written.
func FuzzCanonical(f *testing.F) {
	for format := range tables {
		for key := range tables[format].calls {
			name, command, _ := strings.Cut(key, " ")
			f.Add(uint8(format), name, `{"command":"`+command+`","path":"a","file_path":"b","view_range":[1,2],"old_str":"x"}`)
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, name, input string) {
		u, err := Canonical(Format(format%uint8(len(formatNames))), Use{Name: name, Input: input}, "/w")
		var object map[string]json.RawMessage
		if err == nil && u.Native != "" && (json.Unmarshal([]byte(u.Input), &object) != nil || object == nil) {
			t.Errorf("%s %s became %s %s", name, input, u.Name, u.Input)
		}
	})
}
