package sockdiag

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func opened(t *testing.T) *os.File {
	t.Helper()
	diag, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = diag.Close() })
	return diag
}

// TestTCP: a listener is found until it is closed, and of a connection both ends are, by their user.
func TestTCP(t *testing.T) {
	diag := opened(t)
	for _, address := range []string{"127.0.0.1:0", "127.99.1.2:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		at := netip.MustParseAddrPort(l.Addr().String())
		isIt := func(s TCP) bool { return s.Local == at }
		if all, err := Listeners(diag); err != nil || !slices.ContainsFunc(all, isIt) || !Listens(diag, at) {
			t.Errorf("%s is not found: %v, %v", at, all, err)
		}
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept() // until then its end belongs to no process
		if err != nil {
			t.Fatal(err)
		}
		from := netip.MustParseAddrPort(c.LocalAddr().String())
		for _, ends := range [][2]netip.AddrPort{{from, at}, {at, from}} {
			if s, ok := Connected(diag, ends[0], ends[1]); !ok || s.UID != os.Getuid() || s.Inode == 0 || s.Local != ends[0] || s.Remote != ends[1] {
				t.Errorf("the end at %s is %+v, %v", ends[0], s, ok)
			}
		}
		_ = accepted.Close()
		if _, ok := Connected(diag, at, netip.AddrPortFrom(from.Addr(), 1)); ok {
			t.Errorf("the listener at %s counts as connected", at)
		}
		_ = c.Close()
		_ = l.Close()
		if all, err := Listeners(diag); err != nil || slices.ContainsFunc(all, isIt) || Listens(diag, at) {
			t.Errorf("%s is found after its end: %v, %v", at, all, err)
		}
	}
}

// TestLeftover: what an earlier query has left unread is not the answer to the next one.
func TestLeftover(t *testing.T) {
	diag := opened(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := netip.MustParseAddrPort(l.Addr().String())
	for _, request := range [][]byte{inetRequest(at, netip.AddrPortFrom(at.Addr(), 1)), make([]byte, requestSize)} {
		message := make([]byte, unix.NLMSG_HDRLEN)
		binary.NativeEndian.PutUint32(message, uint32(len(message)+len(request)))
		binary.NativeEndian.PutUint16(message[4:], byFamily)
		binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST)
		if _, err := unix.Write(int(diag.Fd()), append(message, request...)); err != nil {
			t.Fatal(err)
		}
		if _, ok := Connected(diag, netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")); ok {
			t.Error("a connection that there is not was found")
		}
		if !Listens(diag, at) {
			t.Errorf("%s is not found", at)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte{88, 0, 0, 0, byFamily, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, listenState}, make([]byte, 70)...))
	f.Add([]byte{20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255})
	f.Fuzz(func(_ *testing.T, b []byte) {
		found, _, _ := parse(b, 0)
		for _, answer := range found {
			parseTCP(answer)
		}
	})
}
