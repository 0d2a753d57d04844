// What a notification of the supervisor is about, read from the memory of the process that waits.

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// path reads the path argument of a call, and makes it absolute; empty: it cannot be read. It may
// hold links, dots and double slashes.
func (n *notification) path(where name) string {
	if where.path < 0 {
		return n.descriptor(n.args[where.dir])
	}
	path, ok := n.text(n.args[where.path])
	if ok && path == "" && where.dir >= 0 { // it may be allowed by a flag
		return n.descriptor(n.args[where.dir])
	}
	if filepath.IsAbs(path) || path == "" {
		return path
	}
	link := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if where.dir >= 0 && int32(n.args[where.dir]) != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[where.dir]))
	}
	dir, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir + "/" + path
}

// text reads a string of the process; false: it cannot be read, or is too long for a path.
func (n *notification) text(at uint64) (string, bool) {
	var buf [unix.PathMax]byte
	got, err := n.read(at, buf[:])
	if err != nil {
		return "", false
	}
	end := slices.Index(buf[:got], 0)
	if end < 0 {
		return "", false
	}
	return string(buf[:end]), true
}

// read reads from the process's memory, at least to the end of a page.
func (n *notification) read(at uint64, buf []byte) (int, error) {
	page := uint64(os.Getpagesize())
	first := min(uint64(len(buf)), page-at%page)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: int(first)}}
	if rest := uint64(len(buf)) - first; rest > 0 {
		remote = append(remote, unix.RemoteIovec{Base: uintptr(at + first), Len: int(rest)})
	}
	return unix.ProcessVMReadv(int(n.pid), local, remote, 0)
}

// byLibrary reports whether the C library makes the system call on its own account. Before it looks
// up a user's name it tries to connect to a caching daemon (nscd), and continues without one. The
// caller is recognised by the return address, which is on top of the stack only on amd64; elsewhere
// byLibrary returns false.
func (n *notification) byLibrary() bool {
	if arch != unix.AUDIT_ARCH_X86_64 {
		return false
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", n.pid))
	fields := strings.Fields(string(state)) // number, six arguments, stack pointer, program counter
	if err != nil || len(fields) != 9 {
		return false
	}
	top, err := strconv.ParseUint(fields[7], 0, 64)
	var to [8]byte
	if got, err2 := n.read(top, to[:]); err != nil || err2 != nil || got != len(to) {
		return false
	}
	file := n.mapped(binary.LittleEndian.Uint64(to[:]))
	return strings.HasPrefix(file, "libc.so") || strings.HasPrefix(file, "libnss_") || strings.HasPrefix(file, "libc-2") || strings.HasPrefix(file, "ld-musl")
}

// mapped returns the name of the file that is mapped there; empty: none.
func (n *notification) mapped(at uint64) string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from <= at && at < to {
			return filepath.Base(strings.TrimSuffix(line, "\n"))
		}
	}
	return ""
}

// family returns the name of a socket family.
func family(number uint64) string {
	names := map[uint64]string{
		unix.AF_UNIX: "unix", unix.AF_INET: "inet", unix.AF_INET6: "inet6", unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet",
		unix.AF_VSOCK: "vsock", unix.AF_ALG: "alg", unix.AF_BLUETOOTH: "bluetooth",
	}
	if name := names[number]; name != "" {
		return name
	}
	return fmt.Sprintf("family %d", number)
}
