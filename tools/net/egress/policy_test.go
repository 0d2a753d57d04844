package egress

import (
	"net/netip"
	"strings"
	"testing"
)

// policyCases say what comes of asking for a host: a reason, or "" if it may be tried. Entries are separated by blanks.
var policyCases = []struct {
	allowed, denied, host string
	port                  uint16
	want                  Reason
}{
	{"", "", "example.com", 443, NotAllowed},
	{"example.com", "", "example.com", 443, ""},
	{"example.com", "", "EXAMPLE.com.", 443, ""},
	{"Example.COM.", "", "example.com", 443, ""},
	{"example.com", "", "example.com..", 443, BadHost},
	{"example.com", "", "www.example.com", 443, NotAllowed},
	{"example.com", "", "notexample.com", 443, NotAllowed},
	{"example.com", "", "example.com.evil", 443, NotAllowed},
	{"*.example.com", "", "a.b.example.com", 443, ""},
	{"*.example.com", "", "example.com", 443, NotAllowed},
	{"*.example.com", "", "notexample.com", 443, NotAllowed},
	{"api-*.example.com", "", "api-1.example.com", 443, ""},
	{"api-*.example.com", "", "api-1.x.example.com", 443, NotAllowed},
	{"example.com:443", "", "example.com", 443, ""},
	{"example.com:443", "", "example.com", 80, NotAllowed},
	{"*:443", "", "a", 443, ""},
	{"*:443", "", "a", 22, NotAllowed},
	{"example.com:0", "", "example.com", 80, NotAllowed},
	{"example.com:65536", "", "example.com", 80, NotAllowed},
	{"https://example.com", "", "example.com", 443, NotAllowed},
	{"example.com/x", "", "example.com", 443, NotAllowed},
	{"*", "", "example.com", 0, BadHost},

	{"*", "example.com", "example.com", 443, Denied},
	{"example.com", "*", "example.com", 443, Denied},
	{"*", "*.example.com", "a.example.com.", 443, Denied},
	{"*", "*.example.com", "example.com", 443, ""},
	{"*", "example.com:22", "example.com", 22, Denied},
	{"*", "example.com:22", "example.com", 443, ""},
	{"*", "https://example.com/", "elsewhere.org", 443, Denied}, // nobody knows what was meant
	{"*", "bücher.example", "xn--bcher-kva.example", 443, Denied},
	{"*", "xn--bcher-kva.example", "BÜCHER.example", 443, Denied},
	{"*", "*.bücher.example", "a.xn--bcher-kva.example", 443, Denied},
	{"*", "8.8.8.8", "[::ffff:8.8.8.8]", 443, Denied},
	{"*", "[2606:4700::1]:443", "2606:4700:0::1", 443, Denied},

	{"*", "", "8.8.8.8", 53, ""},
	{"*", "", "[2606:4700::1]", 443, ""},
	{"*", "", "2606:4700::1", 443, ""},
	{"*", "", "127.0.0.1", 80, PrivateAddress},
	{"*", "", "127.0.0.1.", 80, PrivateAddress},
	{"*", "", "１２７.0.0.1", 80, PrivateAddress},
	{"*", "", "[::ffff:10.0.0.1]", 80, PrivateAddress},
	{"127.0.0.1", "", "127.0.0.1", 80, ""},
	{"127.0.0.1", "", "127.0.0.2", 80, NotAllowed},
	{"127.0.0.*", "", "127.0.0.1", 80, PrivateAddress}, // not the address itself
	{"127.0.0.1", "", "[::ffff:127.0.0.1]", 80, ""},
	{"127.0.0.1:80", "", "127.0.0.1", 80, ""},
	{"* 127.0.0.1:80", "", "127.0.0.1", 81, PrivateAddress},
	{"127.0.0.1", "127.0.0.1", "127.0.0.1", 80, Denied},
	{"[::1]", "", "::1", 80, ""},
	{"[::1]:80", "", "[0::1]", 80, ""},
	{"::1", "", "[::1]", 80, ""},
	{"::1:80", "", "[::1]", 80, NotAllowed}, // an address of its own
	{"[::1", "", "::1", 80, NotAllowed},

	{"*", "", "127.1", 80, BadHost},
	{"*", "", "2130706433", 80, BadHost},
	{"*", "", "0x7f000001", 80, BadHost},
	{"*", "", "0177.0.0.1", 80, BadHost},
	{"*", "", "127.0.0.0x1", 80, BadHost},
	{"*", "", "[127.0.0.1]", 80, BadHost},
	{"*", "", "[example.com]", 80, BadHost},
	{"*", "", "fe80::1%eth0", 80, BadHost},
	{"*", "", "", 80, BadHost},
	{"*", "", ".", 80, BadHost},
	{"*", "", "a..b", 80, BadHost},
	{"*", "", "a b", 80, BadHost},
	{"*", "", "a\r\nb", 80, BadHost},
	{"*", "", "*", 80, BadHost},
	{"*", "", "a\x00.b", 80, BadHost},
	{"*", "", "user@a", 80, BadHost},
	{"*", "", strings.Repeat("a", 64) + ".b", 80, BadHost},
	{"*", "", strings.Repeat("a.", 127) + "b", 80, BadHost},
	{"*", "", "_dmarc.a_b.com", 80, ""},
}

