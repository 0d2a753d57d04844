package webfetch

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools/net/web"
)

// impatient are limits for servers that never come to an end.
var impatient = web.Limits{Connect: time.Minute, Header: 50 * time.Millisecond, Idle: 50 * time.Millisecond, Bytes: 64 << 10}

// Redirects are followed at the host alone.
func TestRedirects(t *testing.T) {
	pages := map[string]http.HandlerFunc{"/end": says("text/plain", "the end"), "/loop": sends(302, "/loop")}
	s := newSite(t, pages)
	for _, c := range []struct {
		name     string
		status   int
		location string
		redirect string // that is not followed
		code     string
	}{
		{"relative", 301, "end", "", ""},
		{"absolute", 308, "ORIGIN/end#x", "", ""},
		{"another host", 302, "https://other.example/a?b", "https://other.example/a?b", ""},
		{"below", 302, "//sub.127.0.0.1.example/", "http://sub.127.0.0.1.example/", ""},
		{"metadata", 302, "http://169.254.169.254/latest/meta-data/", "http://169.254.169.254/latest/meta-data/", ""},
		{"another spelling of loopback", 307, "http://127.1/", "http://127.1/", ""},
		{"a file", 302, "file:///etc/passwd", "file:///etc/passwd", ""},
		{"a password", 302, strings.Replace(s.server.URL, "//", "//u:p@", 1) + "/end", strings.Replace(s.server.URL, "//", "//u:p@", 1) + "/end", ""},
		{"a barred port", 302, "http://127.0.0.1:25/", "http://127.0.0.1:25/", ""},
		{"a loop", 302, "/loop", "", "too_many_redirects"},
		{"no URL", 302, "http://[::1", `"http://[::1"`, ""},
	} {
		pages["/a"] = sends(c.status, s.fill(c.location))
		result, code := s.get("ORIGIN/a?" + strings.ReplaceAll(c.name, " ", "_"))
		if code != c.code {
			t.Errorf("%s: %q, want %q", c.name, code, c.code)
		}
		if code != "" {
			continue
		}
		text, facts := result.Content[0].Text, result.Structured.(Fetched)
		if facts.Redirect != c.redirect || !strings.Contains(text, c.redirect) || (c.redirect == "") != strings.Contains(text, "the end") {
			t.Errorf("%s: %+v, %q; want the redirect %q", c.name, facts, text, c.redirect)
		}
	}
}

// Servers that never end, or not in time, and answers that are larger than they look.
func TestHostileServers(t *testing.T) {
	bomb := func(make func(io.Writer) io.WriteCloser, coding string) http.HandlerFunc {
		var packed bytes.Buffer
		w := make(&packed)
		_, _ = w.Write(bytes.Repeat([]byte("0"), 32<<20))
		_ = w.Close()
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write(packed.Bytes())
		}
	}
	wait := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
		}
	}
	s := newSite(t, map[string]http.HandlerFunc{
		"/endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(bytes.Repeat([]byte("more "), 1000)); err != nil {
					return
				}
			}
		},
		"/gzip":    bomb(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "gzip"),
		"/deflate": bomb(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, "deflate"),
		"/silent":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/stalls":  wait,
		"/header":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("A", strings.Repeat("a", 1<<20)) },
		"/brotli":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") },
		"/twice":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip, gzip") },
		"/broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("abc"))
		},
		"/garbage":  raw("\x00\x01\x02\r\n\r\n"),
		"/short":    raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"),
		"/switches": raw("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
		"/gone": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte("moved away"))
		},
	})
	small := web.Standard()
	small.Bytes = 64 << 10
	for path, want := range map[string]string{
		"/endless": "", "/gzip": "", "/deflate": "", "/silent": "server_too_slow", "/stalls": "server_too_slow", "/header": "bad_response",
		"/brotli": "bad_response", "/twice": "bad_response", "/broken": "bad_response", "/garbage": "bad_response", "/short": "bad_response",
		"/gone": "http_status", "/nothing": "http_status",
	} {
		s.open(small, "127.0.0.1")
		if want == "server_too_slow" {
			s.fetcher.client.Limits = impatient
		}
		result, code := s.get("ORIGIN" + path)
		if code != want {
			t.Errorf("%s: %q, want %q", path, code, want)
		}
		if code == "" && (!result.Structured.(Fetched).Truncated || len(result.Content[0].Text) > 66<<10) {
			t.Errorf("%s: %d characters, %+v; want the beginning", path, len(result.Content[0].Text), result.Structured)
		}
		if path == "/gone" && !strings.Contains(result.Content[0].Text, "moved away") {
			t.Errorf("what the server says of its 410 is not in %q", result.Content[0].Text)
		}
	}
}

