package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/tooltest/ownspace"
)

// A room is a server on the loopback with a Forward to it.
type room struct {
	*Forward
	at     string
	server net.Listener
}

// newRoom opens a forward to a server that passes each of its connections to serve.
func newRoom(t *testing.T, serve func(*net.TCPConn)) *room {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 98, 7, 6}), uint16(l.Addr().(*net.TCPAddr).Port))
	f, err := Open(at, func(ctx context.Context) (*net.TCPConn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		_ = l.Close()
		<-served
	})
	return &room{f, at.String(), l}
}

func (r *room) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

// TestHalfClose: the end of what a client sends is passed on alone, and the server can still answer.
func TestHalfClose(t *testing.T) {
	r := newRoom(t, func(c *net.TCPConn) {
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes", len(all))
	})
	c := r.dial(t)
	fmt.Fprint(c, strings.Repeat("x", 1<<20))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != "1048576 bytes" {
		t.Errorf("the answer is %q, %v", got, err)
	}
}

// TestUpgrade: after the headers of a web socket both sides send when they want to.
func TestUpgrade(t *testing.T) {
	r := newRoom(t, func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for {
			if line, err := in.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x02hi")
		_, _ = io.Copy(c, in)
	})
	c := r.dial(t)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
	for _, want := range []string{"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x02hi", "\x81\x00\xff", "\x89"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("%q came, %v; want %q", got, err, want)
		}
		fmt.Fprint(c, map[string]string{"\x81\x00\xff": "\x89"}[want])
		if want[0] == 'H' {
			fmt.Fprint(c, "\x81\x00\xff")
		}
	}
}

// TestClose: the end of a forward ends its connections, also those whose client does not read.
func TestClose(t *testing.T) {
	r := newRoom(t, func(c *net.TCPConn) { _, _ = io.Copy(c, zeros{}) })
	c := r.dial(t)
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	r.Forward.Close()
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v", err)
	}
	if c, err := net.Dial("tcp", r.at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting afterwards: %v, %v", c, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestBounded: connections beyond the limit wait until another one has ended.
func TestBounded(t *testing.T) {
	began := make(chan struct{}, 2*manyConnections)
	r := newRoom(t, func(c *net.TCPConn) {
		began <- struct{}{}
		echo(c)
	})
	var open []*net.TCPConn
	for range manyConnections {
		open = append(open, r.dial(t))
		<-began
	}
	waits := r.dial(t)
	fmt.Fprint(waits, "late")
	for range 100 { // those that are served are served further
		if _, err := io.ReadFull(echoed(t, open[0]), make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(began) != 0 {
		t.Error("one more is served than the limit says")
	}
	_ = open[0].Close()
	<-began
	got := make([]byte, 4)
	if _, err := io.ReadFull(waits, got); err != nil || string(got) != "late" {
		t.Errorf("%q came, %v", got, err)
	}
}

// echoed sends a byte over a connection whose server sends it back.
func echoed(t *testing.T, c *net.TCPConn) io.Reader {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTaken: an address at which another program listens is not taken over, whether the program has
// that address only or all addresses.
func TestTaken(t *testing.T) {
	for _, address := range []string{"127.98.7.5:0", "0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 98, 7, 5}), uint16(l.Addr().(*net.TCPAddr).Port))
		if f, err := Open(at, nil); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s beside %s: %v, %v", at, address, f, err)
		}
		_ = l.Close()
	}
}

// TestServerGone: a connection is reset if there is no server.
func TestServerGone(t *testing.T) {
	r := newRoom(t, echo)
	_ = r.server.Close()
	c, err := net.Dial("tcp", r.at)
	if err == nil { // otherwise it was reset before Dial returned
		defer c.Close()
		_, err = io.ReadAll(c)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v", err)
	}
}

// TestOtherUsers: another user of the machine reaches nothing, also with a connection that is closed
// before it is looked at.
func TestOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		ownspace.Lacks(t, "run this as root, who can start a process of another user")
	}
	for _, uid := range []uint32{65534, 0} {
		reached := make(chan struct{}, 100)
		r := newRoom(t, func(c *net.TCPConn) {
			reached <- struct{}{}
			echo(c)
		})
		host, port, _ := net.SplitHostPort(r.at)
		for _, script := range []string{"exec 3<>/dev/tcp/%s/%s; echo hello >&3; read -t 20 x <&3; echo got $x", "for i in {1..20}; do echo hello >/dev/tcp/%s/%s; done"} {
			bash := exec.CommandContext(t.Context(), "/bin/bash", "-c", fmt.Sprintf(script, host, port))
			bash.Dir, bash.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			out, err := bash.CombinedOutput()
			if got := strings.Contains(string(out), "got hello"); strings.Contains(script, "got") && got != (uid == 0) {
				t.Errorf("uid %d: %v\n%s", uid, err, out)
			}
		}
		r.Forward.Close() // no connection is served any more
		_ = r.server.Close()
		if n := len(reached); (n > 0) != (uid == 0) {
			t.Errorf("%d connections of uid %d reached the server", n, uid)
		}
	}
}
