package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A booth is a proxy at work on loopback. It may reach x.example and whatever else it is given.
type booth struct {
	proxy   *Proxy
	address string

	mu      sync.Mutex
	refused []string
	ask     func(ctx context.Context, host string, port uint16) Reason // nil: nothing is asked about
}

func newBooth(t testing.TB, policy Policy, answers map[string][]string, l limits) *booth {
	b := &booth{}
	policy.Allowed = append(policy.Allowed, "x.example")
	b.proxy = newProxy(func(_, user string) (Client, bool) {
		return Client{Policy: policy, Ask: b.ask, Refused: func(r Refusal) { b.note(user, r) }}, true
	}, l)
	b.proxy.resolver = newZone(t, answers).resolver()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	var served sync.WaitGroup
	served.Go(func() {
		if err := b.proxy.Serve(listener); err != nil {
			t.Errorf("Serve gives %v", err)
		}
	})
	t.Cleanup(func() {
		b.proxy.Close()
		served.Wait()
	})
	return b
}

// note notes what was refused, without what depends on the port.
func (b *booth) note(user string, r Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, user+" "+r.Host+" "+string(r.Reason))
}

// noted returns what was refused.
func (b *booth) noted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.refused)
}

func (b *booth) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// exchange sends the bytes, and gives all that comes back until the proxy closes the connection.
func (b *booth) exchange(t testing.TB, sent string) string {
	t.Helper()
	c := b.dial(t)
	_, _ = io.WriteString(c, sent) // the proxy may have heard enough
	all, _ := io.ReadAll(c)
	return string(all)
}

// tunnel connects to the host by CONNECT.
func (b *booth) tunnel(t testing.TB, host string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c := b.dial(t)
	if _, err := io.WriteString(c, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	answer := make([]byte, len(established))
	if _, err := io.ReadFull(r, answer); err != nil || string(answer) != established {
		t.Fatalf("CONNECT %s gives %q, %v", host, answer, err)
	}
	return c, r
}

// origin returns the address of a web server on loopback that answers with the request that it got.
func origin(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/upgrade" {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			c.Close()
			return
		}
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Proxy-Authenticate", "Basic")
		_, _ = w.Write(dump)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