// The address that is connected to counts, whatever the name said before.
func TestAddresses(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("text/plain", "inner"), "/b": sends(302, "/a")})
	port := s.server.URL[strings.LastIndex(s.server.URL, ":"):]
	for _, c := range []struct {
		name, url string
		answers   []string
		allowed   []string
		want      string
	}{
		{"a literal that settings name", "ORIGIN/a", nil, []string{"127.0.0.1"}, ""},
		{"one that they do not", "ORIGIN/a", nil, nil, "host_refused"},
		{"a pattern is no literal", "ORIGIN/a", nil, []string{"127.*.*.*", "*"}, "host_refused"},
		{"metadata", "http://169.254.169.254/", nil, []string{"127.0.0.1"}, "host_refused"},
		{"mapped", "http://[::ffff:169.254.169.254]/", nil, nil, "host_refused"},
		{"a name for loopback", "http://x.example" + port + "/a", []string{"127.0.0.1"}, nil, "host_refused"},
		{"a name for a literal", "http://x.example" + port + "/a", []string{"127.0.0.1"}, []string{"127.0.0.1"}, "host_refused"},
		{"the very name", "http://X.example." + port + "/a", []string{"127.0.0.1"}, []string{"x.EXAMPLE"}, ""},
		{"another name", "http://x.example" + port + "/a", []string{"127.0.0.1"}, []string{"y.example", "sub.x.example"}, "host_refused"},
		{"patterns", "http://x.example" + port + "/a", []string{"127.0.0.1"}, []string{"*", "*.example", "x.*", "*x.example"}, "host_refused"},
		{"the very name, for metadata", "http://x.example" + port + "/a", []string{"169.254.169.254"}, []string{"x.example"}, "host_refused"},
		{"a name that moves", "http://x.example" + port + "/b", []string{"127.0.0.1", "169.254.169.254"}, []string{"x.example"}, "host_refused"},
		{"denied", "http://denied.example/", nil, nil, "host_refused"},
		{"nobody there", "http://127.0.0.1:1234/", nil, nil, "host_refused"},
	} {
		s.open(s.fetcher.client.Limits, c.allowed...)
		if c.answers != nil {
			s.fetcher.client.Resolver = resolver(t, c.answers...)
		}
		if _, code := s.get(c.url); code != c.want {
			t.Errorf("%s: %q, want %q", c.name, code, c.want)
		}
	}
}

// http is tried as https first, and as what it is if there is none.
func TestUpgrade(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("text/plain", "plain")})
	secure := httptest.NewUnstartedServer(says("text/plain", "secure"))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	s.fetcher.client.Roots = rootsOf(secure)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for _, c := range []struct{ better, want string }{{secure.URL, "secure"}, {s.server.URL, "plain"}, {"https://" + mute.Addr().String(), "plain"}} {
		if strings.Contains(c.better, mute.Addr().String()) {
			s.fetcher.upgrade = 50 * time.Millisecond
		}
		at, _ := parseURL(s.server.URL + "/a")
		better, _ := parseURL(strings.Replace(c.better, "http:", "https:", 1))
		q := redirects{f: s.fetcher, env: s.env(), policy: policyFor(at.Hostname(), s.reach)}
		answer, _, err := q.first(t.Context(), at, better)
		if err != nil || string(answer.Body) != c.want {
			t.Errorf("by way of %s: %v, want %s", c.better, err, c.want)
		}
	}
	s.fetcher.client.Roots = nil
	if _, code := s.get(secure.URL); code != "host_unreachable" {
		t.Errorf("a certificate that nobody knows: %q, want host_unreachable", code)
	}
	for url, want := range map[string]string{
		"http://x.example/a": "https://x.example/a", "http://x.example:80/a": "https://x.example/a", "https://x.example/": "", "http://x.example:81/": "", "http://1.2.3.4/": "",
	} {
		at, unfit := parseURL(url)
		if unfit != "" {
			t.Fatal(unfit)
		}
		got := ""
		if better := upgraded(at); better != nil {
			got = better.String()
		}
		if got != want {
			t.Errorf("%s is tried as %q first, want %q", url, got, want)
		}
	}
}
