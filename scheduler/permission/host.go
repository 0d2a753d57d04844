// Whether a host fits the domain of a WebFetch rule. It compares names: it knows no ports and no addresses, and looks
// nothing up.

package permission

import (
	"slices"
	"strings"
)

// hostName is the form in which hosts are compared.
func hostName(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// hostFits says whether a host fits a rule's: "*" is every host, "*.x" any depth below x but not x itself, and another *
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
