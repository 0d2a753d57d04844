// The network of a session: a namespace with only a loopback, which the calls of the session share.
// It also holds the daemon's proxy, and the Unix sockets on which its processes listen.

package sandbox

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/net/sockdiag"
)

// proxyPort is the port of a network's proxy, if it is free.
const proxyPort = 3128

// A network is one network namespace. It is safe for concurrent use.
type network struct {
	namespace namespace

	asking sync.Mutex // taken after mu
	diag   *os.File   // a socket in it for queries about sockets

	proxyAt atomic.Uint32 // the port of proxy; 0: there is none

	mu      sync.Mutex
	proxy   *proxy                     // nil: no process has needed one
	clients map[netip.AddrPort]*client // of the proxy, by the address of the process's socket
	bound   map[identity]listening
}

// A proxy is the daemon's.
type proxy struct {
	port int
	io.Closer
}

func newProxy(outlet Outlet, l net.Listener, clients Clients) *proxy {
	return &proxy{l.Addr().(*net.TCPAddr).Port, outlet(l, clients)}
}

// A listening is a Unix socket on which a process in the network listens.
type listening struct {
	inode  uint32 // of the socket itself
	cookie uint64 // unique since the machine was started
}

// newNetwork makes a network namespace that belongs to the user namespace users, which may be nil.
func newNetwork(users *os.File) (made *network, err error) {
	m := newMaker(users)
	m.do(unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	m.loopback()
	m.about = "opening the network's diagnostics"
	diag := m.kept(m.do(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG))
	ns := m.namespace("net")
	if err := m.carryOut(); err != nil {
		return nil, err
	}
	return &network{
		namespace: namespace{ns.file("network"), unix.CLONE_NEWNET}, diag: diag.file("diagnostics"),
		clients: map[netip.AddrPort]*client{}, bound: map[identity]listening{},
	}, nil
}

// Close closes the network, of which no instance is left.
func (n *network) Close() error {
	n.mu.Lock()
	own := n.proxy
	n.mu.Unlock()
	if own != nil {
		_ = own.Close() // it waits for requests, which may look up their clients
	}
	n.mu.Lock() // a process that has ended may still be asked on which ports it listens
	defer n.mu.Unlock()
	n.asking.Lock()
	defer n.asking.Unlock()
	return errors.Join(n.diag.Close(), n.namespace.file.Close())
}

// copied returns a descriptor of the namespace, which stays open when the network is closed. The
// caller closes it.
func (n *network) copied() (fd int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return unix.FcntlInt(n.namespace.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// loopback brings up the network's loopback.
func (m *maker) loopback() {
	m.about = "bringing the loopback up"
	request := &[40]byte{'l', 'o', 16: unix.IFF_UP}
	s := m.opens(m.do(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	m.do(unix.SYS_IOCTL, s.at(), unix.SIOCSIFFLAGS, unsafe.Pointer(request)).hold(request)
}

// wayOut returns the port of the proxy, which it starts if there is none.
func (n *network) wayOut(users *os.File, outlet Outlet) (port int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proxy == nil {
		l, err := n.listen(users)
		if err != nil {
			return 0, err
		}
		n.proxyAt.Store(uint32(l.Addr().(*net.TCPAddr).Port)) // before anything connects to it
		n.proxy = newProxy(outlet, &reception{l, n}, n.client)
	}
	return n.proxy.port, nil
}

// listen makes a proxy's socket.
func (n *network) listen(users *os.File) (net.Listener, error) {
	m := newMaker(users)
	m.about = "making the proxy's socket"
	address := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: proxyPort>>8 | proxyPort&0xff<<8, Addr: localhost.As4()}
	m.do(unix.SYS_SETNS, int(n.namespace.file.Fd()), unix.CLONE_NEWNET)
	s := m.kept(m.do(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0))
	m.do(unix.SYS_BIND, s.at(), unsafe.Pointer(address), int(unsafe.Sizeof(*address))).hold(address).spare() // the port is taken: use any free one
	m.do(unix.SYS_LISTEN, s.at(), 128)
	if err := m.carryOut(); err != nil {
		return nil, err
	}
	f := s.file("proxy")
	defer f.Close()
	return net.FileListener(f)
}

// sioCUnixFile is SIOCUNIXFILE of linux/un.h: it opens the file that a Unix socket is bound to.
const sioCUnixFile = 0x89E0

// noteListening records the file that a Unix socket is bound to, when a process is about to listen
// on it.
func (n *network) noteListening(socket int) {
	var own, file unix.Stat_t
	fd, err := unix.IoctlRetInt(socket, sioCUnixFile)
	if err != nil {
		return // it is not bound to a file
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil || unix.Fstat(socket, &own) != nil || unix.Fstat(fd, &file) != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, l := range n.bound { // drop closed sockets
		if !n.alive(l) {
			delete(n.bound, id)
		}
	}
	n.bound[identityOf(&file)] = listening{uint32(own.Ino), cookie}
}

// listensAt reports whether a process in the network listens on a Unix socket that is bound to
// exactly that file.
func (n *network) listensAt(file identity) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.bound[file]
	return ok && n.alive(l) // while the socket lives, the kernel does not reuse the file's number
}

// alive reports whether the socket still exists in this network.
func (n *network) alive(l listening) bool {
	n.asking.Lock()
	defer n.asking.Unlock()
	return sockdiag.HasUnix(n.diag, l.inode, l.cookie)
}

// connected returns the socket that is connected from local to remote in this network.
func (n *network) connected(local, remote netip.AddrPort) (s sockdiag.TCP, there bool) {
	n.asking.Lock()
	defer n.asking.Unlock()
	return sockdiag.Connected(n.diag, local, remote)
}
