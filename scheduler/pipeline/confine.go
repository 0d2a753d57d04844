package pipeline

// How the processes of a call are confined: a policy derived from what the call declares, from what settings say and from
// what rules deny. It does not know how a policy is enforced.

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/repo"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/workspace"
)

// Confining is what settings and session say of how processes are confined. It is the same for all calls of a session.
// All paths are absolute and without links.
type Confining struct {
	Runner   *sandbox.Runner
	Off      bool // nothing is confined
	Optional bool // where nothing can confine a process, it runs all the same
	// Write is what may be written beside the roots, Keep what may not be written though it lies in what may be, Hidden
	// what may not be read, and Shown what may be though it lies in what may not.
	Write, Keep, Hidden, Shown []string
	Temp, Cache                string // directories of the session's, and of the roots', for processes alone; they exist
	Network                    sandbox.Network
	UnixSockets                bool
	Limits                     sandbox.Limits
	Filter                     sandbox.Filter
	Git                        *repo.Finder // finds git directories; one for the daemon, since it remembers them
}

// checking is the box for what is asked of programs before anybody has permitted the call: they may read, and no more.
// Nothing hidden is opened for them.
func (c *Call) checking(ctx context.Context, f *permission.Facts) *sandbox.Box {
	before := *f
	before.Accesses = slices.DeleteFunc(slices.Clone(f.Accesses), func(a permission.Access) bool { return a.Hidden != "" })
	p, _ := c.policy(ctx, &before, true)
	return c.box(p, nil)
}

// acting is the box for the call's act.
func (c *Call) acting(ctx context.Context) *sandbox.Box {
	if c.outside(c.facts) {
		return &sandbox.Box{Runner: c.rights.Confining.Runner, Filter: c.rights.Confining.Filter, Set: c.searching()}
	}
	return c.box(c.policy(ctx, c.facts, c.parsed.effects.ReadOnly()))
}

// enclose gives the call the box for its act. The error says that nothing here can confine its processes.
func (c *Call) enclose(ctx context.Context, env *tools.Env) (Confined, error) {
	env.Box = c.acting(ctx)
	if effects := c.parsed.effects; effects.Foreign != "" || !effects.Opaque && len(effects.Commands) == 0 {
		return Confined{}, nil // whether its tool will start a program of its own turns out when it runs
	}
	return c.confinement(env.Box)
}

// confinement says how processes of the box are confined.
func (c *Call) confinement(box *sandbox.Box) (Confined, error) {
	confinement, err := box.Runner.Confinement(box.Policy)
	if err != nil {
		return Confined{}, fault.Failedf("sandbox_unavailable", "The call was not started: %v.", err)
	}
	if confinement.Tier == sandbox.None && len(confinement.NotCovered) == 0 {
		confinement.NotCovered = []string{"It ran without a sandbox: its processes could do what the daemon's user can."}
	}
	if c.overlooked && confinement.Tier != sandbox.None {
		confinement.NotCovered = append(confinement.NotCovered, "Rules keep files from being read, and the root holds too many to find all of them: its processes may read some.")
	}
	if c.overlookedGit && confinement.Tier != sandbox.None {
		confinement.NotCovered = append(confinement.NotCovered, "The root holds too many directories to find every git repository in it: its processes may have left something in some that makes git run programs.")
	}
	return Confined{Tier: confinement.Tier, NotCovered: confinement.NotCovered}, nil
}

// confined adds how the call's processes were confined, and tells the model what that has kept them from.
func (e Ended) confined(by Confined) Ended {
	if e.Outcome == OK {
		by.Denials = slices.DeleteFunc(by.Denials, SandboxDenial.tried)
	}
	e.Confined = by
	for _, d := range by.Denials {
		if e.Outcome != OK || !d.kept() {
			e.Content = append(e.Content[:len(e.Content):len(e.Content)], tools.Block{Text: d.words()})
		}
	}
	return e
}

