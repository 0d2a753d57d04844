// Which tools a name was probably meant for that no tool has: models are trained on other agents'
// tools, whose names have other letters and the same use.

package pool

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/tools/text/nearest"
)

// uses has, for words in names of tools, the built-in tools of that use, the nearest first, behind an
// empty one if the word means little by itself. The words are those of other agents' tools and of the
// programs that do the same.
var uses = map[string][]string{
	"apply": {"Edit"}, "bash": {"Bash"}, "browse": {"WebFetch"}, "browser": {"WebFetch"}, "cat": {"Read"}, "change": {"Edit"}, "cmd": {"Bash"},
	"codebase": {"Grep"}, "command": {"Bash"}, "commands": {"Bash"}, "console": {"Bash"}, "create": {"Write"}, "curl": {"WebFetch"}, "definition": {"LSP"},
	"delete": {"Bash"}, "diagnostics": {"LSP"}, "diff": {"Edit"}, "dir": {"LS"}, "directory": {"LS"}, "download": {"WebFetch"}, "edit": {"Edit", "MultiEdit"},
	"editor": {"Edit"}, "exec": {"Bash"}, "execute": {"Bash"}, "fetch": {"WebFetch"}, "file": {"", "Read"}, "files": {"Glob"}, "find": {"Glob", "Grep"},
	"folder": {"LS"}, "google": {"WebSearch"}, "hover": {"LSP"}, "http": {"WebFetch"}, "insert": {"Edit"}, "internet": {"WebSearch"}, "ipynb": {"NotebookEdit"},
	"jupyter": {"NotebookEdit"}, "kill": {"KillShell"}, "list": {"LS", "Glob"}, "ls": {"LS"}, "modify": {"Edit"}, "move": {"Bash"}, "open": {"Read"},
	"output": {"BashOutput"}, "patch": {"Edit", "MultiEdit"}, "pdf": {"Read"}, "plan": {"TodoWrite"}, "process": {"BashOutput", "KillShell"}, "python": {"Bash"},
	"references": {"LSP"}, "regex": {"Grep"}, "remove": {"Bash"}, "rename": {"Bash"}, "replace": {"Edit", "MultiEdit"}, "rg": {"Grep"}, "ripgrep": {"Grep"},
	"run": {"Bash"}, "save": {"Write"}, "script": {"Bash"}, "search": {"Grep", "WebSearch"}, "sed": {"Edit"}, "shell": {"Bash"}, "show": {"Read"},
	"stop": {"KillShell"}, "str": {"Edit"}, "subprocess": {"Bash"}, "symbol": {"LSP"}, "symbols": {"LSP"}, "tasks": {"TodoWrite"}, "terminal": {"Bash"},
	"terminate": {"KillShell"}, "text": {"", "Grep"}, "todo": {"TodoWrite"}, "todos": {"TodoWrite"}, "tree": {"LS", "Glob"}, "update": {"", "Edit"}, "url": {"WebFetch"},
	"view": {"Read"}, "web": {"WebFetch", "WebSearch"}, "website": {"WebFetch"}, "wget": {"WebFetch"}, "write": {"Write"},
}

// The weights of what a name has in common with a tool. Our own: the tool's whole name counts most, and
// a use more than one word of a longer name.
const (
	wholeName  = 6
	firstUse   = 3
	wordOfName = 2
	otherUse   = 1
)

// maxAsked is how many bytes of a name are compared.
const maxAsked = 100

// Nearest returns the names of at most three tools that the session has: first those of the use that
// the words of name mean, then those whose letters are most like it.
func (p *Pool) Nearest(name string) []string {
	name = name[:min(len(name), maxAsked)]
	asked := words(name)
	names := p.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(closeness(asked, b), closeness(asked, a)), cmp.Compare(nearest.Distance(name, a), nearest.Distance(name, b)))
	})
	return names[:min(3, len(names))]
}

// closeness returns how close the use of a tool is to what the words mean.
func closeness(asked []string, tool string) (sum int) {
	own := words(tool)
	if !slices.ContainsFunc(own, func(word string) bool { return !slices.Contains(asked, word) }) {
		sum = wholeName
	}
	for _, word := range asked {
		at := slices.Index(uses[word], tool)
		switch {
		case at == 0:
			sum += firstUse
		case slices.Contains(own, word):
			sum += wordOfName
		case at > 0:
			sum += otherUse
		}
	}
	return sum
}

// words returns the words of a name such as runInTerminal, run_in_terminal or HTTPGet, in lower case.
func words(name string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	letters := []rune(name)
	for i, r := range letters {
		begins := unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case begins:
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}
