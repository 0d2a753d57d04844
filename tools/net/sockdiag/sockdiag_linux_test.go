package sockdiag

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
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
		from := netip.MustParseAddrPort(c.LocalAddr().String())
		for _, ends := range [][2]netip.AddrPort{{from, at}, {at, from}} {
			if s, ok := Connected(diag, ends[0], ends[1]); ends[0] == from && (!ok || s.UID != os.Getuid() || s.Inode == 0 || s.Local != from || s.Remote != at) {
				t.Errorf("the end at %s is %+v, %v", ends[0], s, ok)
			}
		}
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

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte{88, 0, 0, 0, byFamily, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, listenState}, make([]byte, 70)...))
	f.Add([]byte{20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255})
	f.Fuzz(func(_ *testing.T, b []byte) {
		found, _, _ := parse(b)
		for _, answer := range found {
			parseTCP(answer)
		}
	})
}
