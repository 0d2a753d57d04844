//go:build linux

// Doors by io_uring, which makes system calls that seccomp does not see.

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// From linux/io_uring.h.
const (
	ringEntries = 0x10000000 // IORING_OFF_SQES
	opOpenat    = 18
	opMkdirat   = 37
	opSocket    = 45
)

// An entry is what is asked of the ring: struct io_uring_sqe.
type entry struct {
	op, flags uint8
	prio      uint16
	fd        int32
	off, addr uint64
	length    uint32
	opFlags   uint32
	rest      [4]uint64
}

// params are struct io_uring_params.
type params struct {
	entries, completions, flags, cpu, idle, features, wq  uint32
	_                                                     [3]uint32
	head, tail, mask, count, dropped, ringFlags, array, _ uint32
	_                                                     uint64
	cqHead, cqTail, cqMask, cqCount, overflow, cqes       uint32
	_                                                     [4]uint32
}

func rings() []door {
	return []door{
		{"io_uring_setup", "io_uring", false, func(*scene.Scene) (string, error) {
			return "there is a ring", call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new(params))))
		}},
		plain("io_uring", "create a file outside by io_uring", func(s *scene.Scene) error {
			return submit(entry{
				op: opOpenat, fd: int32(dirfd), addr: uint64(text(out(s, "new"))), length: 0o644,
				opFlags: unix.O_CREAT | unix.O_WRONLY,
			})
		}),
		plain("io_uring", "mkdir outside by io_uring", func(s *scene.Scene) error {
			return submit(entry{op: opMkdirat, fd: int32(dirfd), addr: uint64(text(out(s, "new"))), length: 0o755})
		}),
		{"make an IPv4 socket by io_uring", "io_uring", false, func(*scene.Scene) (string, error) {
			return "there is one", submit(entry{op: opSocket, fd: unix.AF_INET, off: unix.SOCK_STREAM})
		}},
	}
}

// submit makes a ring for one entry, and waits for its result.
func submit(e entry) error {
	var p params
	ring := must(result(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p))))
	const both = unix.PROT_READ | unix.PROT_WRITE
	shared, err := unix.Mmap(int(ring), 0, 4096, both, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping the ring: %w", err)
	}
	asked, err := unix.Mmap(int(ring), ringEntries, 4096, both, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping its entries: %w", err)
	}
	*(*entry)(unsafe.Pointer(&asked[0])) = e
	*(*uint32)(unsafe.Pointer(&shared[p.array])) = 0
	*(*uint32)(unsafe.Pointer(&shared[p.tail]))++
	check(call(unix.SYS_IO_URING_ENTER, ring, 1, 1, 1, 0, 0)) // wait for one
	if r := *(*int32)(unsafe.Pointer(&shared[p.cqes+8])); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}
