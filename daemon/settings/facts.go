// What one file says, as typed values. A value that makes no sense is left out with a warning, and the rest counts. It
// does not know the other files: what a file may say in view of them is merge.go's.

package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// A level is whose a file is. The order is that of precedence.
type level uint8

const (
	managed level = iota
	session
	workspace
	user
)

// A place is a settings file, or the session's text, and what it stands for.
type place struct {
	file   string
	base   string // see permission.Origin
	level  level
	claude bool // Claude Code's own: what only it understands is no news to anybody
	// servers: it is a .mcp.json, which holds MCP servers and nothing else.
	servers bool
}

// A flag is true or false, with its place.
type flag struct {
	on     bool
	origin permission.Origin
}

// The names of what is read in one place and spoken of in another.
const (
	keyMode           = "permissions.defaultMode"
	keyDirectories    = "permissions.additionalDirectories"
	keyPublic         = "permissions.publicDirectories"
	keyBypass         = "disableBypassPermissionsMode"
	keyNoHooks        = "disableAllHooks"
	keyManagedHooks   = "allowManagedHooksOnly"
	keyManagedRules   = "allowManagedPermissionRulesOnly"
	keyHookURLs       = "allowedHttpHookUrls"
	keyHookVariables  = "httpHookAllowedEnvVars"
	keyImport         = "importClaudeSettings"
	managedFilesAlone = "it counts in a managed file alone"
)

// facts is what one file says. It is not changed once it is made.
type facts struct {
	rules         []permission.Rule
	mode          *Mode
	bypass        *permission.Origin
	directories   []Entry // as written
	public        []Entry // as written; nil: not there
	hooks         []hook.Hook
	urls          []Entry // nil: not there
	hookVariables []Entry // nil: not there
	env           []Variable
	limits        []limit
	sync          *journalSync
	sandbox       confinement
	redactions    []Redaction
	redactHooks   *flag
	search        *WebSearch
	noHooks       *flag
	managedHooks  *flag
	managedRules  *flag
	claude        *flag
	servers       []MCPServer
	approvals     approvals
	languages     []LanguageServer
	diagnostics   *flag
	programs      []Program
	preset        *preset
	deferAbove    *deferral
	rates         []Rate
	warnings      []string
}

const (
	maxWarnings  = 50     // of one file; who has more looks at the first ones first
	maxRuleBytes = 10_000 // longer than any command that a rule is asked about
)

// A reader takes one file's values out of its document.
type reader struct {
	place  place
	facts  facts
	unsaid int // warnings above maxWarnings
}

// readFacts gives what a file says. The error is a *FileError: it says nothing, since it is not JSON.
func readFacts(p place, data []byte) (*facts, error) {
	root, err := parseDocument(p.file, data)
	if err != nil {
		return nil, err
	}
	r := reader{place: p}
	if p.servers {
		r.serversOf(root)
	} else {
		r.settings(root)
	}
	if r.unsaid > 0 {
		r.facts.warnings = append(r.facts.warnings, fmt.Sprintf("%s: there is more, %d in all", p.file, maxWarnings+r.unsaid))
	}
	return &r.facts, nil
}

// settings reads the whole of a settings file.
func (r *reader) settings(root *node) {
	var idle []string
	for _, m := range r.members(root, "") {
		read, known := topKeys[m.key]
		switch {
		case known:
			read(r, m)
		case slices.Contains(claudeKeys, m.key):
			idle = append(idle, m.key)
		default:
			r.unknown(m, "", topNames)
		}
	}
	if len(idle) > 0 && !r.place.claude {
		r.warn(0, "these settings of Claude Code have no meaning here: %s", strings.Join(idle, ", "))
	}
}

func (r *reader) origin(line int) permission.Origin {
	return permission.Origin{File: r.place.file, Line: line, Base: r.place.base, Managed: r.place.level == managed}
}

func (r *reader) warn(line int, format string, values ...any) {
	r.report(r.origin(line).String() + ": " + fmt.Sprintf(format, values...))
}

func (r *reader) report(warning string) {
	if len(r.facts.warnings) == maxWarnings {
		r.unsaid++
		return
	}
	r.facts.warnings = append(r.facts.warnings, warning)
}

// wrong reports a value that makes no sense.
func (r *reader) wrong(n *node, name, expected string) {
	r.warn(n.line, "%s is %s, but must be %s; it has no effect", name, n, expected)
}

// idle reports a value that does not count where it stands.
func (r *reader) idle(line int, name, why string) {
	r.warn(line, "%s has no effect here: %s", name, why)
}

func (r *reader) unknown(m member, within string, known []string) {
	if r.unsaid > 0 { // what is not shown need not be guessed
		r.unsaid++
		return
	}
	hint := ""
	if near := meant(m.key, known); near != "" {
		hint = fmt.Sprintf("; %q is probably meant", near)
	}
	r.warn(m.line, "%q is not known and has no effect%s", shortened(within+m.key), hint)
}

// members gives the members of an object that count. name is the object's, with a dot behind it.
func (r *reader) members(n *node, name string) []member {
	if n.kind != object {
		r.wrong(n, strings.TrimSuffix(name, "."), "an object {...}")
		return nil
	}
	count := map[string]int{}
	for _, m := range n.members {
		count[m.key]++
	}
	var out []member
	for _, m := range n.members {
		if count[m.key]--; count[m.key] > 0 {
			r.warn(m.line, "%q stands here again further down; this one has no effect", shortened(name+m.key))
			continue
		}
		out = append(out, m)
	}
	return out
}

// texts gives the texts of a list. nil: there is no list.
func (r *reader) texts(n *node, name string) []node {
	if n.kind != list {
		r.wrong(n, name, "a list of texts")
		return nil
	}
	out := []node{}
	for i := range n.items {
		if item := &n.items[i]; item.kind != text {
			r.wrong(item, "an entry of "+name, "a text")
		} else {
			out = append(out, *item)
		}
	}
	return out
}

// entries gives the texts of a list with their places. nil: there is no list.
func (r *reader) entries(n *node, name string) []Entry {
	texts := r.texts(n, name)
	if texts == nil {
		return nil
	}
	out := make([]Entry, 0, len(texts))
	for _, t := range texts {
		out = append(out, Entry{Path: t.word, Origin: r.origin(t.line)})
	}
	return out
}

func (r *reader) flag(n *node, name string) *flag {
	if n.kind != boolean {
		r.wrong(n, name, "true or false")
		return nil
	}
	return &flag{n.word == "true", r.origin(n.line)}
}

// managedFlag reads a flag that only the administrator may set.
func (r *reader) managedFlag(n *node, name string) *flag {
	if r.place.level != managed {
		r.idle(n.line, name, managedFilesAlone)
		return nil
	}
	return r.flag(n, name)
}