func TestPolicy(t *testing.T) {
	for _, c := range policyCases {
		policy := Policy{Allowed: strings.Fields(c.allowed), Denied: strings.Fields(c.denied)}
		if got := reason(policy.Check(c.host, c.port)); got != c.want {
			t.Errorf("allowed %q, denied %q: %q at %d gives %q, want %q", c.allowed, c.denied, c.host, c.port, got, c.want)
		}
	}
}

func reason(r *Refusal) Reason {
	if r == nil {
		return ""
	}
	return r.Reason
}

// addressCases say what kind of address each is; "" is public.
var addressCases = map[string]string{
	"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "10.0.0.1": "private", "11.0.0.1": "",
	"100.63.255.255": "", "100.64.0.1": "of a carrier's own network", "100.100.100.200": "a cloud's own",
	"100.128.0.0": "", "127.0.0.1": "loopback", "127.255.255.254": "loopback", "128.0.0.1": "",
	"168.63.129.16": "a cloud's own", "168.63.129.17": "", "169.254.169.254": "link-local", "172.15.0.1": "",
	"172.16.0.1": "private", "172.31.255.255": "private", "172.32.0.1": "", "192.0.0.192": "reserved",
	"192.0.2.1": "for documentation", "192.88.99.1": "of a 6to4 relay", "192.168.1.1": "private",
	"198.18.0.1": "for benchmarks", "198.51.100.1": "for documentation", "203.0.113.1": "for documentation",
	"224.0.0.1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
	"::": "unspecified", "::1": "loopback", "::127.0.0.1": "reserved", "64:ff9b::10.0.0.1": "translated (NAT64)",
	"64:ff9b::8.8.8.8": "translated (NAT64)", "64:ff9b:1::1": "translated (NAT64)", "100::1": "reserved",
	"::ffff:0:10.0.0.1": "reserved", "fc00::1": "private", "fd00:ec2::254": "a cloud's own", "fd20:ce::254": "a cloud's own", "fe80::1": "link-local",
	"fec0::1": "reserved", "ff02::1": "multicast", "2001::1": "translated (Teredo)", "2001:2::1": "reserved",
	"2001:db8::1": "for documentation", "2002:a00:1::1": "translated (6to4)", "3fff::1": "for documentation",
	"4000::1": "reserved", "5f00::1": "reserved", "2606:4700::1": "", "2a00::5efe:10.0.0.1": "translated (ISATAP)",
	"2a00::200:5efe:10.0.0.1": "translated (ISATAP)", "2001:4860:4860::8888": "",
}

