// Hosts compared with the domains of WebFetch rules, by name: without ports, and without looking anything up.

package permission

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// mapping converts names to the xn-- form. It accepts *.
var mapping = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// hostName is the form in which hosts are compared: lower case, in ASCII, without a final dot. What is not a name stays as it is.
func hostName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if name, err := mapping.ToASCII(host); err == nil {
		return name
	}
	return host
}

// hostFits reports whether a host fits a rule's: "*" is every host, "*.x" any depth below x but not x itself, and another *
// stays within one label.
func hostFits(rule, host string) bool {
	if rule == "*" {
		return true
	}
	if domain, ok := strings.CutPrefix(rule, "*."); ok && !strings.Contains(domain, "*") {
		name, below := strings.CutSuffix(host, "."+domain)
		return below && name != ""
	}
	wanted, labels := strings.Split(rule, "."), strings.Split(host, ".")
	return slices.EqualFunc(wanted, labels, func(pattern, label string) bool { return newPattern(pattern).matches(label) })
}
