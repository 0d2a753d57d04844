// Connections of a confined tree. The daemon makes each connection itself, on the process's own
// socket and to its own copy of the address. It never lets the process's call continue: the process
// could change both after they were judged.

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/net/sockdiag"
)

// A connection is one that a process requests.
type connection struct {
	*supervisor
	n       *notification
	socket  int            // a copy of the process's descriptor
	family  int            // of the socket
	address []byte         // the daemon's copy
	own     netip.AddrPort // of a connection to the proxy that has just begun
	cookie  uint64         // of its socket
}

// connect makes the connection and returns the answer for the process. pending: the answer comes
// later.
func (g *supervisor) connect(n *notification) (r response, pending bool) {
	r = response{id: n.id}
	c := &connection{supervisor: g, n: n, socket: -1}
	errno := c.prepare()
	if errno == 0 {
		if errno, pending = c.tryOnce(); pending {
			g.waiting.Go(c.await)
			return r, true
		}
	}
	c.close()
	r.errno = -int32(errno)
	return r, false
}

func (c *connection) close() {
	if c.socket >= 0 {
		_ = unix.Close(c.socket)
	}
}

// prepare copies the socket and the address.
func (c *connection) prepare() (errno unix.Errno) {
	if c.address, errno = c.n.address(); errno != 0 {
		return errno
	}
	var err error
	if c.socket, c.family, err = c.n.socket(); err != nil {
		return errnoOf(err)
	}
	if !c.valid(c.n) {
		return unix.ENOENT // the process has died, and its number may belong to another one by now
	}
	return 0
}

// tryOnce makes the connection without waiting. pending: the process is willing to wait, and the
// connection is not ready.
func (c *connection) tryOnce() (errno unix.Errno, pending bool) {
	flags, err := unix.FcntlInt(uintptr(c.socket), unix.F_GETFL, 0)
	if err != nil {
		return errnoOf(err), false
	}
	waits := flags&unix.O_NONBLOCK == 0
	if waits { // the flag is shared with the process, which is waiting for this call
		_, _ = unix.FcntlInt(uintptr(c.socket), unix.F_SETFL, flags|unix.O_NONBLOCK)
		defer unix.FcntlInt(uintptr(c.socket), unix.F_SETFL, flags) //nolint:errcheck // it was set before
	}
	switch c.family {
	case unix.AF_UNIX:
		errno = c.toUnix()
		return errno, waits && errno == unix.EAGAIN
	case unix.AF_INET, unix.AF_INET6:
		errno = c.toInternet()
		if waits && (errno == unix.EINPROGRESS || errno == unix.EALREADY) {
			return c.outcome() // on a loopback the outcome is known at once
		}
		return errno, false
	}
	return unix.EOPNOTSUPP, false
}

func (c *connection) to(address []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(c.socket), uintptr(unsafe.Pointer(unsafe.SliceData(address))), uintptr(len(address)))
	return errno
}

// retry is the interval between attempts to connect to a socket with a full backlog. The number is
// our own.
const retry = 5 * time.Millisecond

// await waits for the connection on behalf of the process, while the process waits.
func (c *connection) await() {
	defer c.close()
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for range tick.C {
		var errno unix.Errno
		var pending bool
		if c.family == unix.AF_UNIX {
			errno, pending = c.tryOnce()
		} else {
			errno, pending = c.outcome()
		}
		if !pending {
			c.send(&response{id: c.n.id, errno: -int32(errno)})
			return
		}
		if !c.valid(c.n) {
			return
		}
	}
}

// outcome returns how a pending Internet connection has ended.
func (c *connection) outcome() (errno unix.Errno, pending bool) {
	if c.polled()&(unix.POLLOUT|unix.POLLERR|unix.POLLHUP) == 0 {
		return 0, true
	}
	code, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return errnoOf(err), false
	}
	if code != 0 {
		c.abandon()
	}
	c.noteInternet(unix.Errno(code))
	return unix.Errno(code), false
}

func (c *connection) polled() int16 {
	poll := []unix.PollFd{{Fd: int32(c.socket), Events: unix.POLLOUT}}
	_, _ = unix.Poll(poll, 0)
	return poll[0].Revents
}

// toInternet connects an Internet socket.
func (c *connection) toInternet() unix.Errno {
	if to, ok := internetAddress(c.address); ok && c.instance.network.isProxy(to) && c.isStream() {
		return c.toProxy()
	}
	errno := c.to(c.address)
	c.noteInternet(errno)
	return errno
}

