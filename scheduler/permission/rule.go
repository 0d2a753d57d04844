// One rule as a settings file has it, with the place where it stands, and its grammar: Tool or Tool(specifier), where what a
// specifier means depends on the tool. A rule that nothing can ever match is refused here, with what was probably meant.

package permission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Origin is where a rule or another setting stands.
type Origin struct {
	File    string // absolute path, or another name of the place for the user
	Line    int    // from 1; 0: not known
	Base    string // the directory that a leading / in a path rule stands for
	Managed bool   // the administrator's, not the user's
}

// String returns file and line as editors take them.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// A List is one of the three lists that rules stand in.
type List uint8

// The lists, in the order in which they are asked: the first that has a match decides.
const (
	DenyList List = iota
	AskList
	AllowList
)

// String returns the list's name in settings files.
func (l List) String() string { return [...]string{"deny", "ask", "allow"}[l] }

// A Rule is one entry of a list, as ParseRule returns it.
type Rule struct {
	List   List
	Text   string // as written, blanks around it taken off
	Origin Origin

	tool      string // may hold *
	specifier string // what stands in the parentheses; empty: nothing, or *
	subject   subject
	pattern   pattern // of a command
	parameter string  // of the input
	value     pattern // of the parameter
	host      string
}

// String names the rule with its place, for messages.
func (r Rule) String() string {
	return fmt.Sprintf("the %s rule %s (%s)", r.List, r.Text, r.Origin)
}

// is reports whether two rules are the same entry of a settings file.
func (r *Rule) is(o *Rule) bool { return r.Text == o.Text && r.Origin == o.Origin }

// Tool returns the name of the tool that the rule is about, or its pattern.
func (r Rule) Tool() string { return r.tool }

// IsUnknownTool reports whether the rule is about a tool that does not exist: it is not among those offered, may not come later,
// and is not another program's. Names with * or _ may be anything.
func (r Rule) IsUnknownTool(offered []string) bool {
	return !strings.ContainsAny(r.tool, "*_") && !slices.Contains(offered, r.tool) && !slices.Contains(wellKnown, r.tool) &&
		!slices.Contains(otherTools, r.tool)
}

// A RuleError is a rule that can never match, with the reason.
type RuleError struct {
	Rule   string
	Origin Origin
	Why    string // a clause
	Meant  string // the rule that was probably meant; empty: unknown
}

// Error returns what is wrong with the rule, its place, and what was probably meant.
func (e *RuleError) Error() string { return e.Origin.String() + ": " + e.Clause() }

// Clause returns what is wrong with the rule and what was probably meant.
func (e *RuleError) Clause() string {
	text := fmt.Sprintf("the rule %q has no effect: %s", e.Rule, e.Why)
	if e.Meant != "" {
		text += fmt.Sprintf("; %s is probably meant", e.Meant)
	}
	return text
}

// ParseRule takes a rule apart. The error is a *RuleError: nothing can ever match it in this list.
func ParseRule(list List, text string, origin Origin) (Rule, error) {
	r := Rule{List: list, Text: strings.TrimSpace(text), Origin: origin}
	if why, meant := r.parse(); why != "" {
		return Rule{}, &RuleError{Rule: r.Text, Origin: origin, Why: why, Meant: meant}
	}
	return r, nil
}

// A subject is what a rule is compared with.
type subject uint8

const (
	wholeTool subject = 1 << iota // every call of the tool
	commands                      // each simple command of a script
	paths                         // each file that is read or written
	hosts                         // each host that is contacted
	parameter                     // one scalar of the input
	memories                      // each file of the tool Memory
)

// How tools share rules: one name stands for all that read, one for all that write.
var (
	readers = []string{"Grep", "Glob", "LS", "LSP"}
	editors = []string{"Write", "MultiEdit", "NotebookEdit", "ApplyPatch"}
	// primary are the fields that rules reach by their specifier, not as parameters.
	primary = []string{"command", "file_path", "path", "notebook_path", "url"}
	// wellKnown are names whose other spellings are surely mistakes.
	wellKnown = []string{
		"ApplyPatch", "Bash", "BashInput", "BashOutput", "Edit", "Glob", "Grep", "KillShell", "LS", "LSP", "Memory", "MultiEdit", "NotebookEdit", "Read", "Shell", "TodoWrite",
		"ToolSearch", "WebFetch", "WebSearch", "Write",
	}
)

// otherTools are names that rules of Claude Code users have and that mean nothing here.
var otherTools = []string{"Agent", "Task", "Skill", "TaskOutput", "TaskStop", "Monitor", "Cd", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "SlashCommand"}

