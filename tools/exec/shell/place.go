// Where the shell may be, and the paths that commands touch as they are seen from there.

package shell

import (
	"path"
	"slices"
	"strings"
)

// cd records that the shell may now be in dir, or still where it was.
func (a *judge) cd(dir Word) {
	a.moved = true
	if a.printsLocation {
		a.cwds, a.arrived = nil, nil
		return
	}
	if dir.path == "" || dir.holds() || dir.shape != known && dir.shape != one {
		a.cwds, a.arrived = nil, nil
		a.unlisted()
		return
	}
	a.read(dir.paths()...)
	a.arrived = a.below(dir)
	a.cwds = eitherOf(a.cwds, a.arrived)
	if _, function := a.functions["cd"]; function || a.haunted { // it may be another cd
		a.arrived = nil
	}
}

// below returns what the paths of a directory are from where the shell may be; nil: too many.
func (a *place) below(dir Word) (dirs []string) {
	for _, cwd := range a.cwds {
		for _, p := range dir.paths() {
			dirs = addTo(dirs, join(cwd, p))
		}
	}
	if len(dirs) > maxCwds {
		return nil
	}
	return dirs
}

// elsewhere: the shell may not be where the script started.
func (a *place) elsewhere() bool { return len(a.cwds) != 1 || a.cwds[0] != "." }

func (a *findings) read(paths ...string) {
	for _, full := range a.seen(paths...) {
		a.out.Reads = addTo(a.out.Reads, full)
		c := a.present()
		c.Reads = addTo(c.Reads, full)
	}
}

func (a *findings) write(m Manner, paths ...string) {
	for _, full := range a.seen(paths...) {
		a.out.Writes = addTo(a.out.Writes, full)
		a.present().writes(m, full)
	}
}

func addTo(list []string, p string) []string {
	if slices.Contains(list, p) {
		return list
	}
	return append(list, p)
}

// unlisted records that paths are touched which cannot be listed.
func (a *findings) unlisted() {
	a.out.Unlisted, a.present().Unlisted = true, true
}

// vague records that the present command reads what an unknown word names.
func (a *findings) vague() {
	a.unlisted()
	a.present().Vague = true
}

// seen are paths as seen from every directory that the shell may be in; none
// when that is not known.
func (a *findings) seen(paths ...string) (full []string) {
	if a.scope.remote {
		return nil
	}
	for _, p := range paths {
		switch {
		case p == "":
		case a.cwds == nil && relative(p) || a.listed+len(full) >= maxPaths:
			a.unlisted()
		case !relative(p):
			full = append(full, a.followed(p)...)
		default:
			for _, cwd := range a.cwds {
				full = append(full, a.followed(join(cwd, p))...)
			}
		}
	}
	a.listed += len(full)
	return full
}

func relative(p string) bool { return !strings.HasPrefix(p, "/") && !tildeHome(p) }

// join keeps p as written where it can. It never resolves "..", since what a link
// points to is unknown.
func join(cwd, p string) string {
	switch {
	case !relative(p) || cwd == ".":
		return p
	case p == ".":
		return cwd
	}
	return strings.TrimSuffix(cwd, "/") + "/" + strings.TrimPrefix(p, "./")
}

// base is the name that a program goes by.
func base(name string) string {
	if strings.Contains(name, "/") {
		return path.Base(name)
	}
	return name
}
