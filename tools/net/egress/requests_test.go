package egress

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// requestCases are what a client sends, what is in all that comes back, what is not, and what is told of refusals. ORIGIN is
// a web server's address and port; x.example and PORT lead to it too. The lines of a request end in \n here.
var requestCases = []struct{ name, sent, want, not, refused string }{
	{
		"the URL counts, not the header", "GET http://ORIGIN/a HTTP/1.1\nHost: evil.example\nConnection: close\n\n",
		"200 OK|GET /a HTTP/1.1|Host: ORIGIN", "evil|Proxy-Auth", "",
	},
	{
		"the URL stays as it is", "GET http://ORIGIN/%2e%2F/../a//b?b;c&d=%zz#f HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n",
		"GET /%2e%2F/../a//b?b;c&d=%zz", "", "",
	},
	{
		"a name", "GET http://X.Example.:PORT/ HTTP/1.1\nHost: y\nConnection: close\n\n",
		"200 OK|Host: x.example:PORT", "", "",
	},
	{
		"hop by hop", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nProxy-Authorization: Basic c2VjcmV0Og==\nProxy-Connection: keep-alive\n" +
			"Connection: close, X-Hop\nX-Hop: hop\nKeep-Alive: 5\nUpgrade: websocket\nX-Forwarded-For: a\nX-End: end\n\n",
		"200 OK|X-End: end|X-Forwarded-For: a", "c2Vj|Proxy-|X-Hop|Keep-Alive|websocket", "",
	},
	{
		"an upgrade is not made", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nConnection: Upgrade, close\nUpgrade: h2c\n\n",
		"200 OK", "h2c", "",
	},
	{
		"a host that leaves HTTP", "GET http://ORIGIN/upgrade HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n",
		"502 Bad Gateway", "101", "",
	},
	{
		"a body with its length", "POST http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nContent-Length: 3\nConnection: close\n\nabcdef",
		"200 OK|\n\nabc", "abcd", "",
	},
	{
		"lengths that contradict each other", "POST http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nContent-Length: 3\nContent-Length: 6\n\nabcdef",
		"400 Bad Request", "200", "",
	},
	{
		"both framings", "POST http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nContent-Length: 3\nTransfer-Encoding: chunked\n\n" +
			"3\nabc\n0\n\nGET http://y.example/ HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n",
		"POST / HTTP/1.1|\n\n3\nabc\n0\n", "Content-Length: 3|GET", " y.example not_allowed", // a request of its own
	},
	{
		"a request behind another is asked for itself", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\n\n" +
			"GET http://y.example/ HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n",
		"200 OK|403 Forbidden", "", " y.example not_allowed",
	},
	{
		"an unknown framing", "POST http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nTransfer-Encoding: xchunked\n\n0\n\n",
		"501 Not Implemented", "200", "",
	},
	{"a blank in a header's name", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nA : b\n\n", "400 Bad Request", "200", ""},
	{"two hosts", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nHost: x.example\n\n", "400 Bad Request", "200", ""},
	{"not for a proxy", "GET / HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "400 Bad Request|This is a proxy", "", ""},
	{"to nobody", "OPTIONS * HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "400 Bad Request", "", ""},
	{"HTTP/2", "PRI * HTTP/2.0\n\nSM\n\n", "400 Bad Request", "", ""},
	{"another scheme", "GET https://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "400 Bad Request|CONNECT", "", ""},
	{"a user in the URL", "GET http://a@ORIGIN/ HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "400 Bad Request", "", ""},
	{"no port", "CONNECT x.example HTTP/1.1\nHost: x.example\nConnection: close\n\n", "400 Bad Request|needs a port", "", ""},
	{"port 0", "CONNECT x.example:0 HTTP/1.1\nHost: x.example\nConnection: close\n\n", "400 Bad Request|needs a port", "", ""},
	{"a path", "CONNECT x.example:1/a HTTP/1.1\nHost: x.example\nConnection: close\n\n", "400 Bad Request", "", ""},
	{"CONNECT with a body", "CONNECT ORIGIN HTTP/1.1\nHost: a\nContent-Length: 1\nConnection: close\n\na", "400 Bad Request", "", ""},
	{"a header too large", "GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\nA: LARGE\n\n", "431 Request Header Fields Too Large", "", ""},
	{
		"not allowed", "GET http://y.example/ HTTP/1.1\nHost: ORIGIN\nProxy-Authorization: Basic Y2FsbC0xOg==\nConnection: close\n\n",
		"403 Forbidden|text/plain|WebFetch(domain:y.example)|sandbox.network.allowedDomains", "", "call-1 y.example not_allowed",
	},
	{
		"no tunnel", "CONNECT y.example:443 HTTP/1.1\nHost: a\nProxy-Authorization: basic Y2FsbC0xOnB3\nConnection: close\n\n",
		"403 Forbidden|y.example:443|WebFetch(domain:y.example)", "", "call-1 y.example not_allowed",
	},
	{
		"a private address", "GET http://x.example:1/ HTTP/1.1\nHost: ORIGIN\nProxy-Authorization: Basic Y2FsbC0xOg==\nConnection: close\n\n",
		"403 Forbidden|x.example:1|address 127.0.0.1 is loopback", "", "call-1 x.example private_address",
	},
	{
		"no tunnel to a private address", "CONNECT x.example:1 HTTP/1.1\nHost: ORIGIN\nProxy-Authorization: Basic Y2FsbC0xOg==\nConnection: close\n\n",
		"403 Forbidden|x.example:1|address 127.0.0.1 is loopback", "", "call-1 x.example private_address",
	},
	{"no host", "CONNECT 127.1:80 HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "403 Forbidden", "", " 127.1 bad_host"},
	{"denied", "CONNECT bad.example:80 HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "403 Forbidden|no rule allows", "", " bad.example denied"},
	{"not found", "CONNECT gone.example:80 HTTP/1.1\nHost: ORIGIN\nConnection: close\n\n", "502 Bad Gateway|no such host", "", ""},
}

func TestRequests(t *testing.T) {
	web := origin(t)
	_, port, _ := net.SplitHostPort(web)
	fill := strings.NewReplacer("ORIGIN", web, "PORT", port, "LARGE", strings.Repeat("a", 70<<10))
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			b := newBooth(t, Policy{Allowed: []string{web, "gone.example", "bad.example"}, Denied: []string{"bad.example"}, Opened: []string{"x.example:" + port}},
				map[string][]string{"x.example.": {"127.0.0.1"}}, usual)
			got := b.exchange(t, strings.ReplaceAll(fill.Replace(c.sent), "\n", "\r\n"))
			got = strings.ReplaceAll(got, "\r\n", "\n")
			for want := range strings.SplitSeq(fill.Replace(c.want), "|") {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in %s", want, got)
				}
			}
			for not := range strings.SplitSeq(c.not, "|") {
				if not != "" && strings.Contains(got, not) {
					t.Errorf("there is %q in %s", not, got)
				}
			}
			if told := strings.Join(b.noted(), "|"); told != c.refused {
				t.Errorf("it was told %q, want %q", told, c.refused)
			}
		})
	}
}

// Whatever bytes come, the proxy serves the next client.
func FuzzProxy(f *testing.F) {
	for _, c := range requestCases {
		f.Add([]byte(strings.ReplaceAll(c.sent, "\n", "\r\n")))
	}
	f.Add([]byte("CONNECT ECHO HTTP/1.1\r\nHost: a\r\n\r\nsoon"))
	f.Add([]byte("\x16\x03\x01\x02\x00\x01"))
	f.Add([]byte("\x05\x01\x00"))
	f.Add([]byte("GET http://[::1%25eth0]:80/ HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Add([]byte("POST http://ORIGIN/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n"))
	web := origin(f)
	back, _ := echo(f)
	fill := strings.NewReplacer("ORIGIN", web, "ECHO", back)
	short := usual
	short.request = 2 * time.Second
	b := newBooth(f, Policy{Allowed: []string{web, back}}, nil, short)
	clients := b.proxy.clients
	b.proxy.clients = func(remote, user string) (Client, bool) {
		c, known := clients(remote, user)
		c.Refused = nil // it would be too many
		return c, known
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := b.dial(t)
		_, _ = io.WriteString(c, fill.Replace(string(sent)))
		_ = c.CloseWrite()
		_, _ = io.ReadAll(c)
		answer := b.exchange(t, "GET http://"+web+"/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
			t.Errorf("after %q the proxy answers %q", sent, answer)
		}
	})
}