var (
	toolName      = regexp.MustCompile(`^[A-Za-z0-9_*-]+$`)
	literalServer = regexp.MustCompile(`^mcp__[^*]*[^*_]__[^*]*\*`)
	parameterTest = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)\s*:\s*(.*)$`)
)

// parse takes r.Text apart. why is a clause about what makes it impossible to match; meant is the form that would.
func (r *Rule) parse() (why, meant string) {
	name, rest, specified := strings.Cut(r.Text, "(")
	name = strings.TrimSpace(name)
	if specified && !strings.HasSuffix(rest, ")") {
		return "its parenthesis is not closed at the end", r.Text + ")"
	}
	r.tool = name
	if why, meant := r.checkTool(); why != "" {
		return why, meant + strings.TrimPrefix(r.Text, name)
	}
	specifier := strings.TrimSpace(strings.TrimSuffix(rest, ")"))
	switch {
	case specified && specifier == "":
		return "its parentheses are empty", name
	case !specified || specifier == "*":
		r.subject = wholeTool
		return "", ""
	}
	r.specifier = specifier
	return r.specify()
}

func (r *Rule) checkTool() (why, meant string) {
	if !toolName.MatchString(r.tool) {
		return "a tool's name has letters, digits, _ and - alone", ""
	}
	for _, name := range wellKnown {
		if strings.EqualFold(name, r.tool) && name != r.tool {
			return "names of tools are case-sensitive", name
		}
	}
	if r.List == AllowList && strings.Contains(r.tool, "*") && !literalServer.MatchString(r.tool) {
		return "an allow rule may have * only behind a literal server name", "mcp__SERVER__*"
	}
	return "", ""
}

// specify finds out what the specifier is about.
func (r *Rule) specify() (why, meant string) {
	test := parameterTest.FindStringSubmatch(r.specifier)
	switch {
	case r.tool == "Bash":
		return r.specifyCommand(test)
	case r.tool == "WebFetch":
		return r.specifyHost()
	case r.tool == "Memory" && (test == nil || r.List == AllowList):
		return r.specifyMemory()
	case test != nil && slices.Contains(primary, test[1]):
		return "the field " + test[1] + " is not matched as a parameter", r.instead(test[2])
	case (r.tool == "Read" || r.tool == "Edit") && (test == nil || r.List == AllowList):
		return r.specifyPath()
	case slices.Contains(otherTools, r.tool) && (test == nil || r.List == AllowList):
		return "toold has no tool " + r.tool + ", so the rule is for another program", ""
	case test == nil:
		return r.tool + " takes no such specifier", r.instead(r.specifier)
	case r.List == AllowList:
		return "an allow rule cannot test a parameter", r.tool
	}
	r.subject, r.parameter, r.value = parameter, test[1], newPattern(test[2])
	if r.tool == "Read" || r.tool == "Edit" { // a file can have such a name
		r.subject |= paths
	}
	return "", ""
}

// instead is the rule that reaches what a specifier of this tool was meant for.
func (r *Rule) instead(specifier string) string {
	for tool, others := range map[string][]string{"Read": readers, "Edit": editors, "Bash": {"Shell"}} {
		if r.tool == tool || slices.Contains(others, r.tool) {
			return tool + "(" + specifier + ")"
		}
	}
	return r.tool
}

func (r *Rule) specifyCommand(test []string) (why, meant string) {
	r.subject = commands
	if test != nil && slices.Contains(primary, test[1]) && test[2] != "*" {
		return "the field " + test[1] + " is not matched as a parameter", "Bash(" + test[2] + ")"
	}
	if test != nil && r.List != AllowList && !strings.HasSuffix(r.specifier, ":*") {
		r.subject |= parameter
		r.parameter, r.value = test[1], newPattern(test[2])
	}
	r.pattern = newCommandPattern(r.specifier)
	return "", ""
}

func (r *Rule) specifyHost() (why, meant string) {
	host, ok := strings.CutPrefix(r.specifier, "domain:")
	if !ok {
		if _, after, found := strings.Cut(host, "://"); found {
			host = after
		}
		host, _, _ = strings.Cut(host, "/")
		return "WebFetch is matched by domain", "WebFetch(domain:" + host + ")"
	}
	if strings.ContainsAny(host, "/:") {
		return "a domain has neither a scheme, a port nor a path", ""
	}
	r.subject, r.host = hosts, hostName(strings.TrimSpace(host))
	return "", ""
}

func (r *Rule) specifyPath() (why, meant string) {
	switch {
	case strings.HasPrefix(r.specifier, "!"):
		return "a rule cannot be negated", ""
	case strings.ContainsAny(r.specifier, "\n\x00"):
		return "no path has such a character", ""
	case strings.HasPrefix(r.specifier, "../"), r.specifier == "..":
		return "paths are compared without ..", ""
	}
	r.subject = paths
	return "", ""
}
