package sockdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	byFamily    = 20 // SOCK_DIAG_BY_FAMILY of linux/sock_diag.h: the type of a query and of its answer
	listenState = 10 // TCP_LISTEN of linux/tcp_states.h
	requestSize = 56 // of struct inet_diag_req_v2 of linux/inet_diag.h
	answerSize  = 72 // of struct inet_diag_msg
)

// A TCP is one TCP socket. Its addresses are as the kernel has them: an IPv6 socket that carries an
// IPv4 connection has mapped ones.
type TCP struct {
	Local, Remote netip.AddrPort
	UID           int    // the user that has made it
	Inode         uint32 // 0: no process has it open any more, and UID means nothing
	listens       bool
}

// Open makes a socket for queries in the calling thread's network namespace.
func Open() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("making a socket for queries about sockets: %w", err)
	}
	return os.NewFile(uintptr(fd), "sock_diag"), nil
}

// HasUnix reports whether the Unix socket with that inode and cookie exists.
func HasUnix(diag *os.File, inode uint32, cookie uint64) bool {
	request := make([]byte, 24) // struct unix_diag_req of linux/unix_diag.h
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[8:], inode)
	binary.NativeEndian.PutUint32(request[16:], uint32(cookie))
	binary.NativeEndian.PutUint32(request[20:], uint32(cookie>>32))
	found, err := query(diag, request, 0)
	return err == nil && len(found) == 1
}

// Listens reports whether a TCP socket accepts connections to the address, or to all addresses at
// its port.
func Listens(diag *os.File, at netip.AddrPort) bool {
	found, err := query(diag, inetRequest(at, netip.AddrPortFrom(at.Addr(), 1)), 0) // from any other port
	return err == nil && len(found) == 1
}

// Connected returns the socket that is connected from local to remote. ok is false if there is none.
func Connected(diag *os.File, local, remote netip.AddrPort) (s TCP, ok bool) {
	found, err := query(diag, inetRequest(local, remote), 0)
	if err != nil || len(found) != 1 {
		return TCP{}, false
	}
	s, ok = parseTCP(found[0])
	return s, ok && !s.listens // the kernel also returns a socket that would accept such a connection
}

// Listeners returns the TCP sockets that accept connections.
func Listeners(diag *os.File) (all []TCP, err error) {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, requestSize)
		request[0], request[1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(request[4:], 1<<listenState)
		found, err := query(diag, request, unix.NLM_F_DUMP)
		if err != nil {
			return nil, err
		}
		for _, answer := range found {
			if s, ok := parseTCP(answer); ok {
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// inetRequest asks for one TCP socket.
func inetRequest(local, remote netip.AddrPort) []byte {
	request := make([]byte, requestSize)
	request[0], request[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if local.Addr().Is4() {
		request[0] = unix.AF_INET
	}
	binary.BigEndian.PutUint16(request[8:], local.Port())
	binary.BigEndian.PutUint16(request[10:], remote.Port())
	copy(request[12:], local.Addr().AsSlice())
	copy(request[28:], remote.Addr().AsSlice())
	copy(request[48:], "\xff\xff\xff\xff\xff\xff\xff\xff") // INET_DIAG_NOCOOKIE
	return request
}

// parseTCP reads a struct inet_diag_msg.
func parseTCP(b []byte) (s TCP, ok bool) {
	if len(b) < answerSize || b[0] != unix.AF_INET && b[0] != unix.AF_INET6 {
		return TCP{}, false
	}
	address := func(at int) netip.Addr {
		if b[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[at:]))
		}
		return netip.AddrFrom16([16]byte(b[at:]))
	}
	return TCP{
		Local:   netip.AddrPortFrom(address(8), binary.BigEndian.Uint16(b[4:])),
		Remote:  netip.AddrPortFrom(address(24), binary.BigEndian.Uint16(b[6:])),
		UID:     int(binary.NativeEndian.Uint32(b[64:])),
		Inode:   binary.NativeEndian.Uint32(b[68:]),
		listens: b[1] == listenState,
	}, true
}

// queries numbers the queries of this process.
var queries atomic.Uint32

// The sizes of buffers for an answer: about one socket, and the largest part that the kernel sends
// of a dump.
const (
	oneAnswer  = 4 << 10
	dumpAnswer = 32 << 10
)

// query sends a request and returns what the kernel found. diag must not be used by others
// meanwhile. What is left of an earlier query, which an error has ended, is skipped.
func query(diag *os.File, request []byte, flags uint16) (found [][]byte, err error) {
	number, dump := queries.Add(1), flags&unix.NLM_F_DUMP != 0
	message := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(request))
	*(*unix.NlMsghdr)(unsafe.Pointer(&message[0])) = unix.NlMsghdr{
		Len: uint32(cap(message)), Type: byFamily, Flags: unix.NLM_F_REQUEST | flags, Seq: number,
	}
	fd, size := int(diag.Fd()), oneAnswer
	if err := unix.Sendto(fd, append(message, request...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	if dump {
		size = dumpAnswer
	}
	for buf := make([]byte, size); ; {
		got, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT) // the kernel answers while it is asked
		if err != nil {
			return nil, err
		}
		more, done, err := parse(buf[:got], number)
		found = append(found, more...)
		if done || err != nil || !dump && len(more) > 0 {
			return found, err
		}
	}
}

// parse reads the messages of one answer to a query. done: it was the last one of a dump.
func parse(b []byte, query uint32) (found [][]byte, done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, false, fmt.Errorf("an answer about sockets: %w", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Seq != query:
		case m.Header.Type == byFamily:
			found = append(found, append([]byte(nil), m.Data...))
		case m.Header.Type == unix.NLMSG_DONE:
			return found, true, nil
		case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
			if errno := -int32(binary.NativeEndian.Uint32(m.Data)); errno != 0 {
				return nil, true, unix.Errno(errno)
			}
		}
	}
	return found, false, nil
}
