// The confinement of processes, those of a call and those that serve a session for longer: a policy derived from the call's
// declaration, from settings, and from rules that deny.

package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// Confining is the settings of the session about confinement. It is the same for all calls of a
// session. All paths are absolute and without links.
type Confining struct {
	Runner   *sandbox.Runner
	Off      bool // nothing is confined
	Optional bool // where nothing can confine a process, it runs all the same
	// Write is what may be written beside the roots, Keep what may not be written though it lies in what may be, Hidden
	// what may not be read, and Shown what may be though it lies in what may not.
	Write, Keep, Hidden, Shown []string
	Session                    string // which network processes are in
	Caches                     []Cache
	// Temps are the session's directories for temporary files. Those of its own exist.
	Temps []workspace.Temporary
	// Programs are directories of PATH below home, which are protected in the roots as what runs by itself is.
	Programs []string
	Network  sandbox.Network
	// HostsManaged: only the administrator decides which hosts processes may reach, so nothing is asked.
	HostsManaged bool
	UnixSockets  bool
	Limits       sandbox.Limits
	Filter       sandbox.Filter
	Git          *repo.Finder // finds git directories; one for the daemon, since it remembers them
}

// checking returns the box for programs that run before the call is permitted: they may only read.
// Nothing hidden is opened for them.
func (c *Call) checking(ctx context.Context, f *permission.Facts) *sandbox.Box {
	return c.box(ctx, func() (sandbox.Policy, *gitWatch) {
		before := *f
		before.Accesses = slices.DeleteFunc(slices.Clone(f.Accesses), func(a permission.Access) bool { return a.Hidden != "" })
		return c.policy(ctx, &before, true)
	})
}

// acting is the box for the call's act.
func (c *Call) acting(ctx context.Context) *sandbox.Box {
	if c.rights.outside(c.facts) {
		return &sandbox.Box{Runner: c.rights.Confining.Runner, Filter: c.rights.Confining.Filter}
	}
	facts, reading := c.facts, c.ReadOnly()
	return c.box(ctx, func() (sandbox.Policy, *gitWatch) { return c.policy(ctx, facts, reading) })
}

// enclose sets the call's box for its action. The error means that nothing here can confine its
// processes. A call that declares no process gets its policy when its tool starts one all the same.
func (c *Call) enclose(ctx context.Context, env *tools.Env) (Confined, error) {
	env.Box = c.acting(ctx)
	if effects := c.parsed.effects; effects.External != "" || !effects.Opaque && len(effects.Commands) == 0 {
		return Confined{}, nil
	}
	return c.confinement(env.Box)
}

// confinement returns how processes of the box are confined.
func (c *Call) confinement(box *sandbox.Box) (Confined, error) {
	confinement, err := box.Runner.Confinement(box.Ready().Policy)
	if err != nil {
		return Confined{}, fault.Failedf("sandbox_unavailable", "The call was not started: %v.", err)
	}
	confined := Confined{Tier: confinement.Tier, NotCovered: confinement.NotCovered}
	note := func(holds bool, text string) {
		if holds {
			confined.NotCovered = append(confined.NotCovered, text)
		}
	}
	free := confined.Tier == sandbox.None
	note(free && len(confined.NotCovered) == 0, "It ran without a sandbox: its processes could do what the daemon's user can.")
	note(c.overlooked && !free, "Rules keep files from being read, and the root holds too many to find all of them: its processes may read some.")
	note(c.overlookedGit && !free, "The root holds too many directories to find every git repository in it: its processes may have left something in some that makes git run programs.")
	return confined, nil
}

// confined adds to the result how the call's processes were confined, and what the sandbox denied
// them. file is the user's settings file.
func (e Ended) confined(by Confined, file string) Ended {
	if e.Outcome == OK {
		by.Denials = slices.DeleteFunc(by.Denials, SandboxDenial.tried)
	}
	e.Confined = by
	for _, d := range by.Denials {
		if e.Outcome != OK || !d.kept() {
			e.add(d.words(file))
		}
	}
	return e
}

