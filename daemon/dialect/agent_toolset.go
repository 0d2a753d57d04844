package dialect

// The tools of Claude's managed agents, agent_toolset_20260401.

var agentTools = table{
	tools: []NativeTool{
		{`{"name":"bash","description":"Runs a command in bash, confined. Working directory and exported variables last from call to call.","input_schema":{"type":"object","properties":{"command":{"type":"string","description":"the command"},"restart":{"type":"boolean","description":"instead of a command: begin again in the directory and with the variables of the session's beginning"},"timeout_ms":{"type":"integer","description":"time limit in milliseconds"}}}}`, []string{"Bash"}},
		{`{"name":"read","description":"Reads a file. Lines come with their numbers.","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"absolute, or relative to the workspace"},"view_range":{"type":"array","items":{"type":"integer"},"description":"first and last line, from 1; 0 or less is the end"}},"required":["file_path"]}}`, []string{"Read"}},
		{`{"name":"write","description":"Writes a whole file, and makes the directories above it. A file that exists must have been read.","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"absolute, or relative to the workspace"},"content":{"type":"string","description":"all of its text"}},"required":["file_path","content"]}}`, []string{"Write"}},
		{`{"name":"edit","description":"Replaces old_string, which must occur once unless replace_all is set, in a file that was read.","input_schema":{"type":"object","properties":{"file_path":{"type":"string","description":"absolute, or relative to the workspace"},"old_string":{"type":"string","description":"the text to replace"},"new_string":{"type":"string","description":"the text in its place"},"replace_all":{"type":"boolean","description":"every occurrence"}},"required":["file_path","old_string","new_string"]}}`, []string{"Edit"}},
		{`{"name":"glob","description":"Finds files by name, the newest first.","input_schema":{"type":"object","properties":{"pattern":{"type":"string","description":"such as **/*.go"},"path":{"type":"string","description":"directory to search; default: the workspace"}},"required":["pattern"]}}`, []string{"Glob"}},
		{`{"name":"grep","description":"Finds lines that match a regular expression, in ripgrep's syntax.","input_schema":{"type":"object","properties":{"pattern":{"type":"string","description":"the expression"},"path":{"type":"string","description":"file or directory to search; default: the workspace"}},"required":["pattern"]}}`, []string{"Grep"}},
	},
	calls: map[string]mapping{
		"bash": {tool: "Bash", set: `{"command":""}`, fields: []field{
			{native: "command", name: "command", optional: true},
			{native: "restart", name: "restart", optional: true},
			{native: "timeout_ms", name: "timeout", optional: true},
		}},
		"read": {tool: "Read", fields: []field{
			{native: "file_path", name: "file_path", isPath: true}, {native: "view_range", optional: true},
		}},
		"write": {tool: "Write", fields: []field{
			{native: "file_path", name: "file_path", isPath: true}, {native: "content", name: "content"},
		}},
		"edit": {tool: "Edit", fields: []field{
			{native: "file_path", name: "file_path", isPath: true},
			{native: "old_string", name: "old_string"},
			{native: "new_string", name: "new_string"},
			{native: "replace_all", name: "replace_all", optional: true},
		}},
		"glob": {tool: "Glob", fields: []field{
			{native: "pattern", name: "pattern"}, {native: "path", name: "path", optional: true, isPath: true},
		}},
		"grep": {tool: "Grep", set: `{"output_mode":"content"}`, fields: []field{
			{native: "pattern", name: "pattern"}, {native: "path", name: "path", optional: true, isPath: true},
		}},
	},
	glossary: "(Here Read, Write, Edit, Glob, Grep and Bash are read, write, edit, glob, grep and bash.)",
	relative: true,
}
