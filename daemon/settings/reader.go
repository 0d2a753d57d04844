package settings

import (
	"fmt"
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

var levelNames = [...]string{managed: "managed file", session: "session", workspace: "workspace", user: "user's file"}

// A place is a settings file, or the session's text, with its scope.
type place struct {
	file   string
	base   string // see permission.Origin
	level  level
	claude bool // Claude Code's own: most of its keys are for that program only
	// servers: it is a .mcp.json, which holds MCP servers and nothing else.
	servers bool
}

// facts are the values of one file. They are not changed once they are made.
type facts struct {
	values   map[string]any // by the names of keys, as their settings read them
	warnings []Warning
}

// flag returns what the file sets a boolean to; nil: nothing.
func (f *facts) flag(name string) *value[bool] {
	v, _ := f.values[name].(*value[bool])
	return v
}

func isOn(v *value[bool]) bool { return v != nil && v.is }

const (
	maxWarnings  = 50     // of one file; a person with more looks at the first ones first
	maxRuleBytes = 10_000 // longer than any command that a rule is asked about
)

// A reader takes one file's values out of its document.
type reader struct {
	place   place
	facts   facts
	aliases []func()    // read the keys that have another name
	hooks   []hook.Hook // that are read
	unshown int         // warnings above maxWarnings
}

// readFacts returns the values of a file. A value that makes no sense is left out with a warning, and the rest counts. The
// error is a *FileError: the file is not JSON.
func readFacts(p place, data []byte) (*facts, error) {
	root, err := parseDocument(p.file, data)
	if err != nil {
		return nil, err
	}
	r := reader{place: p, facts: facts{values: map[string]any{}}}
	if p.servers {
		r.serversOf(root)
	} else {
		r.section("", root)
	}
	for _, read := range r.aliases {
		read()
	}
	if r.unshown > 0 {
		r.facts.warnings = append(r.facts.warnings, warningAt(permission.Origin{File: p.file}, "there is more, %d in all", maxWarnings+r.unshown))
	}
	return &r.facts, nil
}

func (r *reader) origin(line int) permission.Origin {
	return permission.Origin{File: r.place.file, Line: line, Base: r.place.base, Managed: r.place.level == managed}
}

func (r *reader) warn(line int, format string, values ...any) {
	r.add(warningAt(r.origin(line), format, values...))
}

func (r *reader) add(w Warning) {
	if len(r.facts.warnings) == maxWarnings {
		r.unshown++
		return
	}
	r.facts.warnings = append(r.facts.warnings, w)
}

// wrong reports a value that makes no sense.
func (r *reader) wrong(n *node, name, expected string) {
	r.warn(n.line, "%s is %s, but must be %s; it has no effect", name, n, expected)
}

// idle reports a value that does not count in this file.
func (r *reader) idle(line int, name, why string) {
	r.warn(line, "%s has no effect here: %s", name, why)
}

// unknown reports a name that means nothing. Claude Code's files have keys, events and parts of hooks that are for that program
// only: there one is reported only if a similar name is probably meant.
func (r *reader) unknown(m member, within string, known []string) {
	if r.unshown > 0 { // what is not shown need not be guessed
		r.unshown++
		return
	}
	hint := ""
	if near := meant(m.key, known); near != "" {
		hint = fmt.Sprintf("; %q is probably meant", near)
	} else if r.place.claude && (within == "" || within == "hooks.") {
		return
	}
	r.warn(m.line, "%q is not known and has no effect%s", shortened(within+m.key), hint)
}

// members returns the members of an object that count. name is the object's, with a dot behind it.
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
			r.warn(m.line, "%q is here again further down; this one has no effect", shortened(name+m.key))
			continue
		}
		out = append(out, m)
	}
	return out
}

// flag reads true or false.
func (r *reader) flag(n *node, name string) (on, ok bool) {
	if n.kind != boolean {
		r.wrong(n, name, "true or false")
	}
	return n.word == "true", n.kind == boolean
}
