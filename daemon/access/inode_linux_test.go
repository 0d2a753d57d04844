package access

import (
	"net/netip"
	"testing"
)

// The kernel's tables, as a machine of little-endian words writes them.
const (
	table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C002 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
   3: garbage
`
	table6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:C003 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 20 4 30 10 -1
   1: 00000000000000000000000001000000:C004 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0000000000000000 20 4 30 10 -1
`
)

// TestInodeIn finds sockets in the kernel's tables by both addresses.
func TestInodeIn(t *testing.T) {
	for _, test := range []struct {
		table, own, other string
		inode             uint64
		found             bool
	}{
		{table, "127.0.0.1:49153", "127.0.0.1:8080", 4711, true},
		{table, "[::ffff:127.0.0.1]:49153", "127.0.0.1:8080", 4711, true},
		{table, "127.0.0.1:49154", "127.0.0.1:8080", 0, true}, // nobody has it open any more
		{table, "127.0.0.1:49155", "127.0.0.1:8080", 0, false},
		{table, "127.0.0.1:8080", "127.0.0.1:49153", 0, false},
		{table6, "127.0.0.1:49155", "127.0.0.1:8080", 4712, true},
		{table6, "[::1]:49156", "[::1]:8080", 4713, true},
		{"", "[::1]:49156", "[::1]:8080", 0, false},
	} {
		inode, found := inodeIn([]byte(test.table), netip.MustParseAddrPort(test.own), netip.MustParseAddrPort(test.other))
		if inode != test.inode || found != test.found {
			t.Errorf("%s to %s: %d %v, want %d %v", test.own, test.other, inode, found, test.inode, test.found)
		}
	}
}
