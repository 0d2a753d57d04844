//go:build linux

// Doors by io_uring, which makes system calls that seccomp does not see.

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
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

func rings(p *probe) {
	in, f := p.inside("io_uring"), p.outside("io_uring")
	name := func() uint64 { return uint64(text(p.fresh)) }
	in("io_uring_setup", func() error { return call(unix.SYS_IO_URING_SETUP, 1, unsafe.Pointer(new(params))) })
	f("create a file outside by io_uring", func() error {
		return submit(entry{op: opOpenat, fd: cwd, addr: name(), length: 0o644, opFlags: unix.O_CREAT | unix.O_WRONLY})
	})
	f("mkdir outside by io_uring", func() error { return submit(entry{op: opMkdirat, fd: cwd, addr: name(), length: 0o755}) })
	in("make an IPv4 socket by io_uring", func() error {
		return submit(entry{op: opSocket, fd: unix.AF_INET, off: unix.SOCK_STREAM})
	})
}

// submit makes a ring for one entry, and waits for its result.
func submit(e entry) error {
	var p params
	ring := must(result(unix.SYS_IO_URING_SETUP, 1, unsafe.Pointer(&p)))
	mapped := func(offset int64) []byte {
		return must(unix.Mmap(int(ring), offset, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE))
	}
	shared, asked := mapped(0), mapped(ringEntries)
	*(*entry)(unsafe.Pointer(&asked[0])) = e
	*(*uint32)(unsafe.Pointer(&shared[p.array])) = 0
	*(*uint32)(unsafe.Pointer(&shared[p.tail]))++
	check(call(unix.SYS_IO_URING_ENTER, ring, 1, 1, 1, 0, 0)) // wait for one
	if r := *(*int32)(unsafe.Pointer(&shared[p.cqes+8])); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}
