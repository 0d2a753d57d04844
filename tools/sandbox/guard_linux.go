package sandbox

// Hears of the system calls that a confined tree makes and that could be denied, and notes those that are. The kernel
// decides by itself: nothing that is seen here lets a call through, so it does no harm that the tree can change what a
// pointer points at meanwhile.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A guard listens to one tree.
type guard struct {
	listener *os.File
	policy   Policy
	done     chan struct{}

	mu      sync.Mutex
	denials []Denial
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
	notifSyncWake = 1          // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: both sides on one processor, one after the other
	notifContinue = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

func newGuard(listener *os.File, p Policy) *guard {
	g := &guard{listener: listener, policy: p, done: make(chan struct{})}
	go g.listen()
	return g
}

// finish ends the listening, when nothing of the tree is left, and gives what was denied. A look at a file that the kernel does
// not answer (a network file system that is gone) is not waited for.
func (g *guard) finish() []Denial {
	go g.listener.Close() // which waits for the look that is under way
	select {
	case <-g.done:
	case <-time.After(patience):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denials)
}

func (g *guard) listen() {
	defer close(g.done)
	raw, err := g.listener.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), notifFlags, notifSyncWake) }) // an older kernel has no such thing
	for {
		over := false
		err := raw.Read(func(fd uintptr) bool {
			var ready bool
			if ready, over = g.ready(int(fd)); ready && !over {
				over = g.one(fd)
			}
			return ready
		})
		if err != nil || over {
			return
		}
	}
}

// ready says whether somebody waits for an answer, and whether nobody ever will.
func (g *guard) ready(fd int) (ready, over bool) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, 0); n < 1 {
		return false, false
	}
	return true, poll[0].Revents&unix.POLLIN == 0
}

// one takes one notification and answers it. over: there will be none any more.
func (g *guard) one(fd uintptr) (over bool) {
	var n notification
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, notifReceive, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return !errors.Is(errno, unix.EINTR) && !errors.Is(errno, unix.ENOENT) // ENOENT: the asking process was killed
	}
	r := response{id: n.id, flags: notifContinue}
	if errno := g.judge(&n); errno != 0 {
		r.errno, r.flags = -int32(errno), 0
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, notifSend, uintptr(unsafe.Pointer(&r))) // if it is gone, nobody waits
	return false
}

// judge gives the error that the call is to get; 0: the kernel shall decide.
func (g *guard) judge(n *notification) unix.Errno {
	call := uintptr(n.call)
	switch {
	case call == unix.SYS_SOCKET:
		if n.args[0] != unix.AF_UNIX || !n.byLibrary() {
			g.note(Socketing, family(n.args[0]))
		}
		return unix.EACCES
	case call == unix.SYS_CONNECT:
		g.connecting(n)
		return 0
	}
	for _, name := range namesOf()[call] {
		if path := n.path(name); path != "" && g.denies(path, n.doing(name)) {
			g.note(Writing, path)
		}
	}
	return 0
}

func (g *guard) note(op Operation, target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.denials {
		if d := &g.denials[i]; d.Operation == op && d.Target == target {
			d.Count++
			return
		}
	}
	if len(g.denials) < manyDenials {
		g.denials = append(g.denials, Denial{Operation: op, Target: target, Count: 1})
	}
}

// A name is where a system call has a path: which argument, beside which directory.
type name struct {
	dir, path int // dir -1: the working directory
	does      doing
}

// doing is what a call does with what a path names.
type doing uint8

const (
	opens    doing = iota // the argument behind the path says how
	creates               // a file, or empties it
	changes               // what stands there
	makes                 // an entry that was not there
	removes               // the entry
	replaces              // the entry, there or not
)

// doing says what an opening does.
func (n *notification) doing(where name) doing {
	if where.does != opens {
		return where.does
	}
	if n.args[where.path+1]&unix.O_CREAT != 0 {
		return creates
	}
	return changes
}

// denies says that what a call does with the path is kept from it by the sandbox alone: it would work otherwise.
func (g *guard) denies(path string, does doing) bool {
	if g.writable(path) && does >= makes || within(path, "/dev") || within(path, "/proc") { // links there lead elsewhere for us
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
		return true // whether it is there is not told either
	case access == Write, within(real, "/dev"), within(real, "/proc"):
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

func (g *guard) writable(path string) bool { return g.access(path) == Write }

// access is what the policy says of the path: by the innermost place that holds it.
func (g *guard) access(path string) Access {
	access, depth := Read, 0
	for _, p := range g.policy.Places {
		if len(p.Path) >= depth && within(path, p.Path) {
			access, depth = p.Access, len(p.Path)
		}
	}
	return access
}

// path reads the path that a call names; empty: it cannot be told.
func (n *notification) path(where name) string {
	path := n.text(n.args[where.path])
	if path == "" {
		return ""
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	link := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if where.dir >= 0 && int32(n.args[where.dir]) != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[where.dir]))
	}
	dir, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, path)
}

