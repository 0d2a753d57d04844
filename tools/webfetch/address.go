// URLs: which are fetched, and which part of them a rule is asked about. No names are looked up.

package webfetch

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/net/egress"
)

// longestURL is in bytes. Servers reject longer ones.
const longestURL = 8 << 10

// deniedPorts are ports of services that browsers do not connect to either, since a request could
// be mistaken for their own protocol: "bad port" in the Fetch standard.
var deniedPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115,
	117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587,
	601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
	6697, 10080,
}

// parseURL returns the URL in the form in which it is requested: its host in ASCII and lower case,
// without a final dot, and without a fragment. unfit is why it cannot be fetched; empty: it can.
func parseURL(text string) (u *url.URL, unfit string) {
	if len(text) > longestURL {
		return nil, fmt.Sprintf("it is longer than %d bytes", longestURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, "it is not a URL"
	}
	if why := unfitParts(u); why != "" {
		return nil, why
	}
	host, ok := egress.Host(strings.TrimSuffix(u.Host, ":"+u.Port()))
	port, known := portOf(u)
	switch {
	case !ok:
		return nil, fmt.Sprintf("%.300q is not a host name", u.Hostname())
	case !known:
		return nil, fmt.Sprintf("%.20q is not a port", u.Port())
	case slices.Contains(deniedPorts, port):
		return nil, fmt.Sprintf("port %d belongs to a service other than the web", port)
	}
	at := host
	if strings.Contains(host, ":") {
		at = "[" + host + "]"
	}
	if written := strconv.Itoa(int(port)); written != defaultPorts[u.Scheme] {
		at += ":" + written
	}
	u.Host, u.Fragment, u.RawFragment = at, "", ""
	return u, ""
}

func unfitParts(u *url.URL) (why string) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "only http and https URLs can be fetched"
	case u.User != nil:
		return "a URL with a user name or password is not fetched; leave them out"
	case u.Opaque != "" || u.Hostname() == "":
		return "it names no host"
	}
	return ""
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

func portOf(u *url.URL) (uint16, bool) {
	text := u.Port()
	if text == "" {
		text = defaultPorts[u.Scheme]
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return uint16(port), err == nil && port > 0
}

// upgraded returns the URL that is tried before an http one: https at its own port. It returns nil
// if the URL is https already, names a port, or names an address, which hardly has a certificate.
func upgraded(u *url.URL) *url.URL {
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || u.Scheme != "http" || u.Port() != "" {
		return nil
	}
	better := *u
	better.Scheme = "https"
	return &better
}

// policyFor allows one host, and an address that is not public if settings name the host itself: a
// request alone does not open it.
func policyFor(host string, reach tools.Reach) egress.Policy {
	p := egress.Policy{Allowed: []string{host}, Denied: reach.Denied, Opened: reach.Allowed}
	if _, err := netip.ParseAddr(host); err == nil {
		p.Allowed = []string{"*"} // an entry with the address would allow it
	}
	return p
}
