package dialect

// Anthropic's own tools: bash_20250124, text_editor_20250728 and memory_20250818.

var anthropicTools = table{
	tools: []NativeTool{
		{`{"type":"bash_20250124","name":"bash"}`, []string{"Bash"}},
		{`{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`, []string{"Edit", "Read", "Write", "LS"}},
		{`{"type":"memory_20250818","name":"memory"}`, []string{"Memory"}},
	},
	calls: map[string]mapping{
		"bash": {tool: "Bash", set: `{"command":""}`, fields: []field{
			{native: "command", name: "command", optional: true}, {native: "restart", name: "restart", optional: true},
		}},
		"str_replace_based_edit_tool view": {tool: "Read", dir: "LS", fields: []field{
			{native: "path", name: "file_path"}, {native: "view_range", optional: true},
		}},
		"str_replace_based_edit_tool str_replace": {tool: "Edit", set: `{"new_string":""}`, fields: []field{
			{native: "path", name: "file_path"}, {native: "old_str", name: "old_string"}, {native: "new_str", name: "new_string", optional: true},
		}},
		"str_replace_based_edit_tool create": {tool: "Write", fields: []field{
			{native: "path", name: "file_path"}, {native: "file_text", name: "content"},
		}},
		"str_replace_based_edit_tool insert": {tool: "Edit", set: `{"old_string":"","new_string":""}`, fields: []field{
			{native: "path", name: "file_path"},
			{native: "insert_line", name: "insert_line"},
			// Older versions of the tool have the first name for it.
			{native: "new_str", name: "new_string", optional: true},
			{native: "insert_text", name: "new_string", optional: true},
		}},
		"memory": {tool: "Memory"},
	},
	glossary: "(Here Read and LS are the command view of str_replace_based_edit_tool, Edit is str_replace and insert, Write is create, Bash is bash.)",
}
