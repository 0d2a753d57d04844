//go:build linux

// Doors to other machines and to services on this one. What is sent is the door's name, by which the suite knows it again.

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// families are those of which a socket alone is a door: each is a piece of the kernel that nothing in a build needs, and
// most of them have been a way to become root.
var families = []struct {
	name                   string
	family, kind, protocol int
}{
	{"a raw IPv4 socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	{"a raw IPv6 socket", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
	{"a packet socket", unix.AF_PACKET, unix.SOCK_RAW, 0x0300},
	{"a packet datagram socket", unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300},
	{"a vsock socket", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	{"an AF_ALG socket", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	{"a Bluetooth socket", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1},
	{"a TIPC socket", unix.AF_TIPC, unix.SOCK_STREAM, 0},
	{"an RDS socket", unix.AF_RDS, unix.SOCK_SEQPACKET, 0},
	{"an SCTP socket", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP},
	{"an MPTCP socket", unix.AF_INET, unix.SOCK_STREAM, 262},
	{"a DCCP socket", unix.AF_INET, 6, 33},
	{"an SMC socket", unix.AF_SMC, unix.SOCK_STREAM, 0},
	{"an XDP socket", unix.AF_XDP, unix.SOCK_RAW, 0},
	{"a CAN socket", unix.AF_CAN, unix.SOCK_RAW, 1},
	{"a KCM socket", unix.AF_KCM, unix.SOCK_DGRAM, 0},
	{"a QIPCRTR socket", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0},
	{"an L2TP socket", unix.AF_INET, unix.SOCK_DGRAM, 115},
	{"a PPPoX socket", unix.AF_PPPOX, unix.SOCK_STREAM, 0},
	{"a LLC socket", unix.AF_LLC, unix.SOCK_STREAM, 0},
	{"an X.25 socket", unix.AF_X25, unix.SOCK_SEQPACKET, 0},
	{"an AppleTalk socket", unix.AF_APPLETALK, unix.SOCK_DGRAM, 0},
	{"an NFC socket", unix.AF_NFC, unix.SOCK_SEQPACKET, 0},
	{"a key management socket", unix.AF_KEY, unix.SOCK_RAW, 2},
	{"an MCTP socket", 45, unix.SOCK_DGRAM, 0},
	{"a ping socket", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
	{"a netfilter netlink socket that may change rules", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
}

func sockets(p *probe) {
	f, in := p.outside("sockets"), p.inside("sockets")
	speaks := func(name, network, address string) {
		f(name, func() error { return p.speak(network, address) })
	}
	speaks("connect to a TCP listener on the host's loopback", "tcp", p.TCP)
	speaks("send a UDP datagram to the host's loopback", "udp", p.UDP)
	f("sendto a UDP datagram unconnected", func() error {
		return unix.Sendto(socket(unix.AF_INET, unix.SOCK_DGRAM, 0), p.say, 0, inet(p.UDP))
	})
	f("TCP fast open to the host's loopback", func() error {
		return unix.Sendto(socket(unix.AF_INET, unix.SOCK_STREAM, 0), p.say, unix.MSG_FASTOPEN, inet(p.TCP))
	})
	f("connect by MPTCP to the host's loopback", func() error {
		return p.sayTo(socket(unix.AF_INET, unix.SOCK_STREAM, 262), inet(p.TCP))
	})
	f("connect by an IPv4-mapped IPv6 address", func() error {
		v4 := inet(p.TCP)
		to := &unix.SockaddrInet6{Port: v4.Port, Addr: netip.AddrFrom4(v4.Addr).As16()}
		return p.sayTo(socket(unix.AF_INET6, unix.SOCK_STREAM, 0), to)
	})
	speaks("connect to a pathname Unix socket", "unix", p.Stream)
	speaks("connect to the daemon's socket", "unix", p.Sockets+"/toold.sock")
	speaks("connect to a Unix socket of the system", "unix", cmp.Or(p.System, "/nowhere")) // only root can make one
	f("connect to a pathname Unix socket through the working directory", func() error {
		check(unix.Chdir(filepath.Dir(p.Stream)))
		return p.speak("unix", filepath.Base(p.Stream))
	})
	f("connect to a pathname Unix socket through a symlink in the root", func() error {
		check(errors.Join(unix.Chdir(p.own), unix.Symlink(p.Stream, "sock")))
		return p.speak("unix", "sock")
	})
	speaks("connect to a pathname Unix socket by a hard link planted in the root", "unix", p.StreamPlanted)
	speaks("connect to a pathname Unix socket through /proc/PID/root", "unix", proc(p.Victim.PID, "root"+p.Stream))
	f("connect to a pathname Unix socket while a thread exchanges the address", p.exchangeAddress)
	f("connect to a pathname Unix socket while a thread exchanges the socket", p.exchangeSocket)
	f("connect to a pathname Unix socket while a thread exchanges the file", p.exchangeFile)
	speaks("send a datagram to a pathname Unix socket", "unixgram", p.Datagram)
	f("send a datagram through a socketpair to a pathname", func() error {
		return unix.Sendto(datagrams(), p.say, 0, &unix.SockaddrUnix{Name: p.Datagram})
	})
	f("sendmsg through a socketpair to an abstract name", func() error {
		return unix.Sendmsg(datagrams(), p.say, nil, &unix.SockaddrUnix{Name: "@" + p.AbstractDatagram}, 0)
	})
	f("reconnect a socketpair to a pathname", func() error {
		return p.sayTo(datagrams(), &unix.SockaddrUnix{Name: p.Datagram})
	})
	speaks("connect to an abstract Unix socket", "unix", "@"+p.Abstract)
	speaks("send a datagram to an abstract Unix socket", "unixgram", "@"+p.AbstractDatagram)
	f("bind a pathname Unix socket outside", func() error {
		check(unix.Chdir(p.out)) // the whole path may be too long
		return unix.Bind(socket(unix.AF_UNIX, unix.SOCK_STREAM, 0), &unix.SockaddrUnix{Name: "new"})
	})
	in("bind an abstract name that is seen outside", p.beFound)
	in("accept a TCP connection from outside", p.listen)
	in("add an address by netlink", p.addAddress)
	in("inherited descriptors beyond 3", p.inherited)
}

func socketFamilies(p *probe) {
	f := p.inside("socket families")
	for _, k := range families {
		f(k.name, func() error { return unix.Close(socket(k.family, k.kind, k.protocol)) })
	}
}

// speak connects, and says it.
func (p *probe) speak(network, address string) error {
	c := must(net.DialTimeout(network, address, 5*time.Second))
	defer c.Close()
	_, err := c.Write(p.say)
	return err
}

// sayTo connects a socket, and says it.
func (p *probe) sayTo(fd int, to unix.Sockaddr) error {
	check(unix.Connect(fd, to))
	return unix.Send(fd, p.say, 0)
}

func socket(family, kind, protocol int) int {
	return must(unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol))
}

// datagrams makes a pair of sockets, and returns one.
func datagrams() int {
	return must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))[0]
}

func inet(address string) *unix.SockaddrInet4 {
	a := must(netip.ParseAddrPort(address))
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// beFound waits for the process outside, which tries that name all the time.
func (p *probe) beFound() error {
	l := must(net.ListenUnix("unix", &net.UnixAddr{Name: "@" + p.Bound, Net: "unix"}))
	check(l.SetDeadline(time.Now().Add(50 * knocking)))
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("bound, but nobody came: %w", err)
	}
	return p.did(c.Close(), "a process outside came in")
}

// listen reports whether a port opened here is the host's: it is when the host's listener's port is taken.
func (p *probe) listen() error {
	l, err := net.Listen("tcp", p.TCP)
	if err == nil {
		_ = l.Close()
		return errors.New("the host's port is free: this is another network")
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return err
	}
	return p.did(must(net.Listen("tcp", "127.0.0.1:0")).Close(), "listening on the host's loopback")
}

// addAddress asks for an address on an interface that does not exist: a refusal that speaks of it comes after the question
// who asks.
func (p *probe) addAddress() error {
	fd := socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	const nobody = 0x7ffffff0
	message := make([]byte, 16+8+8)
	*(*unix.NlMsghdr)(unsafe.Pointer(&message[0])) = unix.NlMsghdr{
		Len: uint32(len(message)), Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE, Seq: 1,
	}
	*(*unix.IfAddrmsg)(unsafe.Pointer(&message[16])) = unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Index: nobody}
	*(*unix.RtAttr)(unsafe.Pointer(&message[24])) = unix.RtAttr{Len: 8, Type: unix.IFA_LOCAL}
	copy(message[28:], []byte{127, 9, 9, 9})
	check(unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return errors.Join(err, errors.New("no answer"))
	}
	return p.reached(errno(unix.Errno(-*(*int32)(unsafe.Pointer(&answer[16])))))
}

// inherited finds what came over the exec: the probe's own descriptors all close on exec, these did not. The first may be there
// if it only carries bytes, and does not give access to more.
func (p *probe) inherited() error {
	var found []string
	for fd := 3; fd < 4096; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		var st unix.Stat_t
		_ = unix.Fstat(fd, &st)
		if kind := st.Mode & unix.S_IFMT; fd > 3 || kind == unix.S_IFDIR || kind == unix.S_IFSOCK {
			what, err := os.Readlink(self(fd))
			found = append(found, fmt.Sprintf("%d is %s", fd, cmp.Or(what, fmt.Sprint(err))))
		}
	}
	if len(found) == 0 {
		return errors.New("none")
	}
	return p.did(nil, "%v", found)
}
