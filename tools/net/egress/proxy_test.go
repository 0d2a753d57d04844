package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client that does not know us: TLS by a tunnel, and a long answer by a plain request.
func TestClient(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) })
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, usual)
	transport := secure.Client().Transport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", User: url.User("call-1"), Host: b.address})
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	for _, address := range []string{plain.URL, secure.URL, plain.URL} {
		response, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != long {
			t.Errorf("%s gives %d bytes, %v", address, len(body), err)
		}
	}
	if _, err := client.Get("https://y.example/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("https://y.example/ gives %v", err)
	}
	if got := b.noted(); !slices.Equal(got, []string{"call-1 y.example not_allowed"}) {
		t.Errorf("it was told %q", got)
	}
}

// A client that sends everything at once, before there is a tunnel, still gets the response.
func TestTunnelSaidTooSoon(t *testing.T) {
	back, _ := echo(t)
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, usual)
	c := b.dial(t)
	if _, err := io.WriteString(c, "CONNECT "+back+" HTTP/1.1\r\nHost: a\r\n\r\nsoon"); err != nil {
		t.Fatal(err)
	}
	_ = c.CloseWrite()
	if heard, err := io.ReadAll(c); err != nil || string(heard) != established+"soon" {
		t.Errorf("%q came back, %v", heard, err)
	}
}

// Who has said everything still learns the rest.
func TestTunnelHalfClosed(t *testing.T) {
	back, _ := echo(t)
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, usual)
	c, r := b.tunnel(t, back)
	said := strings.Repeat("0123456789", 20_000)
	go func() {
		_, _ = io.WriteString(c, said)
		_ = c.CloseWrite()
	}()
	if heard, err := io.ReadAll(r); err != nil || string(heard) != said {
		t.Errorf("%d bytes came back, %v; want %d", len(heard), err, len(said))
	}
}

func TestIdleTunnelIsClosed(t *testing.T) {
	back, _ := echo(t)
	short := usual
	short.idle = 20 * time.Millisecond
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, short)
	_, r := b.tunnel(t, back)
	if _, err := r.ReadByte(); err == nil {
		t.Error("a byte came from nowhere")
	}
}

func TestSlowHeaderIsNotWaitedFor(t *testing.T) {
	short := usual
	short.headerTime = 20 * time.Millisecond
	b := newBooth(t, Policy{}, nil, short)
	c := b.dial(t)
	if _, err := io.WriteString(c, "GET http://x.example/ HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(c); strings.Contains(string(answer), "200") {
		t.Errorf("the answer is %q", answer)
	}
}

// A host that says nothing is given up.
func TestSilentHostIsNotWaitedFor(t *testing.T) {
	back, _ := echo(t)
	short := usual
	short.request = 50 * time.Millisecond
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, short)
	answer := b.exchange(t, "GET http://"+silent.Addr().String()+"/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 504 ") {
		t.Errorf("the answer is %q", answer)
	}
	b.tunnel(t, back) // the time is a request's alone
}

func TestConnectionsAtOnce(t *testing.T) {
	few := usual
	few.connections = 2
	b := newBooth(t, Policy{}, nil, few)
	most := 0
	clients := b.proxy.clients
	b.proxy.clients = func(remote, user string) (Client, bool) {
		b.proxy.mu.Lock()
		most = max(most, len(b.proxy.open))
		b.proxy.mu.Unlock()
		return clients(remote, user)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { b.exchange(t, "GET http://y.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") })
	}
	all.Wait()
	b.proxy.mu.Lock()
	defer b.proxy.mu.Unlock()
	if told := len(b.noted()); told != 20 || most > 2 {
		t.Errorf("%d of 20 were answered, %d at once", told, most)
	}
}

func TestCloseEndsTunnels(t *testing.T) {
	back, _ := echo(t)
	b := newBooth(t, Policy{Allowed: []string{"127.0.0.1"}}, nil, usual)
	var open []*bufio.Reader
	for range 5 {
		_, r := b.tunnel(t, back)
		open = append(open, r)
	}
	if err := b.proxy.Close(); err != nil {
		t.Error(err)
	}
	b.proxy.mu.Lock()
	left := len(b.proxy.open)
	b.proxy.mu.Unlock()
	if left != 0 {
		t.Errorf("%d connections are left", left)
	}
	for _, r := range open {
		if _, err := r.ReadByte(); err == nil {
			t.Error("a byte came through a closed proxy")
		}
	}
	if err := b.proxy.Close(); err != nil {
		t.Errorf("a second Close gives %v", err)
	}
	late, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.proxy.Serve(late); err != nil {
		t.Errorf("Serve gives %v", err)
	}
	if c, err := late.Accept(); !errors.Is(err, net.ErrClosed) {
		c.Close()
		t.Error("the listener is still open")
	}
}

// Close waits for no name server.
func TestCloseEndsLookups(t *testing.T) {
	b := newBooth(t, Policy{}, nil, usual)
	asked := make(chan struct{}, 8)
	b.proxy.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	// Two names: a lookup that two wait for outlives both, for as long as the name server may take.
	for _, first := range []string{"CONNECT x.example:443", "GET http://y.example/"} {
		if _, err := io.WriteString(b.dial(t), first+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-asked
	}
	if err := b.proxy.Close(); err != nil {
		t.Error(err)
	}
}

// A tunnel is made, one byte goes there and back, and the tunnel ends; beside the same without a proxy.
func BenchmarkConnect(b *testing.B) {
	back, port := echo(b)
	booth := newBooth(b, Policy{Allowed: []string{"127.0.0.1:" + strconv.Itoa(int(port))}}, nil, usual)
	request := "CONNECT " + back + " HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, way := range map[string]struct{ address, first, answer string }{
		"direct": {back, "", ""},
		"proxy":  {booth.address, request, established},
	} {
		b.Run(name, func(b *testing.B) {
			heard := make([]byte, len(way.answer)+1)
			for b.Loop() {
				c, err := net.Dial("tcp", way.address)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.WriteString(c, way.first+"a"); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, heard); err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}
