package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/tools/net/sockdiag"
)

// counter serves ways out: it answers each request with the hosts of its client, and asks about the path's.
func counter(l net.Listener, clients Clients) io.Closer {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, known := clients(r.RemoteAddr, "")
		answer := Answer("nobody")
		if c.Ask != nil {
			answer = c.Ask(r.Context(), Host{Name: strings.Trim(r.URL.Path, "/"), Port: 443})
		}
		fmt.Fprintln(w, known, c.Network.Allowed, answer)
		if known {
			c.Denied(Denial{Operation: Connecting, Target: r.URL.Path, Count: 1, Answer: answer})
		}
	})}
	go func() { _ = s.Serve(l) }()
	return s
}

// outletRunner returns a runner with that way out, where the full tier is.
func outletRunner(t *testing.T) (*Runner, scene) {
	t.Helper()
	r, err := New(t.TempDir(), counter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	s := newScene(t, Full)
	if c, err := r.Confinement(s.Policy); err != nil || c.Tier != Full {
		skip(t, fmt.Sprintf("run this where the kernel has Landlock and lets users make namespaces: %v, %v", c, err))
	}
	s.Session = "one"
	return r, s
}

// Trees of one session that use its proxy at the same time are told apart, whatever they are called and from wherever they
// connect.
func TestClientsOfOneProxy(t *testing.T) {
	r, s := outletRunner(t)
	const request = `p=${HTTP_PROXY##*[@/]}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; printf 'GET /a.example HTTP/1.0\r\n\r\n' >&3; sed -n '$p' <&3; exec 3>&-; `
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			own := s
			own.Network.Allowed = []string{fmt.Sprintf("%d.example", i)}
			var out strings.Builder
			p, err := r.Start(Command{
				ID: "same", Path: "/bin/bash", Args: []string{"bash", "-c", strings.Repeat(request, 20)}, Dir: s.root, Env: []string{"PATH=/usr/bin:/bin"},
				Stdout: &out, Stderr: io.Discard, Policy: own.Policy,
				Ask: func(_ context.Context, to Host) Answer { return Answer(fmt.Sprint(i, to.Name, to.Port, to.Program)) },
			})
			if err != nil {
				t.Error(err)
				return
			}
			exit := p.Wait()
			want := strings.Repeat(fmt.Sprintf("true [%d.example] %[1]da.example443bash\n", i), 20)
			if out.String() != want {
				t.Errorf("tree %d printed %q, want %q", i, out.String(), want)
			}
			if d := exit.Denials; len(d) != 1 || d[0].Target != "/a.example" || d[0].Count != 20 {
				t.Errorf("tree %d was denied %+v", i, d)
			}
		})
	}
	all.Wait()
	n := r.host.instances.networks["one"].value
	n.mu.Lock()
	defer n.mu.Unlock()
	for own, c := range n.clients {
		if !c.accepted { // the others go when the proxy has closed them
			t.Errorf("%s is still expected", own)
		}
	}
}

// A tree without a way out finds nothing at the proxy's port, and one that nobody asks for is refused without a question.
func TestNoWayOut(t *testing.T) {
	r, s := outletRunner(t)
	s.Network.Allowed = []string{"a.example"}
	if p, _ := s.run(t, r, `p=${HTTP_PROXY##*[@/]}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; sed -n '$p' <&3`); p.out.String() != "true [a.example] nobody\n" {
		t.Errorf("printed %q, on stderr: %s", p.out, p.err)
	}
	s.Network.Allowed = nil
	if p, _ := s.run(t, r, `for host in 127.0.0.1 0.0.0.0 ::ffff:127.0.0.1; do (exec 3<>/dev/tcp/$host/3128) || echo refused; done; echo "$HTTP_PROXY"`); p.out.String() != "refused\nrefused\nrefused\n\n" {
		t.Errorf("printed %q, on stderr: %s", p.out, p.err)
	}
}