func TestAddresses(t *testing.T) {
	for text, want := range addressCases {
		if got := special(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestOwnAddress(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "8.8.8.8": false, "2606:4700::1": false} {
		if got := isOwn(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is this machine's: %v, want %v", text, got, want)
		}
	}
}

// Each sentence says what to do, in the words of the settings.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		policy     Policy
		host, want string
	}{
		{Policy{}, "Example.com", `example.com:443 may not be reached: no rule allows it. The permission rule WebFetch(domain:example.com) or "example.com" in sandbox.network.allowedDomains would.`},
		{Policy{}, "2606:4700::1", `[2606:4700::1]:443 may not be reached: no rule allows it. "[2606:4700::1]" in sandbox.network.allowedDomains would.`},
		{Policy{Denied: []string{"*.Example.com"}}, "a.example.com", `a.example.com:443 may not be reached: the entry "*.Example.com" denies it, and no rule allows what is denied.`},
		{Policy{Denied: []string{"http://x"}}, "a", `a:443 may not be reached: all hosts are denied while the denied host "http://x" cannot be parsed; fix it, for instance to example.com, *.example.com or example.com:443.`},
		{Policy{Allowed: []string{"*"}}, "::1", `[::1]:443 may not be reached: its address ::1 is loopback, not public. Only an entry for the address itself in sandbox.network.allowedDomains would allow it: "[::1]".`},
		{Policy{}, "a\nb", `"a\nb" at port 443 cannot be reached: it is not a host's name, an IPv4 address of four decimal numbers or an IPv6 address in brackets, with a port from 1 to 65535.`},
	} {
		if got := c.policy.Check(c.host, 443).Error(); got != c.want {
			t.Errorf("%q: got  %s\nwant %s", c.host, got, c.want)
		}
	}
}

// Whatever is asked of whatever policy: denying takes away and never adds, a host's spelling does not matter, and what a
// refusal names is refused again.
func FuzzPolicy(f *testing.F) {
	for _, c := range policyCases {
		f.Add(c.allowed, c.denied, c.host, c.port)
	}
	f.Add("[::1]:1", "[[::1]]:2", "[::ffff:7f00:1]", uint16(1))
	f.Add("*.*.*", "**", "xn--a.ß", uint16(1))
	f.Fuzz(func(t *testing.T, allowed, denied, host string, port uint16) {
		p := Policy{Allowed: strings.Fields(allowed), Denied: strings.Fields(denied)}
		refusal := p.Check(host, port)
		if refusal == nil {
			name, ok := canonical(host, nameBytes)
			if again, fine := canonical(name, nameBytes); !ok || !fine || again != name {
				t.Errorf("%q becomes %q, and that %q", host, name, again)
			}
			if r := (Policy{Allowed: p.Allowed}).Check(host, port); r != nil {
				t.Errorf("%q is allowed only because of what is denied: %v", host, r)
			}
			if r := (Policy{Allowed: p.Allowed, Denied: append(p.Denied, bracket(name))}).Check(host, port); reason(r) != Denied {
				t.Errorf("%q is denied, and the answer is %v", host, r)
			}
			if r := (Policy{Denied: p.Denied}).Check(host, port); reason(r) != NotAllowed {
				t.Errorf("%q is not allowed by anything, and the answer is %v", host, r)
			}
		} else if refusal.Error() == "" || refusal.Reason != BadHost && reason(p.Check(refusal.Host, port)) != refusal.Reason {
			t.Errorf("%q is refused for %v, and %q is not", host, refusal, refusal.Host)
		}
		if upper := strings.ToUpper(host); strings.ToLower(upper) == host && reason(p.Check(upper, port)) != reason(refusal) {
			t.Errorf("%q gives %v, and in capitals %v", host, refusal, p.Check(upper, port))
		}
	})
}