// outside reports whether the call, once permitted, runs without a sandbox.
func (r *Rights) outside(f *permission.Facts) bool {
	return r.Confining.Off || f.Unconfined || f.Leaves() || r.Escape.Excludes(f)
}

// shut is a policy that opens nothing.
var shut = sandbox.Policy{Tier: sandbox.Fast, Strict: true}

// box is what the call's processes are started with. derive returns its policy, and what watches over what they leave in git
// directories; nil: nothing does. It is called when the first process starts or the policy is asked for. If ctx ends meanwhile,
// not all that is to be hidden may have been found, and nothing is opened.
func (c *Call) box(ctx context.Context, derive func() (sandbox.Policy, *gitWatch)) *sandbox.Box {
	conf := &c.rights.Confining
	return &sandbox.Box{Runner: conf.Runner, Policy: shut, Filter: conf.Filter, Fill: func(b *sandbox.Box) {
		p, git := derive()
		if ctx.Err() != nil {
			p, git = shut, nil
		}
		b.Policy, b.Set = p, slices.Concat(c.rights.tempDir(c.environ), conf.moved(p))
		if git != nil {
			b.After, b.Began = git.end, git.began
			b.AddBefore(git.altered)
		}
	}}
}

// nobody is the only reachable host if none is allowed: no host has that name (RFC 2606). Processes can request it, so that
// their error, and the report, names the host instead of a failed lookup.
const nobody = "invalid"

// policy derives the call's, and what watches over what its processes leave in git directories. reading: it changes nothing.
func (c *Call) policy(ctx context.Context, f *permission.Facts, reading bool) (p sandbox.Policy, git *gitWatch) {
	conf, places := c.rights.Confining, c.rights.Places
	if conf.Off {
		return p, nil
	}
	p = sandbox.Policy{Tier: sandbox.Full, Session: conf.Session, Optional: conf.Optional, Limits: conf.Limits}
	l := layout{&p}
	for _, dir := range conf.Hidden {
		l.put(dir, sandbox.Hidden)
	}
	for _, path := range c.readDenied(ctx) {
		l.put(path, sandbox.Hidden)
		if seen := places.Seen(path); seen != path {
			p.Places = append(p.Places, sandbox.Place{Path: seen, Access: sandbox.Hidden, Source: path})
		}
	}
	for _, dir := range conf.ownDirs() {
		l.put(dir, sandbox.Write)
	}
	if reading {
		hidden := func(path string) bool { return l.at(path) == sandbox.Hidden }
		full := c.reads.wide || c.rights.gitElsewhere(f) || l.hides(places.Roots()) ||
			slices.ContainsFunc(c.reads.files, hidden) || c.rights.seesTemporary(f)
		if !full {
			p.Tier, p.Strict = sandbox.Fast, true
		}
		for _, path := range c.reads.files {
			if !hidden(path) && l.lacks(path) {
				l.put(path, sandbox.Read)
			}
		}
		for _, dir := range slices.Concat(places.Roots(), places.Readable()) {
			l.put(dir, sandbox.Read)
		}
	} else {
		p.Network, p.UnixSockets = conf.Network, conf.UnixSockets
		p.Network.Allowed = slices.Concat(conf.Network.Allowed, c.answered(f))
		if len(p.Network.Allowed) == 0 && conf.fully() { // elsewhere a way out is a way out for others too
			p.Network.Allowed = []string{nobody}
		}
		git = l.writable(c, f)
	}
	l.caches(conf)
	for _, a := range f.Accesses {
		closed := a.Mentioned && a.Hidden != "" // what becomes of it there is not known
		if !a.Write && !closed && !isOwnProcess(a.Real) && l.lacks(a.OnDisk()) {
			l.put(a.OnDisk(), sandbox.Read)
		}
	}
	for _, dir := range conf.Shown {
		l.put(dir, sandbox.Read)
	}
	l.temp(conf)
	return p, git
}

