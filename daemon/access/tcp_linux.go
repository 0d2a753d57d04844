// Which process is at the other end of a TCP connection, if it is on this machine.

package access

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// otherEnd looks at who holds the other end of a connection: child is a process that a call of this daemon has started, 0 if none
// does; gone is true if no process holds it any more. theirs and ours are the two addresses.
func otherEnd(theirs, ours netip.AddrPort) (child int, gone bool, err error) {
	inode, found, err := inodeOf(theirs, ours)
	if err != nil || !found || inode == 0 {
		return 0, found, err
	}
	child, err = childHolding(fmt.Sprintf("socket:[%d]", inode))
	return child, false, err
}

// inodeOf finds a socket in the kernel's tables.
func inodeOf(own, other netip.AddrPort) (inode uint64, found bool, err error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // without IPv6
		}
		if err != nil {
			return 0, false, err
		}
		if inode, found = inodeIn(table, own, other); found {
			return inode, true, nil
		}
	}
	return 0, false, nil
}

// inodeIn finds the line of a socket in such a table, by its own and the other's address. The columns are described in
// proc_net_tcp.txt of the kernel's documentation.
func inodeIn(table []byte, own, other netip.AddrPort) (inode uint64, found bool) {
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		columns := bytes.Fields(lines.Bytes())
		if len(columns) < 10 {
			continue
		}
		local, okLocal := addressOf(columns[1])
		remote, okRemote := addressOf(columns[2])
		if !okLocal || !okRemote || local != plain(own) || remote != plain(other) {
			continue
		}
		inode, err := strconv.ParseUint(string(columns[9]), 10, 64)
		return inode, err == nil
	}
	return 0, false
}

// addressOf reads an address as the kernel writes it: words of 32 bits in the machine's order, in hexadecimal.
func addressOf(text []byte) (netip.AddrPort, bool) {
	host, port, ok := bytes.Cut(text, []byte(":"))
	number, err := strconv.ParseUint(string(port), 16, 16)
	raw, decoded := hex.DecodeString(string(host))
	if !ok || err != nil || decoded != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return plain(netip.AddrPortFrom(addr, uint16(number))), ok
}

// childHolding returns a process that was started for a call and has the socket open. A process whose open files cannot be read
// counts if no other process has the socket open.
func childHolding(socket string) (pid int, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	hiding, other := 0, false
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		child, err := startedHere(pid)
		if err != nil {
			continue // it is gone
		}
		switch holds, err := hasOpen(dir, socket); {
		case holds && child:
			return pid, nil
		case holds:
			other = true
		case child && os.IsPermission(err):
			hiding = pid
		}
	}
	if other {
		return 0, nil
	}
	return hiding, nil
}

// hasOpen reports whether a process has the socket open.
func hasOpen(process, socket string) (bool, error) {
	dir := filepath.Join(process, "fd")
	open, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == socket {
			return true, nil
		}
	}
	return false, nil
}
