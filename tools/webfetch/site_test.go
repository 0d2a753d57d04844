package webfetch

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/net/web"
	"github.com/toold/toold/tools/tooltest"
)

// A site is a web server on loopback, and a tool that may reach it by its address. Where a text has ORIGIN, the site's
// http://address stands.
type site struct {
	t        testing.TB
	server   *httptest.Server
	fetcher  *fetcher
	tool     tools.Tool
	files    *tooltest.Files
	reach    tools.Reach
	requests atomic.Int32
}

// newSite serves pages by their path. allowed are hosts beside the site's own address.
func newSite(t testing.TB, pages map[string]http.HandlerFunc, allowed ...string) *site {
	s := &site{t: t, files: tooltest.NewFiles(t, t.TempDir())}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		serve := pages[r.URL.Path]
		if serve == nil {
			http.NotFound(w, r)
			return
		}
		serve(w, r)
	}))
	t.Cleanup(s.server.Close)
	limits := web.Standard()
	limits.Bytes = 1 << 20
	s.open(limits, append(allowed, "127.0.0.1")...)
	return s
}

func (s *site) open(limits web.Limits, allowed ...string) {
	s.fetcher = &fetcher{client: web.Client{Limits: limits, Agent: "toold/test"}, pages: newCache(), upgrade: time.Minute}
	s.reach = tools.Reach{Allowed: allowed, Denied: []string{"denied.example"}}
	s.tool = newTool(s.fetcher)
}

func (s *site) env() *tools.Env {
	env := s.files.Env()
	env.Reach = s.reach
	return env
}

func (s *site) fill(text string) string { return strings.ReplaceAll(text, "ORIGIN", s.server.URL) }

// get fetches, and gives the code of the error; empty: there is none.
func (s *site) get(target string) (tools.Result, string) {
	s.t.Helper()
	result, err := s.fetch(s.t.Context(), target)
	return result, tooltest.Code(err)
}

func (s *site) fetch(ctx context.Context, target string) (tools.Result, error) {
	action, err := s.tool.Parse([]byte(`{"url":"` + s.fill(target) + `","prompt":"why"}`))
	if err != nil {
		return tools.Result{}, err
	}
	return s.do(ctx, action, s.env())
}

func (s *site) do(ctx context.Context, action tools.Action, env *tools.Env) (tools.Result, error) {
	if _, err := action.Check(ctx, env); err != nil {
		return tools.Result{}, err
	}
	return action.Run(ctx, env)
}

// says is a page of that type.
func says(media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{media}
		_, _ = w.Write([]byte(body))
	}
}

func sends(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}
}

// resolver answers every question with the next of the addresses, of which the last one stays.
func resolver(t testing.TB, addresses ...string) *net.Resolver {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		buf := make([]byte, 4096)
		asked := 0
		for {
			n, from, err := socket.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Header.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				address := netip.MustParseAddr(addresses[min(asked, len(addresses)-1)])
				asked++
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: address.As4()},
				}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = socket.WriteTo(answer, from)
			}
		}
	})
	t.Cleanup(func() {
		socket.Close()
		served.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
}

func rootsOf(s *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}
