// Package pool determines which tools a session sees, in three layers, each a plain function of the
// one before. The first is the literal list that the program is built with. Offer decides for each
// tool whether a session has it now, and Assemble sorts the available tools and defers those that
// are too many. It does not know where tools come from, what they do, nor what a session is.
package pool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toold/toold/tools"
)

// A Preset is a choice among the tools that are built in.
type Preset string

// The presets.
const (
	Full   Preset = "full"   // all
	Simple Preset = "simple" // what a model can do everything with
)

// simple are the tools of the preset of that name.
var simple = []string{"Read", "Edit", "Bash"}

// Conditions are what decides which tools a session has.
type Conditions struct {
	Preset Preset // empty: Full
	// Named are the only tools that the client wants; nil: all. An entry may name a server; see
	// Names.
	Named []string
	// Removed returns, as a sentence, the rule that removes a tool of that name; empty: none does.
	// nil: no rule does.
	Removed func(name string) string
	Env     *tools.Env // for Spec.Available
}

// An Entry is one tool with what a session makes of it.
type Entry struct {
	Tool tools.Tool // nil: there is none, and Spec has only the name
	Spec tools.Spec
	// Unavailable is why the session does not have it, as a sentence; empty: it does.
	Unavailable string
	// Forbidden: a rule takes it out.
	Forbidden bool
	// Deferred means that a model gets only the name until the tool is activated. Active means that
	// it was deferred and is activated.
	Deferred, Active bool
	// Unlisted means that the session has the tool, and that no list has it.
	Unlisted bool
}

// Offer returns of each tool whether the session has it. The order is that of the list; behind it
// stand the names of those that the client wants and that do not exist, without a tool.
func Offer(list []tools.Tool, c Conditions) []Entry {
	entries := make([]Entry, 0, len(list))
	for _, tool := range list {
		e := Entry{Tool: tool, Spec: tool.Spec()}
		e.Unlisted = e.Spec.OnDemand && c.Named == nil
		if c.Removed != nil {
			e.Unavailable = c.Removed(e.Spec.Name)
			e.Forbidden = e.Unavailable != ""
		}
		switch {
		case e.Forbidden:
		case c.Named != nil && !named(c.Named, e.Spec.Name):
			e.Unavailable = "The session's options.tools does not name it."
		case e.Spec.Origin == tools.BuiltIn && c.Preset == Simple && !slices.Contains(simple, e.Spec.Name):
			e.Unavailable = "The preset simple in tools.preset of the settings leaves it out."
		case e.Spec.Available != nil:
			e.Unavailable = e.Spec.Available(c.Env)
		}
		entries = append(entries, e)
	}
	return append(entries, missing(entries, c.Named)...)
}

// named reports whether the list names the tool.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool { return Names(entry, name) })
}

// missing are the names of a list that no entry has. Those of MCP servers are left out: their tools
// come and go.
func missing(entries []Entry, list []string) (none []Entry) {
	if len(list) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, e := range entries {
		known[e.Spec.Name] = true
	}
	for _, name := range list {
		if !known[name] && !strings.HasPrefix(name, mcpPrefix) {
			known[name] = true
			none = append(none, Entry{Spec: tools.Spec{Name: name, Origin: tools.Client}, Unavailable: "The session's options.tools names it, but there is no tool of that name."})
		}
	}
	return none
}

// A Pool is the tools of a session at one moment. It is not changed once it is made.
type Pool struct {
	// Entries are all tools, also those that the session does not have: the blocks in the order of
	// their origins, each by name. What comes into a later block changes nothing in an earlier one.
	Entries []Entry
	// Dropped are those whose name another tool has, each with a sentence.
	Dropped []Entry
	// Revision changes when the pool does.
	Revision string
	byName   map[string]*Entry
}

// A Deferral is which tools a pool defers. Without ToolSearch it defers none, since none could be
// activated.
type Deferral struct {
	// Above is the number of tools, up to the end of the block of MCP servers, above which those of
	// MCP servers are deferred, unless they are always loaded. Large definitions have the same
	// effect. Negative: nothing is deferred, for whatever reason.
	Above int
	// Named are tools that are deferred however many there are; see Names.
	Named []string
	// Active are the names of tools that were activated.
	Active []string
}

// Assemble puts entries into one order, and defers tools as d specifies.
func Assemble(entries []Entry, d Deferral) *Pool {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Spec.Origin, b.Spec.Origin), cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	p := &Pool{Entries: make([]Entry, 0, len(sorted)), byName: make(map[string]*Entry, len(sorted))}
	for _, e := range sorted {
		if taken := p.byName[e.Spec.Name]; taken != nil {
			e.Unavailable = fmt.Sprintf("Its name is taken by a tool %s.", whose[taken.Spec.Origin])
			p.Dropped = append(p.Dropped, e)
			continue
		}
		p.Entries = append(p.Entries, e)
		p.byName[e.Spec.Name] = &p.Entries[len(p.Entries)-1] // which has room for all
	}
	if activator := p.byName[activator]; d.Above >= 0 && activator.Has() && activator.Spec.Origin == tools.BuiltIn {
		p.postpone(d)
	}
	p.Revision = revision(p.Entries)
	return p
}