// A layout puts places together. Of two of the same path the later counts.
type layout struct{ *sandbox.Policy }

func (l layout) put(path string, access sandbox.Access) {
	l.add(sandbox.Place{Path: path}).Access = access
}

// add adds a place, unless there is one of its path, and returns the one that is there.
func (l layout) add(place sandbox.Place) *sandbox.Place {
	i := slices.IndexFunc(l.Places, func(p sandbox.Place) bool { return p.Path == place.Path })
	if i < 0 {
		i, l.Places = len(l.Places), append(l.Places, place)
	}
	return &l.Places[i]
}

// innermost returns the place that holds the path, or the innermost of several; none: a zero one.
func (l layout) innermost(path string) (in sandbox.Place) {
	for _, p := range l.Places {
		if len(p.Path) > len(in.Path) && pathname.Within(p.Path, path) {
			in = p
		}
	}
	return in
}

// at is what may be done at the path so far.
func (l layout) at(path string) sandbox.Access {
	if in := l.innermost(path); in.Path != "" {
		return in.Access
	}
	return sandbox.Read
}

// lacks reports whether the path cannot be read without a place of its own. One that is not needed does harm: it stands on what
// the sandbox has put there, and makes the call another cell, with another loopback.
func (l layout) lacks(path string) bool {
	in := l.innermost(path)
	switch {
	case in.Path != "" && in.Access != sandbox.Hidden:
		return false
	case l.Tier == sandbox.Full:
		_, err := os.Lstat(path)
		return err == nil && (in.Path != "" || pathname.WithinAny(temps, path))
	}
	return !isSystems(path)
}

// hides reports whether something that is there is hidden in one of the directories.
func (l layout) hides(dirs []string) bool {
	return slices.ContainsFunc(l.Places, func(p sandbox.Place) bool {
		if p.Access != sandbox.Hidden || !pathname.WithinAny(dirs, p.Path) {
			return false
		}
		_, err := os.Lstat(p.Path)
		return err == nil
	})
}

// writable opens the roots and what else may be written, but for what is protected there. A directory outside that is opened for
// the call is protected like a root. It returns what watches over what its processes leave in git directories.
func (l layout) writable(c *Call, f *permission.Facts) (git *gitWatch) {
	conf, o := c.rights.Confining, c.opening(f)
	named := func(path string) bool { return slices.Contains(o.named, path) || slices.Contains(conf.Write, path) }
	free := func(path string) bool {
		return named(path) || pathname.WithinAny(o.trees, path) || slices.Contains(c.git.places, path)
	}
	roots := slices.Concat(c.rights.Places.Roots(), conf.Write)
	var inner, outer []string
	for _, dir := range o.dirs {
		if pathname.WithinAny(roots, dir) {
			inner = append(inner, dir)
		} else {
			outer = append(outer, dir)
		}
	}
	l.opens(slices.Concat(outer, roots))
	roots = append(roots, outer...)
	for _, root := range roots {
		l.protect(root, protected(root, slices.Concat(permission.ProtectedIn(c.rights.Anchors.Home), conf.Programs)), free)
	}
	git = l.repositories(c, f, roots, named)
	l.opens(inner)
	l.Fresh = o.fresh
	l.opens(slices.DeleteFunc(slices.Clone(o.named), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil && !slices.Contains(o.fresh, path)
	}))
	for _, p := range slices.Clone(l.Places) {
		for _, root := range roots {
			if p.Access == sandbox.Hidden && pathname.Within(root, p.Path) {
				l.pin(root, p.Path)
			}
		}
	}
	for _, path := range conf.Keep {
		l.put(path, sandbox.Read)
	}
	return git
}

