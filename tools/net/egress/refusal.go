// Refusals: the texts, for programs and for a model, about a connection that was not made.

package egress

import (
	"fmt"
	"net/netip"
)

// A Reason is why a connection was refused, as a code. The codes are stable.
type Reason string

const (
	// NotAllowed: no entry of Allowed names the host.
	NotAllowed Reason = "not_allowed"
	// Denied: an entry of Denied names the host, or the address that it resolves to.
	Denied Reason = "denied"
	// PrivateAddress: the host is, or resolves to, an address that is not public.
	PrivateAddress Reason = "private_address"
	// NotPermitted: the user was asked about the host and did not permit it.
	NotPermitted Reason = "not_permitted"
	// Unanswered: the user was asked about the host and has not answered yet.
	Unanswered Reason = "unanswered"
	// BadHost: the requested host is neither a name nor an address, or the port is not valid.
	BadHost Reason = "bad_host"
)

// A Refusal is a connection that the policy does not permit. It is comparable.
type Refusal struct {
	Host    string // in canonical form; for BadHost, as requested
	Port    uint16
	Reason  Reason
	Address netip.Addr // the address that was not connected to; for PrivateAddress, and for Denied if the address is denied
	Rule    string     // the entry of Denied, as written
	kind    string     // the kind of address; for PrivateAddress
}

// Error returns what was refused, why, and what would allow it.
func (r *Refusal) Error() string {
	switch r.Reason {
	case Denied:
		return fmt.Sprintf("%s may not be reached: %s.", r.subject(), r.denial())
	case PrivateAddress:
		return fmt.Sprintf("%s may not be reached: its address %s is %s, not public. %s", r.subject(), r.Address, r.kind, r.opening())
	case BadHost:
		return fmt.Sprintf("%.300q at port %d cannot be reached: it is not a host's name, an IPv4 address of four decimal "+
			"numbers or an IPv6 address in brackets, with a port from 1 to 65535.", r.Host, r.Port)
	case NotPermitted:
		return fmt.Sprintf("%s may not be reached: the user was asked and did not permit it.", r.subject())
	case Unanswered:
		return fmt.Sprintf("%s may not be reached: the user was asked and has not answered in time. A later yes counts for the next attempt.", r.subject())
	default:
		return fmt.Sprintf("%s may not be reached: no rule allows it. %s would.", r.subject(), r.remedy())
	}
}

// opening returns what would allow the address.
func (r *Refusal) opening() string {
	address := bracket(r.Address.String())
	if r.Address.String() == r.Host {
		return fmt.Sprintf("Only an entry for the address itself in sandbox.network.allowedDomains would allow it: %q.", address)
	}
	return fmt.Sprintf("Allowing a name does not allow such an address. Ask for %s itself; that works if "+
		"sandbox.network.allowedDomains has it.", address)
}

// Openable reports whether an entry of Opened for exactly the requested name would have allowed the
// connection.
func (r *Refusal) Openable() bool {
	return r.Reason == PrivateAddress && neighbourly[r.kind] && r.Address.String() != r.Host
}

func (r *Refusal) subject() string { return fmt.Sprintf("%s:%d", bracket(r.Host), r.Port) }

func (r *Refusal) denial() string {
	if _, ok := parse(r.Rule); !ok {
		return fmt.Sprintf("all hosts are denied while the denied host %q cannot be parsed; fix it, "+
			"for instance to example.com, *.example.com or example.com:443", r.Rule)
	}
	what := "it"
	if r.Address.IsValid() && r.Address.String() != r.Host {
		what = "its address " + r.Address.String()
	}
	return fmt.Sprintf("the entry %q denies %s, and no rule allows what is denied", r.Rule, what)
}

func (r *Refusal) remedy() string {
	setting := fmt.Sprintf("%q in sandbox.network.allowedDomains", bracket(r.Host))
	if bracket(r.Host) != r.Host { // rules are written without colons
		return setting
	}
	return fmt.Sprintf("The permission rule WebFetch(domain:%s) or %s", r.Host, setting)
}

// bracket returns a canonical host in the form that stands before a port.
func bracket(host string) string {
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		return "[" + host + "]"
	}
	return host
}
