// The meaning of a policy's entries, and the canonical form in which hosts are compared. No names
// are looked up.

package egress

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const (
	nameBytes    = "abcdefghijklmnopqrstuvwxyz0123456789-_." // the underscore is not allowed in host names, and common all the same
	patternBytes = nameBytes + "*"
	longestName  = 253 // bytes; 63 for a label: RFC 1035, 2.3.4
	longestLabel = 63
)

// mapping converts names to the xn-- form that a browser would request. It keeps *.
var mapping = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// An entry is one entry of a policy.
type entry struct {
	host string // canonical
	port uint16 // 0: every port
}

// parse parses an entry; ok is false if it cannot mean any host.
func parse(text string) (e entry, ok bool) {
	text = strings.TrimSpace(text)
	host := text
	at := strings.LastIndexByte(text, ':')
	if _, err := netip.ParseAddr(text); err != nil && at >= 0 && !strings.HasSuffix(text, "]") {
		port, err := strconv.ParseUint(text[at+1:], 10, 16)
		if err != nil || port == 0 || strings.Contains(text[:at], ":") && text[0] != '[' {
			return entry{}, false
		}
		host, e.port = text[:at], uint16(port)
	}
	e.host, ok = canonical(host, patternBytes)
	return e, ok
}

func (e entry) holds(port uint16) bool { return e.port == 0 || e.port == port }

// fits reports whether the entry matches a canonical host. WebFetch(domain:...) rules match in the
// same way.
func (e entry) fits(host string) bool {
	if e.host == "*" {
		return true
	}
	if domain, ok := strings.CutPrefix(e.host, "*."); ok && !strings.Contains(domain, "*") {
		name, below := strings.CutSuffix(host, "."+domain)
		return below && name != ""
	}
	return slices.EqualFunc(strings.Split(e.host, "."), strings.Split(host, "."), func(pattern, label string) bool {
		fits, err := path.Match(pattern, label)
		return fits && err == nil
	})
}

// Host returns the form in which a host is compared: lower case, in ASCII, without a final dot or
// brackets. ok is false if the host is neither a name nor an address as Policy defines them.
func Host(host string) (string, bool) { return canonical(host, nameBytes) }

// canonical returns the canonical form of a host: lower case, ASCII, no final dot; for an address,
// its shortest text without brackets, and a mapped IPv4 address as IPv4. A text that a resolver
// could read as an address in an older spelling (127.1, 0x7f000001) is not a host, and neither is
// one with other bytes than letters. An address has no zone.
func canonical(host, letters string) (string, bool) {
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		var closed bool
		host, closed = strings.CutSuffix(inner, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", false
		}
	}
	host, ok := ascii(host)
	host = strings.TrimSuffix(host, ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String(), address.Zone() == ""
	}
	return host, ok && !bracketed && isName(host, letters)
}

func ascii(host string) (string, bool) {
	if strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) < 0 {
		return strings.ToLower(host), true
	}
	if len(host) > 4*longestName { // letters take up to 4 bytes of UTF-8; longer texts are not names
		return "", false
	}
	mapped, err := mapping.ToASCII(host)
	return strings.ToLower(mapped), err == nil
}

func isName(host, letters string) bool {
	foreign := func(r rune) bool { return !strings.ContainsRune(letters, r) }
	if len(host) > longestName || strings.ContainsFunc(host, foreign) {
		return false
	}
	labels := strings.Split(host, ".")
	unfit := func(label string) bool { return label == "" || len(label) > longestLabel }
	return !slices.ContainsFunc(labels, unfit) && !isNumber(labels[len(labels)-1])
}

// isNumber reports whether inet_aton would read the label as a part of an address, or nearly so.
func isNumber(label string) bool {
	hex, ok := strings.CutPrefix(label, "0x")
	return strings.Trim(label, "0123456789") == "" || ok && strings.Trim(hex, "0123456789abcdef") == ""
}