// outside says whether the call, once permitted, runs without a sandbox.
func (c *Call) outside(f *permission.Facts) bool {
	return c.rights.Confining.Off || f.Unconfined || c.rights.Escape.Excludes(f)
}

// boxed says whether the call's act will be fully confined.
func (c *Call) boxed(f *permission.Facts) bool {
	if !f.Opaque || f.Foreign != "" || c.outside(f) {
		return false
	}
	return c.fully()
}

// searching is the PATH of a call that only reads.
func (c *Call) searching() []string {
	if c.reads.search == "" || !c.parsed.effects.ReadOnly() {
		return nil
	}
	return []string{"PATH=" + c.reads.search}
}

// box is what the call's processes are started with. after is called when one of them has ended; nil: nothing is.
func (c *Call) box(p sandbox.Policy, after func() []sandbox.Denial) *sandbox.Box {
	conf := c.rights.Confining
	b := &sandbox.Box{Runner: conf.Runner, Policy: p, Filter: conf.Filter, Set: c.searching(), After: after}
	if conf.Temp != "" {
		b.Set = append(b.Set, "TMPDIR="+conf.Temp)
	}
	if conf.Cache != "" && !p.Strict {
		b.Set = append(b.Set, cachesIn(conf.Cache)...)
	}
	return b
}

// cachesIn are the variables by which programs keep their caches in dir instead of the user's own: the freedesktop base
// directory specification names the first, the programs' manuals the others.
func cachesIn(dir string) []string {
	return []string{
		"XDG_CACHE_HOME=" + dir, "GOCACHE=" + dir + "/go-build", "npm_config_cache=" + dir + "/npm", "PIP_CACHE_DIR=" + dir + "/pip",
		"CCACHE_DIR=" + dir + "/ccache", "GOLANGCI_LINT_CACHE=" + dir + "/golangci-lint",
	}
}

// nobody is the only host that may be reached where none may: there is none of that name (RFC 2606).
const nobody = "invalid"

// reach is which hosts processes may reach. Where they may reach none they can ask for them all the same, so that what they
// are told, and what is reported, names the host and not a failure to look it up.
func (conf Confining) reach() sandbox.Network {
	n := conf.Network
	if confinement, err := conf.Runner.Confinement(sandbox.Policy{Tier: sandbox.Full}); err != nil || confinement.Tier != sandbox.Full {
		return n // a way out there is a way out for others too
	}
	if len(n.Allowed) == 0 {
		n.Allowed = []string{nobody}
	}
	return n
}

// policy derives the call's, and what is to be done when a process under it has ended. reading: it changes nothing.
func (c *Call) policy(ctx context.Context, f *permission.Facts, reading bool) (p sandbox.Policy, after func() []sandbox.Denial) {
	conf, places := c.rights.Confining, c.rights.Places
	if conf.Off {
		return p, nil
	}
	p = sandbox.Policy{Tier: sandbox.Full, Optional: conf.Optional, Limits: conf.Limits}
	l := layout{policy: &p}
	for _, dir := range conf.Hidden {
		l.put(dir, sandbox.Hidden)
	}
	for _, path := range c.barred(ctx) {
		l.put(path, sandbox.Hidden)
	}
	if reading {
		own := func(a permission.Access) bool { return a.Open && ownTemporary(&a) } // which only the full tier has
		full := c.reads.wide || c.gitElsewhere(f) || l.hides(places.Roots()) ||
			slices.ContainsFunc(c.reads.files, l.covers) || slices.ContainsFunc(f.Accesses, own)
		if !full {
			p.Tier, p.Strict = sandbox.Fast, true
		}
		l.readable(c.reads.files)
		for _, dir := range slices.Concat(places.Roots(), places.Readable()) {
			l.put(dir, sandbox.Read)
		}
	} else {
		conf.Network.Allowed = slices.Concat(conf.Network.Allowed, c.answered(f))
		p.Network, p.UnixSockets = conf.reach(), conf.UnixSockets
		after = l.writable(c, f)
	}
	if conf.Temp != "" {
		l.put(conf.Temp, sandbox.Write)
	}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		closed := a.Open && ownTemporary(a) || a.Mentioned && a.Hidden != "" // what becomes of it there is not known
		if !a.Write && !closed && !isOwnProcess(a.Real) && l.lacks(a.Real) {
			l.put(a.Real, sandbox.Read)
		}
	}
	for _, dir := range conf.Shown {
		l.put(dir, sandbox.Read)
	}
	l.temp(conf)
	return p, after
}

