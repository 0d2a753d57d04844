// The clients of the proxy of a network: which tree has made a connection to it. The supervisor makes
// each connection, and notes the process's address before the connection exists. So whatever the
// proxy reads from there was sent by that tree. A connection that was made in another way has no
// client.

package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A client is a connection to the proxy, from before it is made until the proxy has closed it.
type client struct {
	tree     *supervisor
	program  string // what the process calls itself; empty: nothing is asked about
	cookie   uint64 // of its socket, unique since the machine was started
	begun    bool   // the kernel has the connection, or had it
	accepted bool   // by the proxy
}

// ask asks about a host until it is answered, or the connection or the tree ends.
func (c *client) ask(ctx context.Context, to Host) Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.tree.ctx, cancel)()
	to.Program = c.program
	return c.tree.process.command.Ask(ctx, to)
}

// client is the network's Clients.
func (n *network) client(remote, _ string) (Client, bool) {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Client{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clients[address]
	if c == nil {
		return Client{}, false
	}
	found := Client{Network: c.tree.policy.Network, Denied: c.tree.process.refuse}
	if c.tree.process.command.Ask != nil {
		found.Ask = c.ask
	}
	return found, true
}

// isProxy reports whether the daemon's proxy listens at the address.
func (n *network) isProxy(to netip.AddrPort) bool {
	here := to.Addr() == localhost || to.Addr() == netip.IPv4Unspecified()
	return here && to.Port() != 0 && uint32(to.Port()) == n.proxyAt.Load()
}

// localhost is where the proxy listens.
var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// expect notes a client, and reports whether it has: not while another connection from the same
// address is the proxy's, since that may be another tree's.
func (n *network) expect(own netip.AddrPort, c *client) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropReset(own)
	if known := n.clients[own]; known != nil {
		return known.cookie == c.cookie // it asks how its connection has come on
	}
	n.clients[own] = c
	return true
}

// dropReset forgets a client whose connection has begun and is gone: it was reset before the proxy
// had accepted it. mu is held.
func (n *network) dropReset(own netip.AddrPort) {
	c := n.clients[own]
	if c == nil || !c.begun || c.accepted {
		return
	}
	if _, there := n.connected(own, netip.AddrPortFrom(localhost, uint16(n.proxyAt.Load()))); !there {
		delete(n.clients, own)
	}
}

// attempted notes whether the kernel has the connection of the socket with that cookie. Otherwise it
// forgets the client.
func (n *network) attempted(own netip.AddrPort, cookie uint64, begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch c := n.clients[own]; {
	case c == nil || c.cookie != cookie:
	case begun:
		c.begun = true
	case !c.accepted:
		delete(n.clients, own)
	}
}

// abandonAll forgets the clients of a tree that has ended, except for those whose connections the
// proxy has: it forgets them when it closes the connections.
func (n *network) abandonAll(tree *supervisor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for own, c := range n.clients {
		if c.tree == tree && !c.accepted {
			delete(n.clients, own)
		}
	}
}

// A reception is the listener from which the proxy accepts.
type reception struct {
	net.Listener
	network *network
}

// Accept returns the next connection. It leaves out those that were reset before: what they have
// sent cannot be answered, and their address may belong to another process by now.
func (r *reception) Accept() (net.Conn, error) {
	for {
		accepted, err := r.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := accepted.(*net.TCPConn)
		if isReset(c) {
			r.network.reset(c)
			continue
		}
		return r.network.accept(c), nil
	}
}

// reset closes a connection that was reset, and forgets its client.
func (n *network) reset(conn *net.TCPConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropReset(conn.RemoteAddr().(*net.TCPAddr).AddrPort())
	_ = conn.Close()
}

// accept notes that the proxy has a connection.
func (n *network) accept(conn *net.TCPConn) *visit {
	v := &visit{TCPConn: conn, network: n, own: conn.RemoteAddr().(*net.TCPAddr).AddrPort()}
	n.mu.Lock()
	defer n.mu.Unlock()
	if v.client = n.clients[v.own]; v.client != nil {
		v.client.accepted = true
	}
	return v
}

// isReset reports whether the other end has reset the connection.
func isReset(conn *net.TCPConn) (reset bool) {
	const closed = 7 // TCP_CLOSE of linux/tcp_states.h
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		reset = err != nil || info.State == closed
	})
	return reset || err != nil
}

// A visit is a connection that the proxy has accepted.
type visit struct {
	*net.TCPConn
	network *network
	own     netip.AddrPort // of the process
	client  *client        // nil: it was not made by a supervisor
}

// Close forgets the client and closes the connection.
func (v *visit) Close() error {
	v.network.mu.Lock()
	if v.client != nil && v.network.clients[v.own] == v.client {
		delete(v.network.clients, v.own)
	}
	v.network.mu.Unlock()
	return v.TCPConn.Close()
}

// toProxy connects to the proxy. A process without a way out finds nothing there.
func (c *connection) toProxy() unix.Errno {
	if !c.policy.Network.proxied() {
		return unix.ECONNREFUSED
	}
	cookie, err := unix.GetsockoptUint64(c.socket, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return errnoOf(err)
	}
	own, err := c.bind()
	if err != nil {
		return errnoOf(err)
	}
	noted := &client{tree: c.supervisor, cookie: cookie}
	if c.process.command.Ask != nil {
		noted.program = c.n.program()
	}
	if !c.instance.network.expect(own, noted) {
		return unix.EADDRNOTAVAIL
	}
	c.own, c.cookie = own, cookie
	errno := c.to(c.address)
	switch errno {
	case 0, unix.EINPROGRESS, unix.EALREADY, unix.EISCONN:
		c.instance.network.attempted(own, cookie, true)
	default:
		c.abandon()
	}
	return errno
}

// abandon forgets the client of a connection to the proxy that was not made.
func (c *connection) abandon() {
	if c.own.IsValid() {
		c.instance.network.attempted(c.own, c.cookie, false)
	}
}

// bind returns the socket's own address on the loopback, as the proxy will see it. A socket without
// one gets any.
func (c *connection) bind() (own netip.AddrPort, err error) {
	if own, err = ownAddress(c.socket); err != nil || own.Port() != 0 {
		return own, err
	}
	var any unix.Sockaddr = &unix.SockaddrInet4{Addr: localhost.As4()}
	if c.family == unix.AF_INET6 {
		any = &unix.SockaddrInet6{Addr: localhost.As16()}
	}
	if err := unix.Bind(c.socket, any); err != nil {
		return own, err
	}
	return ownAddress(c.socket)
}

// ownAddress returns the address that a socket is bound to, with the loopback's where it is bound to
// all.
func ownAddress(socket int) (netip.AddrPort, error) {
	bound, err := unix.Getsockname(socket)
	var own netip.AddrPort
	switch a := bound.(type) {
	case *unix.SockaddrInet4:
		own = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		own = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	if own.Addr().IsUnspecified() {
		own = netip.AddrPortFrom(localhost, own.Port())
	}
	return own, err
}

func (c *connection) isStream() bool {
	kind, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_STREAM
}

// program returns what the process calls itself.
func (n *notification) program() string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n.process())) // no such file is empty
	return strings.TrimSuffix(string(name), "\n")
}
