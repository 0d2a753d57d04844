// What a tree is about to change, reported before the kernel does it. The process waits meanwhile.
// What is read from its memory may change afterwards, so a report is only a hint at what to look at:
// it permits nothing.

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// A reporter reports the changes of one tree. Only serve of its supervisor uses it.
type reporter struct {
	report func(Alteration) // nil: nothing is reported
	root   int              // the root directory of the tree; -1: it is not open
	// dirs are directories by the names that processes use, as the paths that they have in the tree
	// without links. At most manyPlain.
	dirs map[string]string
	// moves is set once a directory or a link was removed or moved. From then on what is made may
	// come where one was.
	moves bool
}

func newReporter(report func(Alteration)) reporter {
	return reporter{report: report, root: -1, dirs: map[string]string{}}
}

func (r *reporter) close() {
	if r.root >= 0 {
		_ = unix.Close(r.root)
	}
}

// announce reports what a call is about to change where the tree may write. paths are those of the
// names, none of which opens.
func (g *supervisor) announce(n *notification, names []name, paths []string) {
	if g.reports.report == nil {
		return
	}
	for i, where := range names {
		switch does := where.does; {
		case paths[i] == "":
			if where.path >= 0 && n.args[where.path] != 0 { // without a path it changes the times of a descriptor
				g.reports.report(Alteration{})
			}
		case does <= changes, does == shares:
			g.written(n, paths[i])
		case does == replaces:
			g.moved(n, g.entry(n, paths[0]), g.entry(n, paths[i]))
		case does == removes && len(names) > 1: // reported with its new name
		default:
			if does == makes && g.reports.moves {
				clear(g.reports.dirs)
			}
			entry := g.entry(n, paths[i])
			if does == removes {
				g.goes(entry)
			}
			g.tell(Alteration{Path: entry, Goes: does == removes})
		}
	}
}

// maxLinks is how many links a name may lead through, as in the kernel.
const maxLinks = 40

// written reports what a call writes that follows links, and the links. Some calls do not follow
// the last one; then too much is reported.
func (g *supervisor) written(n *notification, name string) {
	for range maxLinks {
		entry := g.entry(n, name)
		if entry == "" {
			return
		}
		g.tell(Alteration{Path: entry})
		var isLink bool
		if name, isLink = g.reports.target(entry); !isLink {
			return
		}
	}
}

// target returns what a link in the tree leads to, as an absolute name; entry has no link on the way.
func (r *reporter) target(entry string) (name string, isLink bool) {
	var target [unix.PathMax]byte
	length, err := unix.Readlinkat(r.root, inRoot(entry), target[:])
	if err != nil {
		return "", false
	}
	name = string(target[:length])
	if !path.IsAbs(name) {
		name = path.Dir(entry) + "/" + name
	}
	return name, true
}

// moved reports that an entry is moved. A directory or a link may be part of the known names.
func (g *supervisor) moved(n *notification, from, to string) {
	if from == "" || to == "" {
		return
	}
	if g.goes(from) {
		clear(g.reports.dirs)
	}
	swapped := uintptr(n.call) == unix.SYS_RENAMEAT2 && n.args[4]&unix.RENAME_EXCHANGE != 0
	g.tell(Alteration{Path: from, To: to, Goes: true, Swapped: swapped})
}

// goes notes that an entry is about to be removed or moved, and reports whether it may be a part of
// known names: all but a file may.
func (g *supervisor) goes(entry string) bool {
	if entry == "" {
		return false
	}
	var info unix.Stat_t
	isPart := unix.Fstatat(g.reports.root, inRoot(entry), &info, unix.AT_SYMLINK_NOFOLLOW) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG
	g.reports.moves = g.reports.moves || isPart
	return isPart
}

// tell reports an alteration whose paths are the tree's.
func (g *supervisor) tell(a Alteration) {
	var kept bool
	if a.Path, kept = g.kept(a.Path); !kept {
		return
	}
	if a.To != "" {
		if a.To, kept = g.kept(a.To); !kept {
			return
		}
	}
	g.reports.report(a)
}

// kept returns where on the disk a path of the tree is. ok: what the tree writes there changes the
// disk, and not an overlay.
func (g *supervisor) kept(path string) (disk string, ok bool) {
	p := innermost(g.policy.Places, path)
	return p.disk(path), path != "" && p.Access == Write && p.Path != "" && p.Above == ""
}

// entry returns the path of an entry in the tree, with no link on the way to it; empty: there is no
// such directory.
func (g *supervisor) entry(n *notification, name string) string {
	name, ok := n.withoutProc(name)
	if !ok {
		g.reports.report(Alteration{})
		return ""
	}
	name = strings.TrimRight(name, "/")
	dir, base := path.Split(name)
	if base == "." || base == ".." || base == "" {
		return g.directory(n, name+"/")
	}
	if dir = g.directory(n, dir); dir == "" {
		return ""
	}
	return path.Join(dir, base)
}

