// From what an action declares to what a verdict is derived from: names are resolved, places judged, and the call's view
// of the files is cut to what it has declared.

package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/shell/damage"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// look checks the declared effects against the present state, and sets the call's view of the
// files.
func (c *Call) look(ctx context.Context, env *tools.Env) (*permission.Facts, error) {
	rules, effects := c.rights.Rules, c.parsed.effects
	c.environ = env.Environ
	if len(effects.Memory) == 0 {
		env.Memory = memstore.Store{}
	}
	f := c.declaredFacts(env.Dir)
	places, home := c.rights.located(f, env), repo.Getenv(env.Environ, "HOME")
	s := scene{
		Rights: &c.rights, f: f, unmounted: c.rights.unmounted(f), dir: env.Dir, home: home, environ: env.Environ,
		steered: slices.ContainsFunc(effects.Commands, shell.Command.SteersPatterns),
	}
	f.Patterns = s.patterns(effects.Commands)
	grant := workspace.Grant{Call: c.Key, Dir: env.Dir, ReadDenied: c.deniesRead(rules)}
	for _, path := range effects.Reads {
		if path.By > 0 && path.Unnamed && !effects.Commands[path.By-1].ReadOnly && !(effects.Commands[path.By-1].Vague && rules.AboutReading()) {
			continue // a program that may do anything may read anything: permission to run it covers that
		}
		if len(effects.Commands) > 0 && isOwnProcess(path.Name) {
			f.Accesses = append(f.Accesses, permission.Access{Named: path.Name, Real: path.Name, Inside: true, Names: path.Names, By: path.By, Part: path.Part})
			continue
		}
		real, err := s.add(ctx, path, false)
		if err != nil {
			return nil, err
		}
		grant.Reads = append(grant.Reads, readable(path, real))
	}
	s.shown(ctx)
	var written []workspace.Path
	var names []string
	for _, path := range effects.Writes {
		names = append(names, path.Name)
		real, err := s.add(ctx, path, true)
		if err != nil {
			return nil, err
		}
		grant.Writes = append(grant.Writes, workspace.Grantee{Real: real.Real, Tree: path.Tree})
		written = append(written, real)
	}
	grant.Changes = append(declared(f, written), s.guessed(effects.Commands)...)
	c.git = c.rights.gitChanges(f)
	s.gitWorks(ctx)
	if err := s.worksOutside(ctx); err != nil {
		return nil, err
	}
	f.Critical = damage.Find(effects.Commands, names, damage.Around{Dir: env.Dir, Home: home, Roots: places.Roots(), Environ: env.Environ})
	f.Unconfined = f.Unconfined && !c.rights.Confining.Off && !c.rights.Escape.Excludes(f) // else permission to leave is not asked for
	if err := c.reach(f); err != nil {
		return nil, err
	}
	c.rights.open(f)
	f.Boxed = f.Opaque && f.External == "" && !c.rights.outside(f) && c.rights.Confining.fully()
	c.files.Release()
	c.files = places.View(grant, c.rights.ReadState)
	c.reads = c.reader(f, env)
	env.Programs = c.reads.programs
	env.Files = c.files
	env.Box = c.checking(ctx, f)
	return f, nil
}

// readable is what a view lets be read of a path that was resolved. A file that is there is opened as it
// was resolved.
func readable(path tools.Path, real workspace.Path) workspace.Grantee {
	g := workspace.Grantee{Real: real.Real, Tree: path.Tree}
	if !path.Entry && !path.Literal && real.Exists {
		g.Name, g.Path = path.Name, real
	}
	return g
}

// declaredFacts returns the facts that need no look at the present state.
func (c *Call) declaredFacts(dir string) *permission.Facts {
	effects := c.parsed.effects
	f := &permission.Facts{
		Tool: c.Name, Opinions: c.opinions, Commands: effects.Commands, Hosts: effects.Hosts, Memory: effects.Memory, Opaque: effects.Opaque, External: effects.External,
		Reason: effects.Reason, Unknown: effects.Unknown, Dir: dir, Unconfined: effects.Unconfined,
	}
	if c.rights.Rules.AboutParameters() {
		f.Input = scalars(c.parsed.input)
	}
	return f
}