// A Latest assembles pools, and holds the last one that has only built-in tools. Sessions that have
// the same tools share it. Its zero value holds none. It is safe for concurrent use.
type Latest struct{ made atomic.Pointer[assembled] }

// An assembled pool is one with what it was made of.
type assembled struct {
	*Pool
	entries  []Entry
	deferral Deferral
}

// Assemble returns what the function Assemble does. The caller must not change the slices afterwards.
func (l *Latest) Assemble(entries []Entry, d Deferral) *Pool {
	for i := range entries {
		if entries[i].Spec.Origin != tools.BuiltIn {
			return Assemble(entries, d)
		}
	}
	last := l.made.Load()
	if last == nil || !slices.EqualFunc(last.entries, entries, sameBuiltIn) || !last.deferral.equal(d) {
		last = &assembled{Assemble(entries, d), entries, d}
		l.made.Store(last)
	}
	return last.Pool
}

// sameBuiltIn reports whether two entries of built-in tools are equal. The Spec of such a tool does not change.
func sameBuiltIn(a, b Entry) bool {
	return a.Tool == b.Tool && a.Unavailable == b.Unavailable && a.Forbidden == b.Forbidden && a.Unlisted == b.Unlisted
}

func (d Deferral) equal(other Deferral) bool {
	return d.Above == other.Above && slices.Equal(d.Named, other.Named) && slices.Equal(d.Active, other.Active)
}

// activator is the tool by which a model gets those that are deferred.
const activator = "ToolSearch"

var whose = map[tools.Origin]string{
	tools.BuiltIn: "that is built in", tools.Program: "of the settings", tools.MCP: "of an MCP server", tools.Client: "of the client",
}

// maxDefinitions is how many bytes of names, descriptions and schemas are sent at once up to the
// end of the block of MCP servers. The number is our own: a list sends them twice, as tools and as
// definitions, and most gRPC clients accept messages of 4 MiB.
const maxDefinitions = 1 << 20

// postpone defers what is named, and what there is too much of. What comes behind the block of MCP
// servers does not count: it must not change anything in front of it.
func (p *Pool) postpone(d Deferral) {
	count, size := 0, 0
	for _, e := range p.Entries {
		if e.Listed() && e.Spec.Origin <= tools.MCP && !e.namedIn(d) {
			count++
			size += len(e.Spec.Name) + len(e.Spec.Description) + len(e.Spec.InputSchema)
		}
	}
	large := size > maxDefinitions
	for i := range p.Entries {
		e := &p.Entries[i]
		tooMuch := e.Spec.Origin == tools.MCP && (large || count > d.Above && !e.Spec.AlwaysLoad)
		if e.Listed() && (tooMuch || e.namedIn(d)) {
			e.Active = slices.Contains(d.Active, e.Spec.Name)
			e.Deferred = !e.Active
		}
	}
}

// namedIn reports whether the deferral names the tool. That of ToolSearch itself has no effect.
func (e *Entry) namedIn(d Deferral) bool {
	return e.Spec.Name != activator && named(d.Named, e.Spec.Name)
}

// Find returns the tool of exactly that name, whether the session has it or not; nil: there is
// none.
func (p *Pool) Find(name string) *Entry { return p.byName[name] }

// Has reports whether the session has the tool now.
func (e *Entry) Has() bool { return e != nil && e.Unavailable == "" && !e.Deferred }

// Listed reports whether the tool, or at least its name, is in lists.
func (e *Entry) Listed() bool { return e.Unavailable == "" && !e.Unlisted }

// Names returns the names of the tools that are listed whole, in order.
func (p *Pool) Names() (names []string) {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Has() && e.Listed() {
			names = append(names, p.Entries[i].Spec.Name)
		}
	}
	return names
}

// Deferrable returns the tools that can be activated, and those that were, in order.
func (p *Pool) Deferrable() (specs []tools.Spec) {
	for _, e := range p.Entries {
		if e.Deferred || e.Active {
			specs = append(specs, e.Spec)
		}
	}
	return specs
}

// Prompt is a text for a model's system prompt that names what can be activated; empty: nothing
// can.
func (p *Pool) Prompt() string {
	var b strings.Builder
	for _, e := range p.Entries {
		if !e.Deferred {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("Of these tools only the names are listed. To use one, call ToolSearch first: with \"select:NAME\" for tools that you can name, otherwise with words for what you need. It returns their descriptions and schemas, and from then on they can be called.\n")
		}
		b.WriteString("- " + e.Spec.Name + "\n")
	}
	return b.String()
}

// revision identifies entries: it changes when anything that a client receives about them does.
func revision(entries []Entry) string {
	sum := sha256.New()
	var text []byte // used for one entry after the other
	for i := range entries {
		e := &entries[i]
		s := &e.Spec
		text = text[:0]
		for _, part := range []string{s.Name, s.Description, string(s.InputSchema), e.Unavailable} {
			text = append(append(text, part...), 0)
		}
		sum.Write(append(fmt.Append(text, e.Deferred, s.ReadOnly, s.Destructive, s.OpenWorld), 0))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
