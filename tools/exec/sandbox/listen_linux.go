// The TCP ports on which a confined tree listens. The daemon has the socket listen itself, on behalf
// of the process: afterwards it is certain that the port is open.

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/net/sockdiag"
)

// listen has a socket listen on behalf of a process, and notes its port. For sockets other than
// those of TCP the kernel goes on: a Unix socket notes which process has called.
func (g *supervisor) listen(n *notification) response {
	r := response{id: n.id, flags: notifContinue}
	socket, family, err := n.socket()
	if socket >= 0 {
		defer unix.Close(socket)
	}
	switch {
	case err != nil || !g.valid(n):
		return r
	case family == unix.AF_UNIX:
		g.instance.network.noteListening(socket)
		return r
	case family != unix.AF_INET && family != unix.AF_INET6:
		return r
	}
	r.flags = 0
	if err := unix.Listen(socket, int(int32(n.args[1]))); err != nil {
		r.errno = -int32(errnoOf(err))
		return r
	}
	g.noteServed(socket, int(n.pid))
	return r
}

// manyServed is how many ports a supervisor notes before it drops those that are closed. The number
// is our own: a server has a few.
const manyServed = 64

// noteServed records that a process listens on the socket.
func (g *supervisor) noteServed(socket, pid int) {
	own, err := ownAddress(socket)
	m, lookErr := look(pid)
	if err != nil || lookErr != nil || own.Port() == 0 || g.instance.network.isProxy(netip.AddrPortFrom(localhost, own.Port())) {
		return
	}
	g.mu.Lock()
	g.served[int(own.Port())] = m.name()
	full := len(g.served) > manyServed
	g.mu.Unlock()
	if full {
		g.listening()
	}
	select {
	case g.process.listened <- struct{}{}:
	default: // there is news already
	}
}

// listening returns the ports on which the tree listens, in order, and forgets the others. If the
// kernel does not tell, they are those on which it has begun to, until its end. The kernel is asked
// under the lock: a port that is noted meanwhile would be missing in an older answer.
func (g *supervisor) listening() (ports []Listening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	servers, err := g.instance.network.servers()
	for port, program := range g.served {
		_, open := servers[port]
		if open || err != nil && g.ctx.Err() == nil {
			ports = append(ports, Listening{port, program})
		} else {
			delete(g.served, port)
		}
	}
	slices.SortFunc(ports, func(a, b Listening) int { return cmp.Compare(a.Port, b.Port) })
	return ports
}

// servers returns the addresses at which processes in the network listen, by their ports. If there
// are several for a port, one that an IPv4 connection reaches is preferred.
func (n *network) servers() (servers map[int]netip.Addr, err error) {
	n.asking.Lock()
	defer n.asking.Unlock()
	all, err := sockdiag.Listeners(n.diag)
	servers = map[int]netip.Addr{}
	for _, s := range all {
		port, at := int(s.Local.Port()), s.Local.Addr()
		if before, has := servers[port]; !has || !before.Is4() {
			servers[port] = at
		}
	}
	return servers, err
}

// Listening returns the ports on which the tree listens now.
func (p *Process) Listening() []Listening {
	if p.confine.supervisor == nil {
		return nil
	}
	return p.confine.supervisor.listening()
}

// Dial connects to the server that listens on the port in the network of the process. It returns
// syscall.ECONNREFUSED if there is none, also after the end of the process.
func (p *Process) Dial(ctx context.Context, port int) (*net.TCPConn, error) {
	if p.confine.supervisor == nil {
		return nil, unix.ECONNREFUSED
	}
	network := p.confine.instance.network
	servers, err := network.servers()
	at, open := servers[port]
	switch {
	case err != nil && p.confine.supervisor.ctx.Err() == nil:
		return nil, fmt.Errorf("looking for port %d: %w", port, err)
	case !open:
		return nil, unix.ECONNREFUSED
	}
	socket, err := network.socket(p.runner.host.instances.users, at)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	to := conn.(*net.TCPConn) // the socket is one
	if err := connectTo(ctx, to, loopbackOf(at), port); err != nil {
		_ = to.Close()
		return nil, fmt.Errorf("connecting to port %d: %w", port, err)
	}
	return to, nil
}

// socket makes a TCP socket in the network, of the address's family.
func (n *network) socket(users *os.File, at netip.Addr) (*os.File, error) {
	own, err := n.copied()
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	defer unix.Close(own)
	family := unix.AF_INET6
	if at.Is4() {
		family = unix.AF_INET
	}
	m := newMaker(users)
	m.about = "making a socket"
	m.do(unix.SYS_SETNS, own, unix.CLONE_NEWNET)
	s := m.kept(m.do(unix.SYS_SOCKET, family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0))
	if err := m.carryOut(); err != nil {
		return nil, err
	}
	return s.file("connection"), nil
}

// loopbackOf returns the address by which a server that listens at the address is reached.
func loopbackOf(at netip.Addr) netip.Addr {
	switch {
	case !at.IsUnspecified():
		return at
	case at.Is4():
		return localhost
	}
	return netip.IPv6Loopback()
}

// connectTime is how long a server may take to accept a connection. The number is our own: one that
// does not accept has a full backlog.
const connectTime = 10 * time.Second

// connectTo connects the socket and waits until it is connected.
func connectTo(ctx context.Context, socket *net.TCPConn, to netip.Addr, port int) error {
	var address unix.Sockaddr = &unix.SockaddrInet6{Port: port, Addr: to.As16()}
	if to.Is4() {
		address = &unix.SockaddrInet4{Port: port, Addr: to.As4()}
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	_ = socket.SetWriteDeadline(time.Now().Add(connectTime))
	stop := context.AfterFunc(ctx, func() { _ = socket.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	began, result := false, error(nil)
	err = raw.Write(func(fd uintptr) (done bool) {
		if !began {
			began, result = true, unix.Connect(int(fd), address)
			return !errors.Is(result, unix.EINPROGRESS)
		}
		return connected(int(fd), &result)
	})
	if err != nil {
		return err
	}
	if result == nil {
		result = socket.SetWriteDeadline(time.Time{})
	}
	return result
}

// connected reports whether a connection has been made or has failed, and sets its result.
func connected(fd int, result *error) bool {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch *result = err; {
	case err != nil:
		return true
	case code != 0:
		*result = unix.Errno(code)
		return true
	}
	_, err = unix.Getpeername(fd)
	return err == nil // the poller wakes also without a reason
}