// touched is a digest of what a call would reach: a yes is for that, however it is named.
func touched(f *permission.Facts) string {
	var b strings.Builder
	if len(f.Commands) > 0 {
		fmt.Fprintf(&b, "%q", f.Dir)
	}
	for _, a := range f.Accesses {
		fmt.Fprintf(&b, "%q%t%t%q%q", a.OnDisk(), a.Write, a.Tree, a.Opens, a.Leaves)
	}
	for _, touch := range f.Memory {
		fmt.Fprintf(&b, "%q%t", touch.Path, touch.Write)
	}
	return DigestOf(b.String())
}

// A scene is where declared paths are looked up.
type scene struct {
	*Rights
	f       *permission.Facts // those that were found
	dir     string
	home    string   // of the user; empty: not known
	environ []string // what commands would see
	// unmounted: nothing can be put in the place of the machine's directories for temporary files.
	unmounted bool
	// steered: what a pattern stands for may be changed by the script itself.
	steered bool
}

// add resolves one declared path and notes it among the facts.
func (s scene) add(ctx context.Context, path tools.Path, write bool) (workspace.Path, error) {
	real, err := resolve(s.Places, s.dir, path)
	if err != nil {
		return real, err
	}
	place := s.Places.Place(real.Real)
	if s.unmounted && real.Mapped {
		return real, unmountedFault(real)
	}
	if place == workspace.Hidden {
		return real, fault.Deniedf("hidden_path", "%s belongs to the daemon itself and is never opened for a tool.", real.Shown())
	}
	a := permission.Access{
		Named: real.Named, Real: real.Seen, Disk: real.Real, Missing: real.Missing, Write: write, Tree: path.Tree, Names: path.Names, Unnamed: path.Unnamed, By: path.By, Part: path.Part, Manner: path.Manner,
		Scratch: place == workspace.Scratch, Dir: real.IsDir(),
		Inside: place == workspace.InRoot || place == workspace.Scratch || !write && (place == workspace.Readable || place == workspace.Public),
	}
	if write {
		a.Runs = s.Confining.Git.Runs(real.Real, s.Anchors.Home)
	}
	var command *shell.Command
	if path.By > 0 {
		command = &s.f.Commands[path.By-1]
	}
	a.Below = s.below(ctx, &a, command)
	s.f.Accesses = append(s.f.Accesses, a)
	return real, nil
}

// resolve returns where a declared path leads.
func resolve(places *workspace.Workspace, dir string, path tools.Path) (workspace.Path, error) {
	switch {
	case path.Literal:
		return places.Literal(dir, path.Name)
	case path.Entry:
		return places.ResolveEntry(dir, path.Name)
	}
	return places.Resolve(dir, path.Name)
}

// deniesRead keeps the call's own searches from files that a rule denies reading, or asks about and has not been asked.
func (c *Call) deniesRead(rules *permission.Rules) func(real string) string {
	if !rules.AboutReading() {
		return nil
	}
	places := c.rights.Places
	return func(real string) string {
		real = places.Seen(real)
		asked, _ := c.asked.Load().([]permission.Reason)
		rule := rules.DeniesRead(real, asked)
		if rule == nil {
			return ""
		}
		verb := map[permission.List]string{permission.DenyList: "denies reading", permission.AskList: "asks before reading"}[rule.List]
		return fmt.Sprintf("The rule %s in %s %s %s.", rule.Text, rule.Origin, verb, real)
	}
}

// scalars returns the texts, numbers and truth values at the top level of an input, as text.
func scalars(input string) map[string]string {
	fields, found := map[string]any{}, map[string]string{}
	from := json.NewDecoder(strings.NewReader(input))
	from.UseNumber()
	if from.Decode(&fields) != nil {
		return nil
	}
	for name, value := range fields {
		switch value.(type) {
		case string, json.Number, bool:
			found[name] = fmt.Sprint(value)
		}
	}
	return found
}