// toUnix connects a Unix socket, if the process may reach that address.
func (c *connection) toUnix() unix.Errno {
	const path = 2 // offset of the name in struct sockaddr_un
	if len(c.address) < path || binary.NativeEndian.Uint16(c.address) != unix.AF_UNIX {
		return unix.EINVAL
	}
	if len(c.address) == path || c.address[path] == 0 {
		return c.to(c.address) // an abstract name belongs to the network namespace
	}
	name, _, _ := strings.Cut(string(c.address[path:]), "\x00")
	file, err := c.n.find(name)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(file)
	there := fileAddress(file)
	if c.reaches(file) {
		return c.to(there)
	}
	if errno := knock(there); errno != 0 {
		return errno // no process listens there, or it is not a socket
	}
	if !c.n.byLibrary() {
		c.note(Connecting, c.n.absolute(name))
	}
	return unix.EACCES
}

// reaches reports whether the process may connect to the socket that is bound to the file.
func (c *connection) reaches(file int) bool {
	var info unix.Stat_t
	return c.policy.UnixSockets || unix.Fstat(file, &info) == nil && c.instance.network.listensAt(identityOf(&info))
}

// fileAddress returns the address of a Unix socket that is bound to an open file.
func fileAddress(file int) []byte {
	return append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), fmt.Sprintf("/proc/self/fd/%d\x00", file)...)
}

// knock returns the error of a connection to a Unix socket without making one. It uses a datagram
// socket, which a listener for connections does not notice and a receiver of datagrams gets nothing
// from.
func knock(address []byte) unix.Errno {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(fd)
	probe := connection{socket: fd}
	if errno := probe.to(address); errno != unix.EPROTOTYPE {
		return errno
	}
	return 0
}

// noteInternet notes a connection beyond the network's own loopback, and one to a port that is open
// only on the machine's loopback.
func (c *connection) noteInternet(errno unix.Errno) {
	to, ok := internetAddress(c.address)
	if !ok {
		return
	}
	refused := errno == unix.ECONNREFUSED || errno == unix.EINPROGRESS && c.polled()&unix.POLLERR != 0
	if own := to.Addr().IsLoopback() || to.Addr().IsUnspecified(); !own || refused && machineListens(to.Port()) {
		c.note(Connecting, to.String())
	}
}

// internetAddress parses a struct sockaddr_in or sockaddr_in6.
func internetAddress(b []byte) (netip.AddrPort, bool) {
	if len(b) < unix.SizeofSockaddrInet4 {
		return netip.AddrPort{}, false
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), true
	case family == unix.AF_INET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// machineListens reports whether a process listens on the port of the loopback in the daemon's own
// network.
func machineListens(port uint16) bool {
	diag, err := sockdiag.Open()
	if err != nil {
		return false
	}
	defer diag.Close()
	own := []netip.Addr{localhost, netip.IPv6Loopback()}
	return slices.ContainsFunc(own, func(a netip.Addr) bool { return sockdiag.Listens(diag, netip.AddrPortFrom(a, port)) })
}

// address copies the address argument of a connect call.
func (n *notification) address() ([]byte, unix.Errno) {
	var raw [unix.SizeofSockaddrAny]byte
	size := int32(n.args[2])
	if size < 0 || int(size) > len(raw) {
		return nil, unix.EINVAL
	}
	if size == 0 {
		return nil, 0
	}
	if got, err := n.read(n.args[1], raw[:size]); err != nil || got < int(size) {
		return nil, unix.EFAULT
	}
	return raw[:size], 0
}

// socket copies the socket that is a call's first argument. fd is -1 if there is no copy.
func (n *notification) socket() (fd, family int, err error) {
	process, err := unix.PidfdOpen(int(n.pid), 0)
	if err != nil { // the caller is not the first thread
		process, err = unix.PidfdOpen(n.process(), 0)
	}
	if err != nil {
		return -1, 0, err
	}
	defer unix.Close(process)
	if fd, err = unix.PidfdGetfd(process, int(int32(n.args[0])), 0); err != nil {
		return -1, 0, err
	}
	family, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return fd, family, err
}

// process returns the number of the process that the calling thread belongs to.
func (n *notification) process() (pid int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid)) // no such file is empty
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	_, _ = fmt.Sscan(rest, &pid)
	return pid
}

// find opens the file that a path means to the process, as O_PATH.
func (n *notification) find(path string) (fd int, err error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", n.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	return unix.Openat2(root, n.absolute(path), how)
}

// absolute returns a path as the process means it. Relative parts are not resolved, since links may
// be on the way.
func (n *notification) absolute(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.pid))
	if err != nil {
		return path
	}
	return strings.TrimSuffix(dir, "/") + "/" + path
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}
