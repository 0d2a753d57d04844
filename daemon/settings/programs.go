// The tools that a settings file names: programs of anybody's, and how the pool is put together. What a schema means, and how a
// program is run, is not known here.

package settings

import (
	"cmp"
	"encoding/json"
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
	Timeout  time.Duration // 0: the entry says nothing
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

type preset struct {
	word   Preset
	origin permission.Origin
}

type deferral struct {
	above  int
	origin permission.Origin
}

const (
	keyTools          = "tools"
	keyPrograms       = "tools.programs"
	keyPreset         = "tools.preset"
	keyDeferAbove     = "tools.deferAbove"
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

func (r *reader) tools(m member) {
	if m.value.kind == list {
		r.programs(&m.value, keyTools)
		return
	}
	if m.value.kind != object {
		r.wrong(&m.value, keyTools, "a list of programs, or an object {...}")
		return
	}
	for _, m := range r.members(&m.value, keyTools+".") {
		switch keyTools + "." + m.key {
		case keyPrograms:
			r.programs(&m.value, keyPrograms)
		case keyPreset:
			r.presetNamed(m)
		case keyDeferAbove:
			above, err := strconv.Atoi(m.value.word)
			if m.value.kind != number || err != nil || above < 0 {
				r.wrong(&m.value, keyDeferAbove, "a whole number of at least 0")
				continue
			}
			r.facts.deferAbove = &deferral{above, r.origin(m.value.line)}
		default:
			r.unknown(m, keyTools+".", []string{"programs", "preset", "deferAbove"})
		}
	}
}

func (r *reader) presetNamed(m member) {
	word := Preset(m.value.word)
	if m.value.kind != text || word != Full && word != Simple {
		r.wrong(&m.value, keyPreset, `"full" or "simple"`)
		return
	}
	if word == Full && r.place.level == workspace {
		r.idle(m.line, keyPreset+` "full"`, "a workspace can only make the tools fewer")
		return
	}
	r.facts.preset = &preset{word, r.origin(m.value.line)}
}

func (r *reader) programs(n *node, key string) {
	if n.kind != list {
		r.wrong(n, key, "a list of programs {...}")
		return
	}
	for i := range n.items {
		if i == maxPrograms {
			r.warn(n.items[i].line, "%s names more than %d programs; the rest has no effect", key, maxPrograms)
			return
		}
		item := &n.items[i]
		p := programEntry{entry: r.entry(key + "[" + strconv.Itoa(i) + "]")}
		p.out.Origin = r.origin(item.line)
		if p.read(item); !p.void {
			r.facts.programs = append(r.facts.programs, p.out)
		}
	}
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
	members := p.known(n, []string{"name", "description", "inputSchema", "command", "readOnly", "timeout", "cacheTtl"})
	for _, m := range members {
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
	var b strings.Builder
	m.value.canonical(&b)
	p.out.InputSchema = json.RawMessage(b.String())
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
	d, ok := span(&m.value)
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

// programs merges the lists, and the two scalars. Of programs of one name the highest file's whole entry counts.
func (m *merger) programs() {
	taken := map[string]*source{}
	for i := range m.sources {
		s := &m.sources[i]
		if !s.trusted {
			if f := s.facts; len(f.programs) > 0 || f.preset != nil || f.deferAbove != nil {
				m.lost(s, keyTools)
			}
			continue
		}
		for _, said := range s.facts.programs {
			if m.program(s, said, taken[said.Name]) {
				taken[said.Name] = s
			}
		}
	}
	slices.SortFunc(m.out.Programs, func(a, b Program) int { return cmp.Compare(a.Name, b.Name) })
	m.preset()
}

// program adds a program unless one of that name is there already, of higher.
func (m *merger) program(s *source, said Program, higher *source) (added bool) {
	if higher != nil {
		if higher.place.level == workspace && higher.place.base != s.place.base || higher.place == s.place {
			m.warn("%s: the tool %q has no effect: the one of %s stands in its place.", said.Origin, said.Name, higher.place.file)
		}
		return false
	}
	command, why := m.command(s, said.Command)
	if why != "" {
		m.warn("%s: the tool %q has no effect: of its program %q, %s.", said.Origin, said.Name, shortened(said.Command[0]), why)
		return false
	}
	said.Command = command
	m.out.Programs = append(m.out.Programs, said)
	return true
}

// preset takes the highest file's of each scalar.
func (m *merger) preset() {
	var which *preset
	var above *deferral
	for i := range m.sources {
		if s := &m.sources[i]; s.trusted {
			which, above = cmp.Or(which, s.facts.preset), cmp.Or(above, s.facts.deferAbove)
		}
	}
	if which != nil {
		m.out.Preset = which.word
		m.out.flags = append(m.out.flags, Line{keyPreset, string(which.word), which.origin})
	}
	if above != nil {
		m.out.DeferAbove = above.above
		m.out.flags = append(m.out.flags, Line{keyDeferAbove, strconv.Itoa(above.above), above.origin})
	}
}

// programLines gives the programs, one a line.
func (s *Settings) programLines() []Line {
	var out []Line
	for _, p := range s.Programs {
		text := p.Name + ": " + commandText(p.Command)
		if p.ReadOnly {
			text += ", only reads"
		}
		out = append(out, Line{keyTools, text, p.Origin})
	}
	return out
}
