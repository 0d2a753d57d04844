package settings

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// presetSetting is the choice of built-in tools. A workspace can only make them fewer.
var presetSetting = func() scalar[string] {
	c := choice(func(s *Settings, v value[string]) { s.Preset = Preset(v.is) }, string(Full), string(Simple))
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
}()

const (
	defaultDeferAbove = 30
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
var programs = entries[Program]{
	expected: "a list of programs {...}",
	most:     maxPrograms,
	parse: func(r *reader, k *key, m member) (Program, bool) {
		p := programEntry{entry: r.entry(k.name + "[" + m.key + "]")}
		p.out.Origin = r.origin(m.line)
		p.read(&m.value)
		return p.out, !p.void
	},
	place: func(m *merger, _ *key, s *source, p *Program) bool {
		command, why := m.command(s, p.Command)
		if why != "" {
			m.warn(p.Origin, "the tool %q has no effect: of its program %q, %s.", p.Name, shortened(p.Command[0]), why)
		}
		p.Command = command
		return why == ""
	},
	hidden: func(m *merger, p *Program, by, hidden *source) {
		if by == hidden || by.place.level == workspace && by.place.base != hidden.place.base {
			m.warn(p.Origin, "the tool %q has no effect: the one of %s is used instead.", p.Name, by.place.file)
		}
	},
	identity: func(p *Program) string { return p.Name },
	sorted:   true,
	line: func(_ *key, p *Program) Line {
		shown := p.Name + ": " + commandText(p.Command)
		if p.ReadOnly {
			shown += ", only reads"
		}
		return Line{keyTools, shown, p.Origin}
	},
	field: func(s *Settings) *[]Program { return &s.Programs },
}

// A programEntry is a program while it is read.
type programEntry struct {
	entry
	out Program
}

var programKeys = map[string]func(*programEntry, member){
	"name":        (*programEntry).named,
	"description": (*programEntry).description,
	"inputSchema": (*programEntry).schema,
	"command":     (*programEntry).run,
	"readOnly":    func(p *programEntry, m member) { p.out.ReadOnly = p.truth(m) },
	"timeout":     (*programEntry).timeout,
	"cacheTtl":    func(p *programEntry, m member) { p.out.CacheTTL = p.ttl(m) },
}

func (p *programEntry) read(n *node) {
	for _, m := range p.known(n, slices.Sorted(maps.Keys(programKeys))) {
		programKeys[m.key](p, m)
	}
	switch {
	case p.void:
	case p.out.Name == "":
		p.lacks(n.line, `has no "name"`)
	case p.out.Description == "":
		p.lacks(n.line, `has no "description", by which a model knows what it is for`)
	case len(p.out.Command) == 0:
		p.lacks(n.line, `has no "command"`)
	case p.out.CacheTTL > 0 && !p.out.ReadOnly:
		p.out.CacheTTL = 0
		p.reader.warn(n.line, "%s.cacheTtl has no effect: only what reads and nothing else can be kept", p.name)
	}
}

func (p *programEntry) named(m member) {
	p.out.Name = p.word(m)
	if !p.void && (!programName.MatchString(p.out.Name) || strings.HasPrefix(p.out.Name, "mcp__")) {
		p.fail(&m.value, m.key, "at most 64 letters, digits, _ and -, with a letter in front, and not begin with mcp__")
	}
}

func (p *programEntry) description(m member) {
	if p.out.Description = p.word(m); len(p.out.Description) > maxDescription {
		p.fail(&m.value, m.key, "at most "+strconv.Itoa(maxDescription)+" bytes long")
	}
}

func (p *programEntry) schema(m member) {
	if m.value.kind != object {
		p.fail(&m.value, m.key, "a JSON Schema {...}")
		return
	}
	p.out.InputSchema = json.RawMessage(asJSON(m.value.plain()))
}

// run reads the command: a list is a program and its arguments, a text a line for sh.
func (p *programEntry) run(m member) {
	if m.value.kind != text {
		p.out.Command = p.command(m)
		return
	}
	if line := p.word(m); line != "" {
		p.out.Command = []string{"sh", "-c", line}
	}
}

func (p *programEntry) timeout(m member) {
	d, ok := durationOf(&m.value)
	switch {
	case !ok || d <= 0:
		p.reader.wrong(&m.value, p.name+".timeout", `a number of seconds or a text like "30s", above 0`)
	case d > longestProgram:
		p.reader.warn(m.line, "%s.timeout is %v, but at most %v; that is what it gets", p.name, d, longestProgram)
		p.out.Timeout = longestProgram
	default:
		p.out.Timeout = d
	}
}
