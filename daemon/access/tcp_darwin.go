// The process at the other end of a TCP connection, which is unknown here.

package access

import "net/netip"

// An end is what the kernel reports about the other end of a connection.
type end struct {
	local bool
	gone  bool
	child int
}

func otherEnd(theirs, ours netip.AddrPort) (end, error) { return end{}, nil }