// protect closes the paths below dir that are not free. What lies between stays writable and can no longer be moved out of the way.
func (l layout) protect(dir string, paths []string, free func(path string) bool) {
	behind := map[string]bool{} // by the directory of the path: many paths share theirs
	for _, path := range paths {
		parent := filepath.Dir(path)
		if _, known := behind[parent]; !known {
			behind[parent] = behindLink(dir, path)
		}
		if free(path) || behind[parent] {
			continue
		}
		if _, err := l.shut(dir, path); err != nil {
			l.Absent = append(l.Absent, path)
		}
	}
}

// shut closes a path below dir, and reports whether it has: not a link, since where that leads is judged by its own name, nor
// what is behind one. The error is that nothing is there.
func (l layout) shut(dir, path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink != 0 || behindLink(dir, path) {
		return false, err
	}
	if !repo.IsLink(path) {
		l.pin(dir, path)
	}
	l.put(path, sandbox.Read)
	return true, nil
}

// pin keeps the directories between dir and the path where they are: moved, they would take it where nothing guards it.
func (l layout) pin(dir, path string) {
	for between := filepath.Dir(path); between != dir && pathname.Within(dir, between); between = filepath.Dir(between) {
		l.add(sandbox.Place{Path: between, Access: sandbox.Write})
	}
}

// behindLink reports whether a link leads to the directory of the path, which lies below dir: then it is not the path's.
func behindLink(dir, path string) bool {
	parent := filepath.Dir(path)
	if parent == dir {
		return false
	}
	real, err := filepath.EvalSymlinks(parent)
	return err == nil && real != parent
}

// readDenied are the files in the roots, and those named outside, that a rule keeps from being read.
func (c *Call) readDenied(ctx context.Context) (paths []string) {
	rules := c.rights.Rules
	bars := c.deniesRead(rules)
	if bars == nil {
		return nil
	}
	c.overlooked = false
	literal, all := rules.UnreadablePaths()
	for _, path := range literal {
		path = c.rights.Places.Disk(path)
		if _, err := os.Lstat(path); err == nil && (bars(path) != "" || bars(filepath.Join(path, "x")) != "") {
			paths = append(paths, path)
		}
	}
	if all {
		return paths
	}
	for _, root := range slices.Concat(c.rights.Places.Roots(), c.rights.Confining.ownDirs()) {
		_, _, sure := c.rights.Places.FindReadDenied(ctx, root, func(real string) string {
			if real != root && len(paths) <= maxReadDenied && bars(real) != "" {
				paths = append(paths, real)
			}
			return ""
		})
		c.overlooked = c.overlooked || !sure || len(paths) > maxReadDenied
	}
	return paths
}

// maxReadDenied is how many files are hidden one by one. The number is our own: each costs a mount.
const maxReadDenied = 500

// Worker is the box of a process that may do what a command may of which nothing special was permitted. dir is where it
// works, and program what it runs: its file can be read wherever it lies, if that is absolute.
func (r Rights) Worker(ctx context.Context, dir, program string) *sandbox.Box {
	f := &permission.Facts{Dir: dir}
	if real, err := filepath.EvalSymlinks(program); err == nil && filepath.IsAbs(real) {
		f.Accesses = append(f.Accesses, permission.Access{Named: program, Real: real})
	}
	c := &Call{rights: r}
	return c.box(ctx, func() (sandbox.Policy, *gitWatch) { return c.policy(ctx, f, false) }).Ready()
}

// Reader returns the box of a process that may change nothing of the user's, and has its own caches
// and temporary files.
func (r Rights) Reader(ctx context.Context, dir, program string) *sandbox.Box {
	b := r.Worker(ctx, dir, program)
	b.After, b.Began, b.Before = nil, nil, nil
	own := r.Confining.ownDirs()
	for i, place := range b.Policy.Places {
		if place.Access == sandbox.Write && place.Source == "" && place.Above == "" && !slices.Contains(own, place.Path) {
			b.Policy.Places[i].Access = sandbox.Read
		}
	}
	return b
}
