//go:build linux

// Doors by the system-call numbers of other architectures, which a filter that looks at numbers alone takes for others.

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func int80(trap, a1, a2, a3 uintptr) (r uintptr)

// The numbers on i386.
const (
	oldGetpid  = 20
	oldMkdir   = 39
	oldChmod   = 15
	oldSocket  = 102 // socketcall
	oldUnshare = 310
)

// x32 marks the numbers of 32-bit pointers on amd64.
const x32 = 0x40000000

func foreign(p *probe) {
	in, f := p.inside("foreign system calls"), p.outside("foreign system calls")
	in("int 0x80: getpid", func() error { return old(oldGetpid, 0, 0) })
	f("int 0x80: mkdir outside", func() error { return old(oldMkdir, low([]byte(p.fresh)), 0o755) })
	f("int 0x80: chmod outside", func() error { return old(oldChmod, low([]byte(p.file)), 0o600) })
	in("int 0x80: socketcall", func() error { return old(oldSocket, 1, low([]byte{unix.AF_UNIX, 4: unix.SOCK_STREAM, 8: 0})) })
	in("int 0x80: unshare", func() error { return old(oldUnshare, unix.CLONE_FS, 0) })
	in("x32: getpid", func() error { return call(x32 | unix.SYS_GETPID) })
	f("x32: mkdir outside", func() error { return call(x32|unix.SYS_MKDIR, p.fresh, 0o755) })
	in("iopl", func() error { return call(unix.SYS_IOPL, 3) })
	in("ioperm", func() error { return call(unix.SYS_IOPERM, 0x80, 1, 1) })
	in("modify_ldt", func() error {
		entry := [4]uint32{0, 0, 0, 0x28} // an empty one
		return call(unix.SYS_MODIFY_LDT, 1, unsafe.Pointer(&entry), unsafe.Sizeof(entry))
	})
}

func old(trap, a1, a2 uintptr) error {
	if r := int32(int80(trap, a1, a2, 0)); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}

// low puts content where 32 bits reach, with zeros after it.
func low(content []byte) uintptr {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_32BIT
	b := must(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, flags))
	copy(b, content)
	return uintptr(unsafe.Pointer(&b[0]))
}
