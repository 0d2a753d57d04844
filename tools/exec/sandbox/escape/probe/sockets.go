//go:build linux

// Doors to other machines and to services on this one. What is sent is the door's name, by which the suite knows it again.

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
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

func sockets() []door {
	f := func(name string, try func(s *scene.Scene, say []byte) error) door {
		return plain("sockets", name, func(s *scene.Scene) error { return try(s, []byte(scene.Slug(name)+"\n")) })
	}
	made := []door{
		f("connect to a TCP listener on the host's loopback", func(s *scene.Scene, say []byte) error { return speak("tcp", s.TCP, say) }),
		f("send a UDP datagram to the host's loopback", func(s *scene.Scene, say []byte) error { return speak("udp", s.UDP, say) }),
		f("sendto a UDP datagram unconnected", func(s *scene.Scene, say []byte) error {
			return sendTo(unix.AF_INET, unix.SOCK_DGRAM, inet(s.UDP), 0, say)
		}),
		f("TCP fast open to the host's loopback", func(s *scene.Scene, say []byte) error {
			return sendTo(unix.AF_INET, unix.SOCK_STREAM, inet(s.TCP), unix.MSG_FASTOPEN, say)
		}),
		f("connect by MPTCP to the host's loopback", func(s *scene.Scene, say []byte) error {
			fd := must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 262))
			return errors.Join(unix.Connect(fd, inet(s.TCP)), unix.Send(fd, say, 0))
		}),
		f("connect by an IPv4-mapped IPv6 address", func(s *scene.Scene, say []byte) error {
			fd := must(unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
			v4 := inet(s.TCP)
			to := &unix.SockaddrInet6{Port: v4.Port, Addr: netip.AddrFrom4(v4.Addr).As16()}
			check(unix.Connect(fd, to))
			return unix.Send(fd, say, 0)
		}),
		f("connect to a pathname Unix socket", func(s *scene.Scene, say []byte) error { return speak("unix", s.Stream, say) }),
		f("connect to the daemon's socket", func(s *scene.Scene, say []byte) error { return speak("unix", s.Sockets+"/toold.sock", say) }),
		f("connect to a Unix socket of the system", func(s *scene.Scene, say []byte) error {
			if s.System == "" {
				return unix.ENOENT // only root can make one
			}
			return speak("unix", s.System, say)
		}),
		f("connect to a pathname Unix socket through the working directory", func(s *scene.Scene, say []byte) error {
			check(unix.Chdir(filepath.Dir(s.Stream)))
			return speak("unix", filepath.Base(s.Stream), say)
		}),
		f("connect to a pathname Unix socket through a symlink in the root", func(s *scene.Scene, say []byte) error {
			check(unix.Symlink(s.Stream, own(s, "sock")))
			check(unix.Chdir(s.Own))
			return speak("unix", "sock", say)
		}),
		f("connect to a pathname Unix socket by a hard link planted in the root", func(s *scene.Scene, say []byte) error {
			return speak("unix", s.StreamPlanted, say)
		}),
		f("connect to a pathname Unix socket through /proc/PID/root", func(s *scene.Scene, say []byte) error {
			return speak("unix", fmt.Sprintf("/proc/%d/root%s", s.Victim.PID, s.Stream), say)
		}),
		f("connect to a pathname Unix socket while a thread exchanges the address", exchangeAddress),
		f("connect to a pathname Unix socket while a thread exchanges the socket", exchangeSocket),
		f("connect to a pathname Unix socket while a thread exchanges the file", exchangeFile),
		f("send a datagram to a pathname Unix socket", func(s *scene.Scene, say []byte) error { return speak("unixgram", s.Datagram, say) }),
		f("send a datagram through a socketpair to a pathname", func(s *scene.Scene, say []byte) error {
			pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
			return unix.Sendto(pair[0], say, 0, &unix.SockaddrUnix{Name: s.Datagram})
		}),
		f("sendmsg through a socketpair to an abstract name", func(s *scene.Scene, say []byte) error {
			pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
			return unix.Sendmsg(pair[0], say, nil, &unix.SockaddrUnix{Name: "@" + s.AbstractDatagram}, 0)
		}),
		f("reconnect a socketpair to a pathname", func(s *scene.Scene, say []byte) error {
			pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
			check(unix.Connect(pair[0], &unix.SockaddrUnix{Name: s.Datagram}))
			return unix.Send(pair[0], say, 0)
		}),
		f("connect to an abstract Unix socket", func(s *scene.Scene, say []byte) error { return speak("unix", "@"+s.Abstract, say) }),
		f("send a datagram to an abstract Unix socket", func(s *scene.Scene, say []byte) error { return speak("unixgram", "@"+s.AbstractDatagram, say) }),
		f("bind a pathname Unix socket outside", func(s *scene.Scene, _ []byte) error {
			if err := unix.Chdir(s.Out); err != nil { // the whole path may be too long
				return err
			}
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			return errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: "new"}))
		}),
		{"bind an abstract name that is seen outside", "sockets", false, beFound},
		{"accept a TCP connection from outside", "sockets", false, listen},
		{"add an address by netlink", "sockets", false, addAddress},
		{"inherited descriptors beyond 3", "sockets", false, inherited},
	}
	for _, k := range families {
		made = append(made, door{k.name, "socket families", false, func(*scene.Scene) (string, error) {
			_, err := unix.Socket(k.family, k.kind|unix.SOCK_CLOEXEC, k.protocol)
			return "there is one", err
		}})
	}
	return made
}

