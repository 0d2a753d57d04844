package settings

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An absence notices whether something has appeared at paths where nothing was. It runs nothing of its own: the kernel
// keeps what has happened until it is asked for, so a change that was made before the question counts. It is safe for
// concurrent use.
type absence struct {
	mu      sync.Mutex
	fds     [2]unix.PollFd // of inotify, and of the list of mounts
	open    bool
	failed  bool                          // it cannot be used here
	names   map[int32]map[string]struct{} // that count, by their directory's watch
	covered map[string]coverage
	current uint64 // generation
	buffer  [4096]byte
}

// A coverage is whether the appearance of something at a path is noticed, as it was found in a generation.
type coverage struct {
	generation uint64
	noticed    bool
}

// maxWatches is how many directories are watched. The number is ours: those of as many roots as there are scopes, and the
// ones above them. The kernel's own limit for a user was 8192 for long.
const maxWatches = 4096

// structural are the events by which a path can come to lead somewhere else: of the names in a directory, and of itself.
const structural = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// local are the file systems of which the kernel sees every change: they are changed on this machine only. The numbers are
// those of statfs(2).
var local = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.RAMFS_MAGIC,
	0x2fc12fc1, // ZFS
	0xca451a4e, // bcachefs
}

// generation returns a number that is another one if, since an earlier question, something may have appeared at a path that
// was covered then. 0: that cannot be told.
func (a *absence) generation() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open && !a.begin() {
		return 0
	}
	for {
		n, err := unix.Poll(a.fds[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			a.fail()
			return 0
		case n > 0:
			if a.fds[1].Revents != 0 { // something was mounted or unmounted
				a.current++
			}
			if a.fds[0].Revents != 0 {
				a.drain()
			}
		}
		if a.failed {
			return 0
		}
		return a.current
	}
}

// begin opens what changes are noticed by.
func (a *absence) begin() bool {
	if a.failed {
		return false
	}
	mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		a.failed = true
		return false
	}
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		_ = unix.Close(mounts)
		a.failed = true
		return false
	}
	a.fds = [2]unix.PollFd{{Fd: int32(events), Events: unix.POLLIN}, {Fd: int32(mounts), Events: unix.POLLPRI}}
	a.open, a.names, a.covered = true, map[int32]map[string]struct{}{}, map[string]coverage{}
	a.current++
	return true
}

// drain takes the events that there are.
func (a *absence) drain() {
	for {
		n, err := unix.Read(int(a.fds[0].Fd), a.buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil:
			a.fail()
			return
		}
		for rest := a.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0])) //nolint:gosec // the kernel aligns what it writes
			name := rest[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+int(event.Len)]
			rest = rest[len(name)+unix.SizeofInotifyEvent:]
			a.happened(event, bytes.TrimRight(name, "\x00"))
		}
	}
}

// happened counts an event if it is about a directory itself, about a name that counts, or about events that were lost.
func (a *absence) happened(event *unix.InotifyEvent, name []byte) {
	if _, counts := a.names[event.Wd][string(name)]; counts || len(name) == 0 {
		a.current++
	}
	if event.Mask&unix.IN_IGNORED != 0 {
		delete(a.names, event.Wd)
	}
}

// cover makes generation notice when something appears at an absolute path. False: that cannot be noticed, or something is
// there.
func (a *absence) cover(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open {
		return false
	}
	if known := a.covered[path]; known.generation == a.current {
		return known.noticed
	}
	if len(a.names) > maxWatches || len(a.covered) > 2*maxFiles {
		a.close()
		a.begin()
		return false
	}
	walk := walk{absence: a, at: "/", rest: strings.Split(path, "/")}
	isAbsent, noticed := walk.run()
	if isAbsent || !noticed {
		a.covered[path] = coverage{a.current, noticed}
	}
	return isAbsent && noticed
}

// A walk follows a path to the first name that is not there, with a watch on each directory before what is in it is looked
// at: what changes later is an event.
type walk struct {
	*absence
	at    string   // without links
	rest  []string // names that follow
	links int
}

// maxLinks is how many links one path may lead through; Linux has the same limit.
const maxLinks = 40

// run reports whether nothing is at the end of the path, and whether it would be noticed if that changed.
func (w *walk) run() (isAbsent, noticed bool) {
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			w.at = filepath.Dir(w.at)
			continue
		}
		if !w.watch(name) {
			return false, false
		}
		next := filepath.Join(w.at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, unix.ENOENT):
			return true, true
		case err != nil:
			return false, false
		case info.Mode()&os.ModeSymlink != 0:
			if !w.follow(next) {
				return false, false
			}
		case !info.IsDir():
			return len(w.rest) > 0, true // nothing is below a file
		default:
			w.at = next
		}
	}
	return false, true
}

// watch makes a change of the name in the directory an event.
func (w *walk) watch(name string) bool {
	var system unix.Statfs_t
	if err := unix.Statfs(w.at, &system); err != nil || !slices.Contains(local, int64(system.Type)) { //nolint:unconvert // it is narrower on some
		return false
	}
	wd, err := unix.InotifyAddWatch(int(w.fds[0].Fd), w.at, structural|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
	if err != nil {
		return false
	}
	if w.names[int32(wd)] == nil {
		w.names[int32(wd)] = map[string]struct{}{}
	}
	w.names[int32(wd)][name] = struct{}{}
	return true
}

// follow goes on at the target of a link.
func (w *walk) follow(link string) bool {
	target, err := os.Readlink(link)
	if w.links++; err != nil || w.links > maxLinks {
		return false
	}
	if filepath.IsAbs(target) {
		w.at = "/"
	}
	w.rest = slices.Concat(strings.Split(target, "/"), w.rest)
	return true
}

// shut is close for good.
func (a *absence) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail()
}

func (a *absence) fail() {
	a.close()
	a.failed = true
}

// close releases what the kernel keeps.
func (a *absence) close() {
	if a.open {
		_ = unix.Close(int(a.fds[0].Fd))
		_ = unix.Close(int(a.fds[1].Fd))
		a.open, a.names, a.covered = false, nil, nil
	}
}
