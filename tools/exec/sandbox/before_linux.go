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
// names.
func (g *supervisor) announce(n *notification, names []name, paths []string) {
	if g.reports.report == nil {
		return
	}
	for i, where := range names {
		switch does := n.doing(where); {
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
			if does == makes {
				clear(g.reports.dirs) // a link or a directory may come where the other one was
			}
			g.tell(Alteration{Path: g.entry(n, paths[i]), Goes: does == removes})
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
		var target [unix.PathMax]byte
		length, err := unix.Readlinkat(g.reports.root, inRoot(entry), target[:])
		if err != nil {
			return
		}
		name = string(target[:length])
		if !path.IsAbs(name) {
			name = path.Dir(entry) + "/" + name
		}
	}
}

// moved reports that an entry is moved. A directory or a link may be part of the known names.
func (g *supervisor) moved(n *notification, from, to string) {
	if from == "" || to == "" {
		return
	}
	var info unix.Stat_t
	if unix.Fstatat(g.reports.root, inRoot(from), &info, unix.AT_SYMLINK_NOFOLLOW) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		clear(g.reports.dirs)
	}
	swapped := uintptr(n.call) == unix.SYS_RENAMEAT2 && n.args[4]&unix.RENAME_EXCHANGE != 0
	g.tell(Alteration{Path: from, To: to, Goes: true, Swapped: swapped})
}

// tell reports an alteration whose paths are the tree's.
func (g *supervisor) tell(a Alteration) {
	if a.Path == "" || !g.keeps(a.Path) || a.To != "" && !g.keeps(a.To) {
		return
	}
	a.Path = g.onDisk(a.Path)
	if a.To != "" {
		a.To = g.onDisk(a.To)
	}
	g.reports.report(a)
}

// keeps reports whether what the tree writes at a path changes the disk, and not an overlay.
func (g *supervisor) keeps(path string) bool {
	p := innermost(g.policy.Places, path)
	return p.Access == Write && p.Path != "" && p.Above == ""
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
	if g.reports.root < 0 {
		root, err := unix.Open(fmt.Sprintf("/proc/%d/root", n.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			g.reports.report(Alteration{}) // a process that hides itself
			return ""
		}
		g.reports.root = root
	}
	fd, err := unix.Openat2(g.reports.root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		if pathname.Within("/proc", name) {
			g.reports.report(Alteration{})
		}
		return ""
	}
	defer unix.Close(fd)
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil || !filepath.IsAbs(real) {
		return ""
	}
	if len(g.reports.dirs) >= manyPlain {
		clear(g.reports.dirs)
	}
	g.reports.dirs[name] = real
	return real
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
	if rest, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		name = "/proc/self/fd/" + rest
	}
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return name, true
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 2 || !strings.Contains("fd cwd root task map_files", parts[1]) {
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

// onlyReads reports whether a call opens a file without changing anything. Of the newest call the
// filter does not see the flags.
func (n *notification) onlyReads(names []name) bool {
	return uintptr(n.call) == unix.SYS_OPENAT2 && n.openFlags(names[0])&writing == 0
}