// speak connects, says it, and waits for the other end to close where there are connections.
func speak(network, address string, say []byte) error {
	c := must(net.DialTimeout(network, address, 5*time.Second))
	defer c.Close()
	_, err := c.Write(say)
	return err
}

func inet(address string) *unix.SockaddrInet4 {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		panic("BUG: the scene's address: " + err.Error())
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func sendTo(family, kind int, to unix.Sockaddr, flags int, say []byte) error {
	fd := must(unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0))
	defer unix.Close(fd)
	return unix.Sendto(fd, say, flags, to)
}

// beFound waits for the process outside, which tries that name all the time.
func beFound(s *scene.Scene) (string, error) {
	l := must(net.ListenUnix("unix", &net.UnixAddr{Name: "@" + s.Bound, Net: "unix"}))
	check(l.SetDeadline(time.Now().Add(50 * knocking)))
	c, err := l.Accept()
	if err != nil {
		return "", fmt.Errorf("bound, but nobody came: %w", err)
	}
	return "a process outside came in", c.Close()
}

// listen reports whether a port opened here is the host's: it is when the host's listener's port is taken.
func listen(s *scene.Scene) (string, error) {
	l, err := net.Listen("tcp", s.TCP)
	if err == nil {
		_ = l.Close()
		return "", errors.New("the host's port is free: this is another network")
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return "", err
	}
	l = must(net.Listen("tcp", "127.0.0.1:0"))
	return "listening on the host's loopback", l.Close()
}

// addAddress asks for an address on an interface that does not exist: a refusal that speaks of it comes after the question
// who asks.
func addAddress(*scene.Scene) (string, error) {
	fd := must(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE))
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
		return "", errors.Join(err, errors.New("no answer"))
	}
	return reached(errno(unix.Errno(-*(*int32)(unsafe.Pointer(&answer[16])))))
}

// inherited finds what came over the exec: the probe's own descriptors all close on exec, these did not.
func inherited(*scene.Scene) (string, error) {
	var found []string
	for fd := 3; fd < 4096; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			what = err.Error()
		}
		if fd > 3 || slices.Contains([]string{"dir", "sock"}, kind(fd)) {
			found = append(found, fmt.Sprintf("%d is %s", fd, what))
		}
	}
	if len(found) == 0 {
		return "", errors.New("none")
	}
	return fmt.Sprint(found), nil
}

// kind distinguishes descriptors that give access to more from those that only carry bytes.
func kind(fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return ""
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "dir"
	case unix.S_IFSOCK:
		return "sock"
	}
	return "bytes"
}