// A layout puts places together. Of two of the same path the later counts.
type layout struct{ policy *sandbox.Policy }

func (l layout) put(path string, access sandbox.Access) {
	i := slices.IndexFunc(l.policy.Places, func(p sandbox.Place) bool { return p.Path == path })
	if i < 0 {
		l.policy.Places = append(l.policy.Places, sandbox.Place{Path: path, Access: access})
		return
	}
	l.policy.Places[i].Access = access
}

// at is what may be done at the path so far.
func (l layout) at(path string) sandbox.Access {
	access, length := sandbox.Read, -1
	for _, p := range l.policy.Places {
		if len(p.Path) > length && workspace.Within(p.Path, path) {
			access, length = p.Access, len(p.Path)
		}
	}
	return access
}

// has says whether a place holds the path that is not hidden.
func (l layout) has(path string) bool {
	return slices.ContainsFunc(l.policy.Places, func(p sandbox.Place) bool { return p.Access != sandbox.Hidden && workspace.Within(p.Path, path) }) &&
		l.at(path) != sandbox.Hidden
}

// covers reports whether the path is hidden so far.
func (l layout) covers(path string) bool { return l.at(path) == sandbox.Hidden }

// readable opens files for reading, but not what is hidden.
func (l layout) readable(paths []string) {
	for _, path := range paths {
		if !l.covers(path) && l.lacks(path) {
			l.put(path, sandbox.Read)
		}
	}
}

// temps are the directories that a process has of its own instead of everybody's.
var temps = []string{"/tmp", "/var/tmp"}

// lacks says whether the path cannot be read without a place of its own. One that is not needed does harm: it stands on what
// the sandbox has put there, and makes the call another cell, with another loopback.
func (l layout) lacks(path string) bool {
	holds := func(dir string) bool { return workspace.Within(dir, path) }
	switch {
	case l.has(path):
		return false
	case l.policy.Tier == sandbox.Full:
		_, err := os.Lstat(path)
		return err == nil && (l.at(path) == sandbox.Hidden || slices.ContainsFunc(temps, holds))
	}
	return !slices.ContainsFunc(sandbox.SystemTrees, holds)
}

// hides says whether something that is there is hidden in one of the directories.
func (l layout) hides(dirs []string) bool {
	return slices.ContainsFunc(l.policy.Places, func(p sandbox.Place) bool {
		_, err := os.Lstat(p.Path)
		return p.Access == sandbox.Hidden && err == nil && slices.ContainsFunc(dirs, func(dir string) bool { return workspace.Within(dir, p.Path) })
	})
}

// writable opens the roots and what else may be written, but for what is protected there. It returns what is to be done when the
// processes have ended.
func (l layout) writable(c *Call, f *permission.Facts) (after func() []sandbox.Denial) {
	places, conf := c.rights.Places, c.rights.Confining
	lifted := map[string]bool{} // what somebody has permitted by its name
	for i := range f.Accesses {
		if a := &f.Accesses[i]; a.Write && !a.Unnamed && !(a.Open && ownTemporary(a)) {
			lifted[a.Real] = true
		}
	}
	free := func(path string) bool { return lifted[path] || slices.Contains(conf.Write, path) }
	roots := slices.Concat(places.Roots(), conf.Write)
	for _, root := range roots {
		if l.at(root) != sandbox.Write { // what is a place of its own cannot be replaced
			l.put(root, sandbox.Write)
		}
		l.protect(root, permission.ProtectedIn(root), func(path string) bool { return free(path) || slices.Contains(c.git.places, path) })
	}
	after = l.repositories(c, f, roots, free)
	for real := range lifted {
		place := openable(real)
		if access := l.at(place); place != "" && access != sandbox.Write && (place == real || access != sandbox.Hidden) { // what is a place of its own cannot be removed
			l.put(place, sandbox.Write)
		}
	}
	for _, p := range slices.Clone(l.policy.Places) {
		for _, root := range roots {
			if p.Access == sandbox.Hidden && workspace.Within(root, p.Path) {
				l.pin(root, p.Path)
			}
		}
	}
	for _, path := range conf.Keep {
		l.put(path, sandbox.Read)
	}
	l.put(conf.Cache, sandbox.Write)
	return after
}