// directory returns the path of a directory in the tree, without links; empty: there is none.
func (g *supervisor) directory(n *notification, name string) string {
	if known := g.reports.dirs[name]; known != "" {
		return known
	}
	if g.reports.root < 0 && !g.openRoot(n) {
		return ""
	}
	at := name
	for range maxLinks {
		if real, ok := g.reports.open(at); ok {
			if len(g.reports.dirs) >= manyPlain {
				clear(g.reports.dirs)
			}
			g.reports.dirs[name] = real
			return real
		}
		to, isLink := g.reports.followed(at)
		if !isLink {
			break
		}
		var ok bool
		if at, ok = n.withoutProc(to); !ok {
			g.reports.report(Alteration{})
			return ""
		}
	}
	if pathname.Within("/proc", at) {
		g.reports.report(Alteration{})
	}
	return ""
}

// openRoot opens the root directory of the tree, by a process that waits for its answer.
func (g *supervisor) openRoot(n *notification) bool {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", n.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	switch {
	case err != nil:
		g.reports.report(Alteration{}) // a process that hides itself
		return false
	case !g.valid(n): // it has died, and its number may belong to another one by now
		_ = unix.Close(root)
		return false
	}
	g.reports.root = root
	return true
}

// open returns the path of a directory in the tree, without links. It does not follow those that
// the kernel makes for what a process has open: here they would be those of the daemon.
func (r *reporter) open(name string) (real string, ok bool) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(r.root, name, &how)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return real, err == nil && filepath.IsAbs(real)
}

// followed replaces the first part of a name that cannot be opened, if that is a link to another
// place or belongs to a process in /proc. It is for names that lead through links of the kernel.
func (r *reporter) followed(name string) (to string, ok bool) {
	at := ""
	for rest := strings.Trim(name, "/"); rest != ""; {
		part, below, _ := strings.Cut(rest, "/")
		next := at + "/" + part
		if at == "/proc" && part != "" {
			to = at + "/" + rest
			return to, to != strings.TrimRight(name, "/")
		}
		real, ok := r.open(next)
		if !ok {
			to, isLink := r.target(next)
			return to + "/" + below, isLink
		}
		at, rest = strings.TrimSuffix(real, "/"), below
	}
	return "", false
}

// inRoot returns a path of the tree relative to its root.
func inRoot(path string) string {
	if path == "/" {
		return "."
	}
	return path[1:]
}

// withoutProc replaces the links of the kernel to what the process itself has open, which cannot be
// followed on its behalf. It reports false for those of other processes.
func (n *notification) withoutProc(name string) (string, bool) {
	for strings.Contains(name, "//") {
		name = strings.ReplaceAll(name, "//", "/")
	}
	if rest, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		name = "/proc/self/fd/" + rest
	}
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return name, true
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 2 || !slices.Contains([]string{"fd", "cwd", "root", "task", "map_files"}, parts[1]) {
		return name, true
	}
	if parts[0] != "self" && parts[0] != "thread-self" || parts[1] == "task" || parts[1] == "map_files" || parts[1] == "fd" && len(parts) < 3 {
		return name, false
	}
	link, below := parts[1], 2
	if link == "root" {
		return "/" + strings.Join(parts[below:], "/"), true
	}
	if link == "fd" {
		link, below = "fd/"+parts[2], 3
	}
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", n.pid, link))
	if err != nil {
		return name, true // there is no such descriptor
	}
	return strings.Join(append([]string{target}, parts[below:]...), "/"), true
}

// descriptor returns the path of an open file of the process; empty: it has none.
func (n *notification) descriptor(number uint64) string {
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(number)))
	if err != nil || !filepath.IsAbs(target) {
		return ""
	}
	return target
}

// openFlags returns the flags with which an open call opens; where is its path.
func (n *notification) openFlags(where name) uint64 {
	flags := n.args[where.path+1]
	if uintptr(n.call) != unix.SYS_OPENAT2 {
		return flags
	}
	var how [8]byte // the first field of struct open_how
	if got, err := n.read(flags, how[:]); err != nil || got != len(how) {
		return unix.O_WRONLY
	}
	return binary.LittleEndian.Uint64(how[:])
}

// settled returns the names of a call with what it does with each. changes is false if it opens a
// file without changing anything: of the newest call the filter does not see the flags.
func (n *notification) settled(names []name) (settled []name, changes bool) {
	if len(names) == 0 || names[0].does != opens {
		return names, true
	}
	where, flags := names[0], n.openFlags(names[0])
	where.does = opening(flags)
	return []name{where}, uintptr(n.call) != unix.SYS_OPENAT2 || flags&writing != 0
}

// opening returns what a call that opens a file with those flags does.
func opening(flags uint64) doing {
	if flags&unix.O_CREAT != 0 {
		return creates
	}
	return changes
}