// text reads a text of the process; empty: it cannot be read, or is too long for a path.
func (n *notification) text(at uint64) string {
	var buf [unix.PathMax]byte
	got, err := n.read(at, buf[:])
	if err != nil {
		return ""
	}
	end := slices.Index(buf[:got], 0)
	if end < 0 {
		return ""
	}
	return string(buf[:end])
}

// read reads of the process's memory, to the end of a page at least.
func (n *notification) read(at uint64, buf []byte) (int, error) {
	page := uint64(os.Getpagesize())
	first := min(uint64(len(buf)), page-at%page)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: int(first)}}
	if rest := uint64(len(buf)) - first; rest > 0 {
		remote = append(remote, unix.RemoteIovec{Base: uintptr(at + first), Len: int(rest)})
	}
	return unix.ProcessVMReadv(int(n.pid), local, remote, 0)
}

// byLibrary says that the C library makes the system call for itself: before it looks up a user's name it tries to reach a
// daemon that may know it (nscd), and does without. The caller is told by where the call returns to, which is on top of the
// stack on amd64 alone; elsewhere nothing is.
func (n *notification) byLibrary() bool {
	if arch != unix.AUDIT_ARCH_X86_64 {
		return false
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", n.pid))
	fields := strings.Fields(string(state)) // number, six arguments, stack pointer, program counter
	if err != nil || len(fields) != 9 {
		return false
	}
	top, err := strconv.ParseUint(fields[7], 0, 64)
	var to [8]byte
	if got, err2 := n.read(top, to[:]); err != nil || err2 != nil || got != len(to) {
		return false
	}
	file := n.mapped(binary.LittleEndian.Uint64(to[:]))
	return strings.HasPrefix(file, "libc.so") || strings.HasPrefix(file, "libc-2") || strings.HasPrefix(file, "ld-musl")
}

// mapped is the name of the file that is mapped there; empty: none is.
func (n *notification) mapped(at uint64) string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from <= at && at < to {
			return filepath.Base(strings.TrimSuffix(line, "\n"))
		}
	}
	return ""
}

// connecting notes a connection to somewhere else than the sandbox's own loopback, and one to what listens on everybody's
// loopback alone.
func (g *guard) connecting(n *notification) {
	var raw [unix.SizeofSockaddrInet6]byte
	size := min(n.args[2], uint64(len(raw)))
	if size < 8 {
		return
	}
	if got, err := n.read(n.args[1], raw[:size]); err != nil || got < 8 {
		return
	}
	var to netip.Addr
	switch family := uint16(raw[0]) | uint16(raw[1])<<8; {
	case family == unix.AF_INET:
		to = netip.AddrFrom4([4]byte(raw[4:8]))
	case family == unix.AF_INET6 && size >= 24:
		to = netip.AddrFrom16([16]byte(raw[8:24])).Unmap()
	default:
		return
	}
	port := uint16(raw[2])<<8 | uint16(raw[3])
	if own := to.IsLoopback() || to.IsUnspecified(); !own || !listens(int(n.pid), port) && listens(os.Getpid(), port) {
		g.note(Connecting, netip.AddrPortFrom(to, port).String())
	}
}

// listens says whether somebody listens at the TCP port in the network of a process.
func listens(pid int, port uint16) bool {
	for _, name := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name)) // none is empty
		for line := range strings.Lines(string(table)) {
			// The kernel's proc_net_tcp.rst: number, local address, remote address, state; 0A is LISTEN.
			if f := strings.Fields(line); len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return true
			}
		}
	}
	return false
}

// family is the name of a family of sockets.
func family(number uint64) string {
	names := map[uint64]string{
		unix.AF_UNIX: "unix", unix.AF_INET: "inet", unix.AF_INET6: "inet6", unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet",
		unix.AF_VSOCK: "vsock", unix.AF_ALG: "alg", unix.AF_BLUETOOTH: "bluetooth",
	}
	if name := names[number]; name != "" {
		return name
	}
	return fmt.Sprintf("family %d", number)
}