// protect closes the paths below dir that are not free. What lies between stays writable and can no longer be moved out of the way.
func (l layout) protect(dir string, paths []string, free func(path string) bool) {
	for _, path := range paths {
		if free(path) || behindLink(dir, path) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil {
			l.policy.Absent = append(l.policy.Absent, path)
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			continue // where it leads is judged by its own name
		}
		l.pin(dir, path)
		l.put(path, sandbox.Read)
	}
}

// pin keeps the directories between dir and the path where they are: moved, they would take it where nothing guards it.
func (l layout) pin(dir, path string) {
	for between := filepath.Dir(path); between != dir && workspace.Within(dir, between); between = filepath.Dir(between) {
		if !slices.ContainsFunc(l.policy.Places, func(p sandbox.Place) bool { return p.Path == between }) {
			l.put(between, sandbox.Write)
		}
	}
}

// behindLink says that a link leads to the directory of the path, which lies below dir: then it is not the path's.
func behindLink(dir, path string) bool {
	parent := filepath.Dir(path)
	if parent == dir {
		return false
	}
	real, err := filepath.EvalSymlinks(parent)
	return err == nil && real != parent
}

// openable is what has to be writable so that the path can be: itself, or the directory in which it would be made; empty if
// that would open one that the whole system, or a user's whole home, lives by.
func openable(path string) string {
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	for path = filepath.Dir(path); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
	}
	home, _ := os.UserHomeDir()
	if filepath.Dir(path) == "/" || path == home || slices.ContainsFunc(sandbox.SystemTrees, func(tree string) bool { return workspace.Within(tree, path) }) {
		return ""
	}
	return path
}

// temp gives the process the session's temporary directory in the place of everybody's.
func (l layout) temp(conf Confining) {
	if conf.Temp == "" {
		return
	}
	for _, dir := range temps {
		if slices.ContainsFunc(l.policy.Places, func(p sandbox.Place) bool { return p.Path == dir }) {
			continue
		}
		l.policy.Places = append(l.policy.Places, sandbox.Place{Path: dir, Access: sandbox.Write, Source: conf.Temp})
	}
}

// barred are the files in the roots, and those named outside, that a rule keeps from being read.
func (c *Call) barred(ctx context.Context) (paths []string) {
	rules := c.rights.Rules
	bars := c.bars(rules)
	if bars == nil {
		return nil
	}
	c.overlooked = false
	literal, all := rules.UnreadablePaths()
	for _, path := range literal {
		if _, err := os.Lstat(path); err == nil && (bars(path) != "" || bars(filepath.Join(path, "x")) != "") {
			paths = append(paths, path)
		}
	}
	if all {
		return paths
	}
	for _, root := range c.rights.Places.Roots() {
		_, _, sure := c.rights.Places.FindBarred(ctx, root, func(real string) string {
			if real != root && len(paths) <= maxBarred && bars(real) != "" {
				paths = append(paths, real)
			}
			return ""
		})
		c.overlooked = c.overlooked || !sure || len(paths) > maxBarred
	}
	return paths
}

// maxBarred is how many files are hidden one by one. Ours: each costs a mount.
const maxBarred = 500
