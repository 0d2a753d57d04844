package settings

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/daemon/pool"
	"github.com/toold/toold/scheduler/permission"
)

// A Program is a tool that is a program.
type Program struct {
	Name, Description string
	InputSchema       json.RawMessage // as it is written but for its layout; whether it is one is not looked at
	// Command is the program and its arguments. A program that was written with a slash is absolute, any other is to be
	// looked for in PATH.
	Command  []string
	ReadOnly bool
	Timeout  time.Duration // 0: the entry has none
	CacheTTL time.Duration // how long its results may be kept; 0: not at all
	Origin   permission.Origin
}

// A Preset is a choice of built-in tools.
type Preset string

// The presets.
const (
	Full   Preset = "full"   // all
	Simple Preset = "simple" // Read, Edit and Bash
)

// presetOf is the choice of built-in tools. A workspace can only make them fewer.
func presetOf(field *Preset) scalar[string] {
	c := choice(func(v value[string]) { *field = Preset(v.is) }, string(Full), string(Simple))
	parse := c.parse
	c.parse = func(r *reader, k *key, m member) (string, bool) {
		word, ok := parse(r, k, m)
		if ok && r.place.level == workspace && word == string(Full) {
			r.idle(m.line, k.name+` "full"`, "a workspace can only make the tools fewer")
			return "", false
		}
		return word, ok
	}
	return c
}

// parseDeferred takes the name of a tool that can be deferred.
func parseDeferred(word string) (name, expected string) {
	switch {
	case !pool.IsName(word):
		expected = "the name of a tool, or mcp__server__* for all of an MCP server"
	case word == "ToolSearch":
		expected = "another tool than ToolSearch, by which the others are found"
	}
	return word, expected
}

const (
	// maxPrograms is how many one file may name, and maxDescription how long each may be described. Ours: all of it is sent
	// to a model.
	maxPrograms    = 100
	maxDescription = 10_000
	// longestProgram is how long a call of a program may take at most, as of Bash.
	longestProgram = 10 * time.Minute
)

// programName is what model APIs take as a tool's name. What begins with mcp__ is an MCP server's.
var programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// programs are the tools that are programs.
func programs(field *[]Program) entries[Program] {
	name := func(p *Program) string { return p.Name }
	return entries[Program]{
		expected: "a list of programs {...}", most: maxPrograms, what: "tool", identity: name, sorted: name, field: field,
		parse: readProgram,
		place: func(m *merger, _ *key, s *source, p *Program) (ok bool) {
			p.Command, ok = m.command(s, p.Command, p.Command, fmt.Sprintf("the tool %q", p.Name), p.Origin)
			return ok
		},
		line: func(_ *key, p *Program) Line {
			shown := p.Name + ": " + commandText(p.Command)
			if p.ReadOnly {
				shown += ", only reads"
			}
			return Line{keyTools, shown, p.Origin}
		},
	}
}

func readProgram(r *reader, k *key, m member) (Program, bool) {
	p, e := Program{Origin: r.origin(m.line)}, r.entry(k.name+"["+m.key+"]")
	e.fields(&m.value, map[string]func(member){
		"name": func(m member) {
			p.Name = e.word(m)
			if !e.void && (!programName.MatchString(p.Name) || strings.HasPrefix(p.Name, "mcp__")) {
				e.fail(&m.value, m.key, "at most 64 letters, digits, _ and -, with a letter in front, and not begin with mcp__")
			}
		},
		"description": func(m member) {
			if p.Description = e.word(m); len(p.Description) > maxDescription {
				e.fail(&m.value, m.key, "at most "+strconv.Itoa(maxDescription)+" bytes long")
			}
		},
		"inputSchema": func(m member) {
			if m.value.kind != object {
				e.fail(&m.value, m.key, "a JSON Schema {...}")
				return
			}
			p.InputSchema = json.RawMessage(asJSON(m.value.plain()))
		},
		"command": func(m member) { // a list is a program and its arguments, a text a line for sh
			if m.value.kind != text {
				p.Command = e.command(m)
			} else if line := e.word(m); line != "" {
				p.Command = []string{"sh", "-c", line}
			}
		},
		"readOnly": func(m member) { p.ReadOnly = e.truth(m) },
		"timeout": func(m member) {
			p.Timeout = r.duration(&m.value, e.name+".timeout", `a number of seconds or a text like "30s", above 0`, longestProgram, number, text)
		},
		"cacheTtl": func(m member) { p.CacheTTL = e.ttl(m) },
	})
	switch line := m.value.line; {
	case e.void:
	case p.Name == "":
		e.lacks(line, `has no "name"`)
	case p.Description == "":
		e.lacks(line, `has no "description", by which a model knows what it is for`)
	case len(p.Command) == 0:
		e.lacks(line, `has no "command"`)
	case p.CacheTTL > 0 && !p.ReadOnly:
		p.CacheTTL = 0
		r.warn(line, "%s.cacheTtl has no effect: only what reads and nothing else can be kept", e.name)
	}
	return p, !e.void
}
