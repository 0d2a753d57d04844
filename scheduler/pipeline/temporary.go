// The directories of the session's own that its processes find in the place of the machine's and the user's: those for temporary
// files, and the caches of programs.

package pipeline

import (
	"fmt"
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

// temps are the machine's directories for temporary files, as programs name them.
var temps = []string{"/tmp", "/var/tmp"}

// ownDirs returns where the session's directories for temporary files are on the disk.
func (conf Confining) ownDirs() (dirs []string) {
	for _, t := range conf.Temps {
		dirs = append(dirs, t.Dir)
	}
	return dirs
}

// located returns the places as the call's processes see them, and keeps them for the rest of the
// call. A process outside the sandbox sees the machine's temporary files. Where nothing can be
// mounted, and outside, the working directory is its path on the disk.
func (r *Rights) located(f *permission.Facts, env *tools.Env) *workspace.Workspace {
	places := r.Places
	if outside := r.outside(f); outside || !r.Confining.fully() {
		env.Dir = places.Disk(env.Dir)
		f.Dir = env.Dir
		if outside {
			r.Places = places.Machine()
		}
	}
	return r.Places
}

// unmounted reports whether the call starts programs that cannot be shown the session's temporary files under the machine's
// names.
func (r *Rights) unmounted(f *permission.Facts) bool {
	starts := f.External == "" && (f.Opaque || len(f.Commands) > 0)
	return starts && !r.outside(f) && !r.Confining.fully()
}

// unmountedFault returns a fault that names the path by which a program finds the file.
func unmountedFault(p workspace.Path) error {
	return fault.Deniedf("temporary_path",
		"%s is among the session's own temporary files. Programs find it as %s, since nothing can be mounted for them on this machine. Nothing was run. Use that path, or $TMPDIR for a new file.",
		p.Shown(), p.Real)
}

// tempDir returns TMPDIR, as NAME=value, if the call's processes need another one than the
// session's; otherwise "". In the sandbox it is a directory where files can be made.
func (r *Rights) tempDir(environ []string) []string {
	conf, places := r.Confining, r.Places
	dir := repo.Getenv(environ, "TMPDIR")
	switch {
	case len(conf.Temps) == 0:
		return nil
	case !conf.fully():
		return []string{"TMPDIR=" + conf.Temps[0].Dir}
	case dir == "" && environ != nil:
		return nil
	}
	real, err := places.Resolve("/", dir)
	if place := places.Place(real.Real); err == nil && filepath.IsAbs(dir) &&
		(place == workspace.InRoot || place == workspace.Scratch || pathname.WithinAny(conf.Write, real.Real)) {
		return nil
	}
	return []string{"TMPDIR=" + conf.Temps[0].Name}
}

// temp mounts the session's directories for temporary files over the machine's.
func (l layout) temp(conf Confining) {
	for _, t := range conf.Temps {
		l.add(sandbox.Place{Path: t.Name, Access: sandbox.Write, Source: t.Dir})
	}
}

// seesTemporary reports whether a script that only reads may come upon the session's temporary files: it names them, works
// among them, or reads what it does not name.
func (r *Rights) seesTemporary(f *permission.Facts) bool {
	own := func(path string) bool {
		return slices.ContainsFunc(r.Confining.Temps, func(t workspace.Temporary) bool {
			return t.Own() && (pathname.Within(t.Name, path) || pathname.Within(t.Dir, path)) && r.Places.Place(r.Places.Disk(path)) == workspace.Scratch
		})
	}
	if len(f.Commands) > 0 && own(f.Dir) {
		return true
	}
	return slices.ContainsFunc(f.Accesses, func(a permission.Access) bool {
		return (len(f.Commands) > 0 || a.Part != "") && (a.Unnamed && !a.Write || own(a.Real) || own(a.Named))
	})
}

// maxLocated is how many new temporary files are reported. The number is our own: a user opens one
// or two.
const maxLocated = 5

// locate reports where the user finds temporary files that the call has made, since their names
// lead nowhere outside the session.
func (c *Call) locate(made []string) {
	switch {
	case c.rights.unmounted(c.facts): // they have been named so
		return
	case c.rights.outside(c.facts):
		c.missed()
		return
	}
	told := 0
	for _, real := range made {
		if seen := c.rights.Places.Seen(real); seen != real && told < maxLocated {
			c.context = append(c.context, fmt.Sprintf("[%s is a temporary file of this session. Outside of it, it is %s.]", seen, real))
			told++
		}
	}
}

// missed reports which names in a command that ran outside the sandbox are the session's own
// temporary files, which the command did not see.
func (c *Call) missed() {
	inside := c.session.Rights(c).Places
	for _, a := range slices.Concat(c.facts.Accesses, permission.Mentions(c.facts)) {
		p, err := inside.Resolve("/", a.Named)
		if err == nil && p.Mapped && p.Exists && !slices.Contains(temps, p.Seen) {
			c.context = append(c.context, fmt.Sprintf("[The command ran outside of the sandbox, where %s is the machine's. The session's own is %s.]", p.Shown(), p.Real))
		}
	}
}

// A Cache is where programs keep what they can make again. Calls for the same roots share what they write there.
type Cache struct {
	sandbox.Place
	Variable string // by which programs find it if it is elsewhere; empty: there is none
}

// caches lays what processes have kept over the user's own caches that are not hidden.
func (l layout) caches(conf Confining) {
	if l.Tier != sandbox.Full {
		return
	}
	for _, c := range conf.Caches {
		if l.at(c.Path) != sandbox.Hidden {
			l.add(c.Place)
		}
	}
}

// moved are the variables by which programs find their caches where those cannot stand at the user's own.
func (conf Confining) moved(p sandbox.Policy) (environ []string) {
	if confinement, err := conf.Runner.Confinement(p); err != nil || p.Strict || confinement.Tier != sandbox.Fast {
		return nil
	}
	for _, c := range conf.Caches {
		if c.Variable != "" {
			environ = append(environ, c.Variable+"="+c.Upper())
		}
	}
	return environ
}