// connecting is a program that connects to the proxy in unusual ways.
const connectionScript = `
import errno, socket, struct
proxy = ("127.0.0.1", 3128)
def ask(s):
    s.sendall(b"GET /a.example HTTP/1.0\r\n\r\n")
    data = b""
    while True:
        got = s.recv(4096)
        if not got: break
        data += got
    return data.decode().splitlines()[-1]
def report(name, f):
    try: print(name, f(), flush=True)
    except OSError as e: print(name, e.strerror, flush=True)
def mapped():
    s = socket.socket(socket.AF_INET6); s.connect(("::ffff:127.0.0.1", 3128)); return ask(s)
def any_address():
    s = socket.socket(); s.connect(("0.0.0.0", 3128)); return ask(s)
def own_port():
    s = socket.socket(); s.bind(("", 4001)); s.connect(proxy); return ask(s)
def own_address():
    s = socket.socket(); s.bind(("127.5.5.5", 0)); s.connect(proxy); return ask(s)
def pending():
    s = socket.socket(); s.setblocking(False); s.connect_ex(proxy); s.connect_ex(proxy); s.setblocking(True); return ask(s)
def fast():
    s = socket.socket(); s.sendto(b"GET /a.example HTTP/1.0\r\n\r\n", 0x20000000, proxy); return ask(s)
def from_4002():
    s = socket.socket(); s.bind(("", 4002))
    for i in range(100000):
        try: s.connect(proxy); return s
        except OSError as e:
            if e.errno != errno.EADDRNOTAVAIL: raise  # the proxy has not closed the last one yet
    raise OSError(0, "the port stays taken")
def reset():
    for i in range(300):
        s = from_4002(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.send(b"GET /a.example HTTP/1.0\r\n\r\n"); s.close()
    return ask(from_4002())
def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 4003)); s.connect(proxy)
    t = socket.socket(); t.bind(("", 4003)); t.connect(proxy); return ask(t)
for f in (mapped, any_address, own_port, own_address, pending, fast, reset, datagrams): report(f.__name__, f)
`

// Connections are the tree's own however they are made; what the supervisor has not made is nobody's.
func TestUnusualConnections(t *testing.T) {
	if exec.Command("python3", "--version").Run() != nil {
		skip(t, "install python3")
	}
	r, s := outletRunner(t)
	s.Network.Allowed = []string{"a.example"}
	if err := os.WriteFile(s.root+"/connect.py", []byte(connectionScript), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := s.run(t, r, "python3 connect.py")
	for line := range strings.Lines(p.out.String()) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		want := "true [a.example] nobody"
		if name == "fast" {
			want = "Operation not permitted" // it would connect without a call of connect
		}
		if said != want {
			t.Errorf("%s: %s, want %s", name, said, want)
		}
	}
	if got := strings.Count(p.out.String(), "\n"); got != 8 {
		t.Errorf("printed %q, on stderr: %s", p.out, p.err)
	}
}

// TestResetClients: a connection that was reset before the proxy has accepted it leaves its address to the next one, and one
// that has not come so far keeps it.
func TestResetClients(t *testing.T) {
	diag, err := sockdiag.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer diag.Close()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: localhost.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := &network{diag: diag, clients: map[netip.AddrPort]*client{}}
	n.proxyAt.Store(uint32(l.Addr().(*net.TCPAddr).Port))
	c, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	own := c.LocalAddr().(*net.TCPAddr).AddrPort()
	expects := func(cookie uint64, want bool) {
		t.Helper()
		if got := n.expect(own, &client{cookie: cookie}); got != want {
			t.Errorf("client %d is expected: %v, want %v", cookie, got, want)
		}
	}
	expects(1, true)
	n.attempted(own, 1, true)
	expects(2, false) // there is a connection
	if err := errors.Join(c.SetLinger(0), c.Close()); err != nil {
		t.Fatal(err)
	}
	expects(2, true) // it was reset
	expects(3, false)
	n.attempted(own, 1, false) // too late
	expects(3, false)
	n.attempted(own, 2, true)
	accepted, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	n.reset(accepted)
	if len(n.clients) != 0 {
		t.Errorf("%v is still expected", n.clients)
	}
}
