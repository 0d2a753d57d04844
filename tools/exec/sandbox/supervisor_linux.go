// The seccomp supervisor: it receives the system calls of a confined tree that could be denied, and
// notes those that are. The kernel decides by itself. Nothing that the supervisor reads lets a call
// through, so it does not matter that the tree may change memory meanwhile. There are two exceptions:
// the supervisor makes connections itself, see connect_linux.go, and has sockets listen itself, see
// listen_linux.go.

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// A supervisor answers the notifications of one tree.
type supervisor struct {
	listener *os.File
	policy   Policy
	instance *instance
	process  *Process        // of the tree
	ctx      context.Context // ends when serve has
	end      context.CancelFunc
	over     *os.File       // written to once the tree has ended
	waiting  sync.WaitGroup // connections that processes wait for
	plain    map[string]bool
	reports  reporter
	handed   atomic.Pointer[func(Alteration)] // what receives the reports from now on

	mu      sync.Mutex
	denials []Denial
	created map[string]bool // paths on the disk at which the tree was about to make a new file
	served  map[int]string  // the ports on which the tree has begun to listen, each with the program as it names itself
}

// notification and response are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	notifReceive  = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	notifSend     = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	notifFlags    = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS
	notifIDValid  = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	notifSyncWake = 1          // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: both sides on one processor, one after the other
	notifContinue = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

func newSupervisor(listener *os.File, p Policy, c *instance, of *Process) *supervisor {
	g := &supervisor{
		listener: listener, policy: p, instance: c, process: of, reports: newReporter(of.command.before),
		plain: map[string]bool{}, created: map[string]bool{}, served: map[int]string{},
	}
	g.ctx, g.end = context.WithCancel(context.Background())
	if fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		g.over = os.NewFile(uintptr(fd), "over")
	}
	go g.serve()
	return g
}

// finish ends the supervision once nothing of the tree is left, and returns the denials. It does
// not wait for a file access that the kernel does not answer, such as on a network file system that
// is gone.
func (g *supervisor) finish() (denials []Denial, created []string) {
	if g.over != nil {
		_, _ = g.over.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	select {
	case <-g.ctx.Done():
	case <-time.After(patience):
	}
	return g.soFar()
}

// soFar returns what was denied, and the files that the tree was about to make, up to now. The supervisor may be nil.
func (g *supervisor) soFar() (denials []Denial, created []string) {
	if g == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denials), slices.Sorted(maps.Keys(g.created))
}

// serve answers on a thread that waits in the kernel: a process waits for each answer, and one more
// thread switch would double the time.
func (g *supervisor) serve() {
	defer g.end()
	defer g.reports.close()
	fd := g.listener.Fd()
	_ = unix.IoctlSetInt(int(fd), notifFlags, notifSyncWake) // an older kernel lacks it
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	if g.over != nil {
		poll[1].Fd = int32(g.over.Fd())
		defer g.over.Close()
	}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
		if poll[0].Revents&unix.POLLIN != 0 {
			if g.one(fd) {
				break
			}
		} else if poll[0].Revents|poll[1].Revents != 0 {
			break
		}
	}
	g.waiting.Wait()
	if g.instance.network != nil {
		g.instance.network.abandonAll(g)
	}
	_ = g.listener.Close()
}

// one receives one notification and answers it. over: there will be no more.
func (g *supervisor) one(fd uintptr) (over bool) {
	var n notification
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, notifReceive, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return !errors.Is(errno, unix.EINTR) && !errors.Is(errno, unix.ENOENT) // ENOENT: the asking process was killed
	}
	if report := g.handed.Swap(nil); report != nil {
		g.reports.report = *report
	}
	if r, later := g.judge(&n); !later {
		g.send(&r)
	}
	return false
}

// send answers a notification. The process may be gone, so errors are ignored.
func (g *supervisor) send(r *response) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, g.listener.Fd(), notifSend, uintptr(unsafe.Pointer(r)))
}

// valid reports whether the process still waits for its answer.
func (g *supervisor) valid(n *notification) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, g.listener.Fd(), notifIDValid, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}

// judge returns the answer to a call: the kernel decides, or this is its result. later: a goroutine
// sends the answer.
func (g *supervisor) judge(n *notification) (r response, later bool) {
	r = response{id: n.id, flags: notifContinue}
	switch call := uintptr(n.call); call {
	case unix.SYS_SOCKET:
		if n.args[0] != unix.AF_UNIX || !n.byLibrary() {
			g.note(Socketing, family(n.args[0]))
		}
		return response{id: n.id, errno: -int32(unix.EACCES)}, false
	case unix.SYS_CONNECT:
		return g.connect(n)
	case unix.SYS_LISTEN:
		return g.listen(n), false
	default:
		g.changing(n, namesOf()[call])
	}
	return r, false
}

