//go:build linux

// Doors to the parts of the kernel that no build needs: keyrings, tracing, programs in the kernel, modules, clocks. What
// would change the machine is asked with arguments that are refused once the caller has been judged.

package main

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func kernel() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "kernel", false, try}
	}
	past := func(name string, trap uintptr, args ...uintptr) door {
		return f(name, func(*scene.Scene) (string, error) {
			return reached(call(trap, args...))
		})
	}
	does := func(name string, try func() error) door {
		return f(name, func(*scene.Scene) (string, error) { return "done", try() })
	}
	const none = ^uintptr(0)                      // no descriptor
	const processKeyring = ^uintptr(1)            // KEY_SPEC_PROCESS_KEYRING, -2
	nothing := text("/proc/self/toold-escape")    // no such file, and nobody can make one there
	module := text("toold_escape_no_such_module") // no such module
	return []door{
		past("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, processKeyring, 1),
		past("request_key", unix.SYS_REQUEST_KEY, text("user"), text("toold-none"), 0, 0),
		does("add_key", func() error {
			value := []byte("none")
			return call(unix.SYS_ADD_KEY, text("user"), text("toold"), uintptr(unsafe.Pointer(&value[0])), 4, processKeyring)
		}),
		past("userfaultfd", unix.SYS_USERFAULTFD, unix.O_CLOEXEC),
		past("userfaultfd for user mode only", unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1),
		f("perf_event_open on itself", func(*scene.Scene) (string, error) { return perf(0) }),
		f("perf_event_open on a process outside", func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			return perf(s.Victim.PID)
		}),
		f("bpf map create", func(*scene.Scene) (string, error) {
			attr := [18]uint32{2, 4, 4, 1} // an array of one
			return bpf(unix.BPF_MAP_CREATE, &attr)
		}),
		f("bpf program load", func(*scene.Scene) (string, error) {
			program := [2]uint64{0xb7, 0x95} // r0 = 0; exit
			license := []byte("GPL\x00")
			attr := [18]uint32{unix.BPF_PROG_TYPE_SOCKET_FILTER, 2}
			*(*uint64)(unsafe.Pointer(&attr[2])) = uint64(uintptr(unsafe.Pointer(&program)))
			*(*uint64)(unsafe.Pointer(&attr[4])) = uint64(uintptr(unsafe.Pointer(&license[0])))
			return bpf(unix.BPF_PROG_LOAD, &attr)
		}),
		past("init_module", unix.SYS_INIT_MODULE, nothing, 0, nothing),
		past("finit_module", unix.SYS_FINIT_MODULE, none, nothing, 0),
		past("delete_module", unix.SYS_DELETE_MODULE, module, unix.O_NONBLOCK),
		past("kexec_load", unix.SYS_KEXEC_LOAD, 0, 1<<20, nothing, 0xffff),
		past("swapon", unix.SYS_SWAPON, nothing, 0),
		past("swapoff", unix.SYS_SWAPOFF, nothing),
		past("acct", unix.SYS_ACCT, nothing),
		past("reboot", unix.SYS_REBOOT, 1, 2, 3, 0), // no magic number at all
		does("adjtimex", func() error { return tick(func(t *unix.Timex) error { _, err := unix.Adjtimex(t); return err }) }),
		does("clock_adjtime", func() error {
			return tick(func(t *unix.Timex) error { _, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, t); return err })
		}),
		does("sethostname", func() error {
			var u unix.Utsname
			err := unix.Uname(&u)
			return errors.Join(err, unix.Sethostname([]byte(unix.ByteSliceToString(u.Nodename[:]))))
		}),
		does("setdomainname", func() error {
			var u unix.Utsname
			err := unix.Uname(&u)
			return errors.Join(err, unix.Setdomainname([]byte(unix.ByteSliceToString(u.Domainname[:]))))
		}),
		f("syslog: read the kernel's messages", func(*scene.Scene) (string, error) {
			n, err := unix.Klogctl(3, make([]byte, 4096)) // SYSLOG_ACTION_READ_ALL
			return fmt.Sprintf("%d bytes", n), err
		}),
		f("syslog: change the console's level", func(*scene.Scene) (string, error) {
			return reached(call(unix.SYS_SYSLOG, 8, 0, 99)) // there is no level 99
		}),
		does("personality READ_IMPLIES_EXEC", func() error { return call(unix.SYS_PERSONALITY, 0x0400000) }),
		does("personality without address randomisation", func() error { return call(unix.SYS_PERSONALITY, 0x0040000) }),
	}
}

// perf counts a software clock.
func perf(pid int) (string, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	_ = unix.Close(fd)
	return "it counts", err
}

func bpf(command uintptr, attr *[18]uint32) (string, error) {
	return "done", call(unix.SYS_BPF, command, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
}

// tick sets the clock's tick to what it is.
func tick(adjust func(*unix.Timex) error) error {
	var t unix.Timex
	check(adjust(&t))
	t.Modes = 0x4000 // ADJ_TICK
	return adjust(&t)
}
