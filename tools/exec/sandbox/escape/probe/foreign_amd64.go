//go:build linux

// Doors by the system-call numbers of other architectures, which a filter that looks at numbers alone takes for others.

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
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

func foreign() []door {
	f := func(name string, try func(*scene.Scene) error) door { return plain("foreign system calls", name, try) }
	inside := func(name string, try func(*scene.Scene) error) door {
		return door{name, "foreign system calls", false, func(s *scene.Scene) (string, error) { return "done", try(s) }}
	}
	return []door{
		inside("int 0x80: getpid", func(*scene.Scene) error { return old(oldGetpid, 0, 0, 0) }),
		f("int 0x80: mkdir outside", func(s *scene.Scene) error { return oldPath(oldMkdir, out(s, "new"), 0o755) }),
		f("int 0x80: chmod outside", func(s *scene.Scene) error { return oldPath(oldChmod, out(s, victimFile), 0o600) }),
		inside("int 0x80: socketcall", func(*scene.Scene) error {
			args := low()
			copy(unsafe.Slice((*uint32)(unsafe.Pointer(&args[0])), 3), []uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0})
			return old(oldSocket, 1, uintptr(unsafe.Pointer(&args[0])), 0)
		}),
		inside("int 0x80: unshare", func(*scene.Scene) error { return old(oldUnshare, unix.CLONE_FS, 0, 0) }),
		inside("x32: getpid", func(*scene.Scene) error { return call(x32 | unix.SYS_GETPID) }),
		f("x32: mkdir outside", func(s *scene.Scene) error { return call(x32|unix.SYS_MKDIR, text(out(s, "new")), 0o755) }),
		inside("iopl", func(*scene.Scene) error { return call(unix.SYS_IOPL, 3) }),
		inside("ioperm", func(*scene.Scene) error { return call(unix.SYS_IOPERM, 0x80, 1, 1) }),
		inside("modify_ldt", func(*scene.Scene) error {
			entry := [4]uint32{0, 0, 0, 0x28} // an empty one
			return call(unix.SYS_MODIFY_LDT, 1, uintptr(unsafe.Pointer(&entry)), unsafe.Sizeof(entry))
		}),
	}
}

func old(trap, a1, a2, a3 uintptr) error {
	if r := int32(int80(trap, a1, a2, a3)); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}

// low is memory where 32 bits reach.
func low() []byte {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_32BIT
	return must(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, flags))
}

func oldPath(trap uintptr, path string, mode uintptr) error {
	b := low()
	copy(b, path)
	return old(trap, uintptr(unsafe.Pointer(&b[0])), mode, 0)
}