// changing notes which changes of a call are denied, and which files the call makes, and reports
// what it is about to change.
func (g *supervisor) changing(n *notification, names []name) {
	names, changes := n.settled(names)
	if !changes {
		return
	}
	from, paths := "", make([]string, len(names))
	for i, name := range names {
		paths[i] = n.path(name)
		path, does := filepath.Clean(paths[i]), name.does
		switch {
		case paths[i] == "", does == shares:
		case g.denies(path, does):
			g.note(Writing, path)
		case does == removes:
			from = path
		case does == creates, does == replaces && g.created[g.onDisk(from)]: // otherwise what it renames existed before
			g.creates(path)
		}
	}
	g.announce(n, names, paths)
}

// manyCreated is how many new files of a tree are noted. The number is our own: only programs that
// unpack or compile make more, and the model does not edit those.
const manyCreated = 256

// creates notes a path at which the tree may make a file, if it does not exist yet.
func (g *supervisor) creates(path string) {
	if !g.writable(path) || len(g.created) >= manyCreated { // only serve writes created
		return
	}
	path = g.onDisk(path)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.created[path] = true
}

// onDisk returns the location of the tree's path on the disk.
func (g *supervisor) onDisk(path string) string {
	return innermost(g.policy.Places, path).disk(path)
}

func (g *supervisor) note(op Operation, target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denials, _ = counted(g.denials, Denial{Operation: op, Target: target, Count: 1})
}

// A name is a path argument of a system call: its index, and that of the directory it is relative
// to.
type name struct {
	dir, path int // dir -1: the working directory; path -1: dir itself is what is changed
	does      doing
}

// doing is what a call does with a path.
type doing uint8

const (
	opens    doing = iota // the argument after the path decides
	creates               // creates a file, or empties it
	changes               // changes what exists
	makes                 // makes a new entry
	removes               // removes the entry
	replaces              // replaces the entry, if it exists
	shares                // gives the file another name
)

// denies reports whether only the sandbox prevents the call: without it, it would succeed.
func (g *supervisor) denies(path string, does doing) bool {
	if pathname.Within("/dev", path) || pathname.Within("/proc", path) || g.writable(path) && (does >= makes || g.leadsNowhere(path)) { // links there lead elsewhere for the daemon
		return false
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false // there is no such directory
	}
	real := filepath.Join(parent, filepath.Base(path))
	if to, err := filepath.EvalSymlinks(real); err == nil && does < makes {
		real = to
	}
	switch access := g.access(real); {
	case access == Hidden:
		return true // its existence is not revealed
	case access == Write, pathname.Within("/dev", real), pathname.Within("/proc", real):
		return false
	}
	_, err = os.Lstat(real)
	switch there := err == nil; {
	case there && does <= changes:
		return unix.Access(real, unix.W_OK) == nil
	case there && does == makes, !there && (does == changes || does == removes):
		return false
	}
	return unix.Access(filepath.Dir(real), unix.W_OK) == nil
}

// manyPlain is how many directories a supervisor remembers. The number is our own: a build has some
// thousands.
const manyPlain = 10_000

// leadsNowhere reports whether neither a writable path nor a directory on the way to it is a link.
// It is called for each file that is opened, so directories are cached. If one becomes a link
// later, at worst a denial is noted wrongly.
func (g *supervisor) leadsNowhere(path string) bool {
	dir := filepath.Dir(path)
	plain, known := g.plain[dir]
	if !known {
		real, err := filepath.EvalSymlinks(dir)
		if plain = err == nil && real == dir; len(g.plain) < manyPlain {
			g.plain[dir] = plain
		}
	}
	var info unix.Stat_t
	return plain && (unix.Lstat(path, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFLNK)
}

func (g *supervisor) writable(path string) bool { return g.access(path) == Write }

// access returns the policy's access to the path, from the innermost place that holds it.
func (g *supervisor) access(path string) Access {
	access, depth := Read, 0
	for _, p := range g.policy.Places {
		if len(p.Path) >= depth && pathname.Within(p.Path, path) {
			access, depth = p.Access, len(p.Path)
		}
	}
	return access
}
