//go:build linux

// Doors to the parts of the kernel that no build needs: keyrings, tracing, programs in the kernel, modules, clocks. What
// would change the machine is asked with arguments that are refused once the caller has been judged.

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernel(p *probe) {
	f := p.inside("kernel")
	past := func(name string, trap uintptr, args ...any) {
		f(name, func() error { return p.reached(call(trap, args...)) })
	}
	const (
		none           = -1                            // no descriptor
		processKeyring = -2                            // KEY_SPEC_PROCESS_KEYRING
		nothing        = "/proc/self/toold-escape"     // no such file, and nobody can make one there
		module         = "toold_escape_no_such_module" // no such module
	)
	past("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, processKeyring, 1)
	past("request_key", unix.SYS_REQUEST_KEY, "user", "toold-none", 0, 0)
	f("add_key", func() error { return call(unix.SYS_ADD_KEY, "user", "toold", "none", len("none"), processKeyring) })
	past("userfaultfd", unix.SYS_USERFAULTFD, unix.O_CLOEXEC)
	past("userfaultfd for user mode only", unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)
	f("perf_event_open on itself", func() error { return perf(0) })
	f("perf_event_open on a process outside", func() error {
		p.mustBeVictim()
		return perf(p.Victim.PID)
	})
	f("bpf map create", func() error { return bpf(unix.BPF_MAP_CREATE, &[18]uint32{2, 4, 4, 1}) }) // an array of one
	f("bpf program load", func() error {
		program := [2]uint64{0xb7, 0x95} // r0 = 0; exit
		attr := [18]uint32{unix.BPF_PROG_TYPE_SOCKET_FILTER, 2}
		*(*uint64)(unsafe.Pointer(&attr[2])) = uint64(address(unsafe.Pointer(&program)))
		*(*uint64)(unsafe.Pointer(&attr[4])) = uint64(text("GPL"))
		return bpf(unix.BPF_PROG_LOAD, &attr)
	})
	past("init_module", unix.SYS_INIT_MODULE, nothing, 0, nothing)
	past("finit_module", unix.SYS_FINIT_MODULE, none, nothing, 0)
	past("delete_module", unix.SYS_DELETE_MODULE, module, unix.O_NONBLOCK)
	past("kexec_load", unix.SYS_KEXEC_LOAD, 0, 1<<20, nothing, 0xffff)
	past("swapon", unix.SYS_SWAPON, nothing, 0)
	past("swapoff", unix.SYS_SWAPOFF, nothing)
	past("acct", unix.SYS_ACCT, nothing)
	past("reboot", unix.SYS_REBOOT, 1, 2, 3, 0) // no magic number at all
	f("adjtimex", func() error { return tick(unix.Adjtimex) })
	f("clock_adjtime", func() error {
		return tick(func(t *unix.Timex) (int, error) { return unix.ClockAdjtime(unix.CLOCK_REALTIME, t) })
	})
	var u unix.Utsname
	_ = unix.Uname(&u) // it fails only for a wrong address
	f("sethostname", func() error { return unix.Sethostname([]byte(unix.ByteSliceToString(u.Nodename[:]))) })
	f("setdomainname", func() error { return unix.Setdomainname([]byte(unix.ByteSliceToString(u.Domainname[:]))) })
	f("syslog: read the kernel's messages", func() error {
		n, err := unix.Klogctl(3, make([]byte, 4096)) // SYSLOG_ACTION_READ_ALL
		return p.did(err, "%d bytes", n)
	})
	past("syslog: change the console's level", unix.SYS_SYSLOG, 8, 0, 99) // there is no level 99
	f("personality READ_IMPLIES_EXEC", func() error { return call(unix.SYS_PERSONALITY, 0x0400000) })
	f("personality without address randomisation", func() error { return call(unix.SYS_PERSONALITY, 0x0040000) })
}

// perf counts a software clock.
func perf(pid int) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel}
	attr.Size = uint32(unsafe.Sizeof(attr))
	_, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return err
}

func bpf(command int, attr *[18]uint32) error {
	return call(unix.SYS_BPF, command, unsafe.Pointer(attr), unsafe.Sizeof(*attr))
}

// tick sets the clock's tick to what it is.
func tick(adjust func(*unix.Timex) (int, error)) error {
	var t unix.Timex
	must(adjust(&t))
	t.Modes = 0x4000 // ADJ_TICK
	_, err := adjust(&t)
	return err
}
