// Languages by file name.

package read

import (
	"path/filepath"
	"strings"
)

// language returns the name of a file's programming or markup language, as editors use it; empty if
// the file name does not show it.
func language(path string) string {
	base := strings.ToLower(filepath.Base(path))
	if l, ok := languages[base]; ok {
		return l
	}
	return languages[filepath.Ext(base)]
}

// languages by whole file name or by extension, both in lower case. The identifiers are those of
// the Language Server Protocol where it has one.
var languages = map[string]string{
	"dockerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile", "go.mod": "go.mod", "go.sum": "go.sum",
	"cmakelists.txt": "cmake", ".bashrc": "shellscript", ".profile": "shellscript", ".gitignore": "ignore",
	".bash": "shellscript", ".bat": "bat", ".c": "c", ".cc": "cpp", ".clj": "clojure", ".cmake": "cmake", ".cpp": "cpp",
	".cs": "csharp", ".css": "css", ".csv": "csv", ".cxx": "cpp", ".dart": "dart", ".diff": "diff", ".ex": "elixir",
	".exs": "elixir", ".erl": "erlang", ".fs": "fsharp", ".go": "go", ".graphql": "graphql", ".groovy": "groovy",
	".h": "c", ".hh": "cpp", ".hpp": "cpp", ".hs": "haskell", ".htm": "html", ".html": "html", ".ini": "ini",
	".java": "java", ".jl": "julia", ".js": "javascript", ".json": "json", ".jsonl": "jsonl", ".jsx": "javascriptreact",
	".kt": "kotlin", ".less": "less", ".lua": "lua", ".m": "objective-c", ".md": "markdown", ".mjs": "javascript",
	".ml": "ocaml", ".nix": "nix", ".patch": "diff", ".php": "php", ".pl": "perl", ".pm": "perl", ".proto": "proto",
	".ps1": "powershell", ".py": "python", ".pyi": "python", ".r": "r", ".rb": "ruby", ".rs": "rust", ".rst": "restructuredtext",
	".sass": "sass", ".scala": "scala", ".scss": "scss", ".sh": "shellscript", ".sql": "sql", ".svelte": "svelte",
	".svg": "xml", ".swift": "swift", ".tex": "latex", ".tf": "terraform", ".toml": "toml", ".ts": "typescript",
	".tsx": "typescriptreact", ".txt": "plaintext", ".vue": "vue", ".xml": "xml", ".yaml": "yaml", ".yml": "yaml",
	".zig": "zig", ".zsh": "shellscript",
}
