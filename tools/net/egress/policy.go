// Package egress is the daemon's own way out to the network: a dialer that checks the address to
// which it actually connects, and an HTTP proxy over it for processes that have no other way out.
// It does not know what its clients are, nor where a policy or an answer comes from. It does not look into
// what is sent: inside a tunnel, neither the TLS server name nor a Host header is compared with the
// requested host.
package egress

import (
	"net/netip"
	"slices"
)

// A Policy is which hosts may be reached: those that Allowed names, except for those that Denied
// names. The zero Policy allows none.
//
// An entry is a host: "example.com", "*.example.com" (any depth below it, not the host itself),
// "api-*.example.com" (any other * stays within one label) or "*" (all). It may end in a port,
// ":443"; without one it covers every port. Case and a final dot do not matter, and names that are
// not ASCII stand for their xn-- form. An IPv6 address with a port needs brackets.
//
// An address that is not public can be reached in two ways. A client that asks for the address
// itself reaches it if Allowed or Opened has it. A client that asks for a name reaches it if Opened
// has that name without *, and the address is one of a neighbour: loopback, private, a carrier's
// own or this machine's. No name opens an address that is link-local, a cloud's own, or of more
// than one host.
//
// An entry that cannot be parsed allows nothing in Allowed and Opened, and denies everything in
// Denied.
type Policy struct{ Allowed, Denied, Opened []string }

// Check returns why a connection must not be tried, or nil. It looks nothing up: a Dialer checks
// what a name resolves to when it connects. The host may have a final dot, and an address may have
// brackets.
func (p Policy) Check(host string, port uint16) *Refusal {
	name, ok := canonical(host, nameBytes)
	if !ok || port == 0 {
		return &Refusal{Host: host, Port: port, Reason: BadHost}
	}
	if rule, denied := p.denies(name, port); denied {
		return &Refusal{Host: name, Port: port, Reason: Denied, Rule: rule}
	}
	if !p.allows(name, port) {
		return &Refusal{Host: name, Port: port, Reason: NotAllowed}
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return p.checkAddress(name, netip.AddrPortFrom(address, port))
	}
	return nil
}

// checkAddress returns why the address must not be connected to, or nil. host, in canonical form,
// is permitted already.
func (p Policy) checkAddress(host string, to netip.AddrPort) *Refusal {
	address := to.Addr().WithZone("").Unmap()
	r := &Refusal{Host: host, Port: to.Port(), Address: address}
	if rule, denied := p.denies(address.String(), to.Port()); denied {
		r.Reason, r.Rule = Denied, rule
		return r
	}
	r.kind = special(address)
	if r.kind == "" || p.opens(host, address, to.Port(), r.kind) {
		return nil
	}
	r.Reason = PrivateAddress
	return r
}

// denies returns the first entry of Denied that matches the canonical host at the port.
func (p Policy) denies(host string, port uint16) (rule string, denied bool) {
	for _, text := range p.Denied {
		if e, ok := parse(text); !ok || e.holds(port) && e.fits(host) {
			return text, true
		}
	}
	return "", false
}

func (p Policy) allows(host string, port uint16) bool {
	return slices.ContainsFunc(p.Allowed, func(text string) bool {
		e, ok := parse(text)
		return ok && e.holds(port) && e.fits(host)
	})
}

// opens reports whether an address that is not public, of that kind, may be connected to for a
// request for host.
func (p Policy) opens(host string, address netip.Addr, port uint16, kind string) bool {
	if host == address.String() {
		return names(p.Allowed, host, port) || names(p.Opened, host, port)
	}
	return neighbourly[kind] && names(p.Opened, host, port)
}

// names reports whether one of the entries is exactly the host, and not only a pattern that matches
// it.
func names(entries []string, host string, port uint16) bool {
	return slices.ContainsFunc(entries, func(text string) bool {
		e, ok := parse(text)
		return ok && e.host == host && e.holds(port)
	})
}
