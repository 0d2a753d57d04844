package webfetch

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/net/egress"
)

// Whatever text stands for a URL: what comes of it is one that says the same when it is read again, here and by the library
// that asks for it, and whose host is the one that rules and the dialer compare.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/a?b#c", "https://BÜCHER.example.:443/", "http://[::FFFF:10.0.0.1]:8080/", "http://１２７.0.0.1", "http://a@b", "http://[fe80::1%25lo]/",
		"http:/a", "//a", "http://0x7f.1/", "http://a\\@b/", "http://a:080/", "http://xn--a/", "http://a%2eb/", "http://[127.0.0.1]/", "HTTP://A.", "http://a:00000000443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, unfit := parseURL(text)
		if unfit != "" {
			return
		}
		again, unfit := parseURL(u.String())
		if unfit != "" || again.String() != u.String() {
			t.Fatalf("%q becomes %q, and that %v (%s)", text, u, again, unfit)
		}
		read, err := url.Parse(u.String())
		if err != nil || read.Host != u.Host || read.Hostname() != u.Hostname() || read.User != nil {
			t.Fatalf("%q becomes %q, which reads as %+v, %v", text, u, read, err)
		}
		host, ok := egress.Host(u.Hostname())
		if !ok || host != u.Hostname() {
			t.Errorf("%q: the host %q is compared as %q", text, u.Hostname(), host)
		}
		port, ok := portOf(u)
		if !ok || slices.Contains(deniedPorts, port) {
			t.Errorf("%q: port %d", text, port)
		}
		written := host
		if strings.Contains(host, ":") {
			written = "[" + host + "]"
		}
		if refused := policyFor(host, tools.Reach{Denied: []string{written}}).Check(host, port); refused == nil || refused.Reason != egress.Denied {
			t.Errorf("%q: an entry that denies %q does not: %v", text, written, refused)
		}
	})
}
