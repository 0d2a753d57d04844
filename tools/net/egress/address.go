// Addresses that are not public. A translator's prefix that only its network defines (RFC 6052,
// 2.2) is not recognised; the network must protect what it leads to.

package egress

import (
	"net"
	"net/netip"
)

// A block is a range of addresses that no public host has.
type block struct {
	netip.Prefix
	kind string // completes "is"
}

// The kinds with rules of their own.
const (
	loopback = "loopback"
	private  = "private"
	carrier  = "of a carrier's own network"
	cloud    = "a cloud's own"
	ownKind  = "one of this machine's own"
)

// neighbourly are the kinds of addresses that a machine with a local name may have.
var neighbourly = map[string]bool{loopback: true, private: true, carrier: true, ownKind: true}

// blocks are the ranges in the IANA registries of special-purpose addresses (IPv4 and IPv6) that
// lead to no public host, and the multicast ranges. The first one that holds an address defines its
// kind. Forms that carry an IPv4 address are refused as a whole: what they lead to depends on a
// translator.
var blocks = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.100.100.200/32"), cloud}, // Alibaba's metadata
	{netip.MustParsePrefix("100.64.0.0/10"), carrier},
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("168.63.129.16/32"), cloud}, // Azure's, to its machines
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "of a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("64:ff9b::/96"), "translated (NAT64)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translated (NAT64)"},
	{netip.MustParsePrefix("fd00:ec2::/32"), cloud},    // Amazon's metadata and names
	{netip.MustParsePrefix("fd20:ce::254/128"), cloud}, // Google's metadata
	{netip.MustParsePrefix("fc00::/7"), private},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/32"), "translated (Teredo)"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "translated (6to4)"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
}

// global is the range of public IPv6 addresses; everything else is reserved.
var global = netip.MustParsePrefix("2000::/3")

// special returns the kind of an address that no public host has, or "". The address must not be
// mapped or have a zone.
func special(address netip.Addr) string {
	for _, b := range blocks {
		if b.Contains(address) {
			return b.kind
		}
	}
	switch {
	case address.Is4():
		return ""
	case !global.Contains(address):
		return "reserved"
	case isISATAP(address):
		return "translated (ISATAP)"
	default:
		return ""
	}
}

// isISATAP reports whether the address carries an IPv4 address after the mark of RFC 5214, 6.1.
func isISATAP(address netip.Addr) bool {
	b := address.As16()
	return b[8]&^3 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// isOwn reports whether the address is one of this machine's, even if it looks public: its servers
// may be meant only for neighbours. If the machine's addresses cannot be read, every address counts
// as its own.
func isOwn(address netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(address.AsSlice()) {
			return true
		}
	}
	return err != nil
}
