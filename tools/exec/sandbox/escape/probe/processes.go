//go:build linux

// Doors into processes outside: their memory, descriptors, limits, priorities, signals.

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func processes() []door {
	inside := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "processes", false, try}
	}
	on := func(name string, try func(pid int) error) door { // the suite sees the effect on the victim
		return plain("processes", name, func(s *scene.Scene) error { return try(s.Victim.PID) })
	}
	return []door{
		inside("process_vm_readv from a process outside", readRemote),
		plain("processes", "process_vm_writev into a process outside", writeRemote),
		inside("ptrace attach to a process outside", func(s *scene.Scene) (string, error) { return trace(s, unix.PtraceAttach) }),
		inside("ptrace seize of a process outside", func(s *scene.Scene) (string, error) {
			return trace(s, func(pid int) error {
				return errors.Join(unix.PtraceSeize(pid), unix.PtraceInterrupt(pid))
			})
		}),
		inside("ptrace seize of the first process", func(*scene.Scene) (string, error) {
			return "seized; it is let go when this process ends", unix.PtraceSeize(1)
		}),
		inside("process_vm_readv from the first process", func(*scene.Scene) (string, error) { // it is refused before the address is looked at
			b := make([]byte, 8)
			_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 8, Len: 8}}, 0)
			if errors.Is(err, unix.EFAULT) {
				err = nil
			}
			return "its memory is within reach", err
		}),
		inside("pidfd_getfd from a process outside", takeDescriptor),
		inside("kcmp with a process outside", func(s *scene.Scene) (string, error) {
			const kcmpFiles = 2
			mustBeVictim(s)
			return "compared", call(unix.SYS_KCMP, uintptr(s.Victim.PID), uintptr(os.Getpid()), kcmpFiles)
		}),
		inside("move_pages of a process outside", func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			page, status := s.Victim.Address, int32(0)
			return "where its pages are", call(unix.SYS_MOVE_PAGES, uintptr(s.Victim.PID), 1, uintptr(unsafe.Pointer(&page)), 0, uintptr(unsafe.Pointer(&status)), 0)
		}),
		on("prlimit on a process outside", func(pid int) error {
			var l unix.Rlimit
			check(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l))
			l.Cur--
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &l, nil)
		}),
		inside("prlimit on a process outside with a pointer that a filter may take for none", func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			return "lowered a limit", limitFromAfar(s.Victim.PID)
		}),
		on("setpriority on a process outside", func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 7) }),
		on("ioprio_set on a process outside", func(pid int) error {
			const process, best, lowest = 1, 2 << 13, 7
			return call(unix.SYS_IOPRIO_SET, process, uintptr(pid), best|lowest)
		}),
		on("sched_setaffinity on a process outside", func(pid int) error {
			var set unix.CPUSet
			set.Set(0)
			return unix.SchedSetaffinity(pid, &set)
		}),
		on("sched_setscheduler on a process outside", func(pid int) error {
			const batch = 3
			priority := int32(0)
			return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), batch, uintptr(unsafe.Pointer(&priority)))
		}),
	}
}

// limitFromAfar has the new limit where the low half of the address is zero.
func limitFromAfar(pid int) error {
	const hint = 1 << 33
	at := must(result(unix.SYS_MMAP, hint, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0)))
	var l unix.Rlimit
	check(unix.Getrlimit(unix.RLIMIT_NOFILE, &l))
	l.Cur--
	b, err := result(unix.SYS_PREAD64, uintptr(source(&l)), at, unsafe.Sizeof(l))
	if err != nil || b != unsafe.Sizeof(l) {
		return errors.Join(err, errors.New("the limit was not put where it must be"))
	}
	return call(unix.SYS_PRLIMIT64, uintptr(pid), unix.RLIMIT_NOFILE, at)
}

// source is a file that holds a limit, by which it comes to an address that Go does not know.
func source(l *unix.Rlimit) int {
	fd, err := unix.MemfdCreate("limit", unix.MFD_CLOEXEC)
	if err != nil {
		return -1
	}
	_, _ = unix.Write(fd, unsafe.Slice((*byte)(unsafe.Pointer(l)), unsafe.Sizeof(*l)))
	return fd
}

func remote(s *scene.Scene, b []byte) ([]unix.Iovec, []unix.RemoteIovec) {
	here := []unix.Iovec{{Base: &b[0]}}
	here[0].SetLen(len(b))
	return here, []unix.RemoteIovec{{Base: s.Victim.Address, Len: len(b)}}
}

func readRemote(s *scene.Scene) (string, error) {
	b := make([]byte, 64)
	here, there := remote(s, b)
	n, err := unix.ProcessVMReadv(s.Victim.PID, here, there, 0)
	return told(s, b[:max(n, 0)], err)
}

// writeRemote writes behind the secret, where the victim shows what it holds when it ends.
func writeRemote(s *scene.Scene) error {
	here, there := remote(s, []byte("overwritten"))
	there[0].Base += 1024
	_, err := unix.ProcessVMWritev(s.Victim.PID, here, there, 0)
	return err
}

func trace(s *scene.Scene, stop func(pid int) error) (string, error) {
	runtime.LockOSThread()
	pid := s.Victim.PID
	mustBeVictim(s)
	check(stop(pid))
	var status unix.WaitStatus
	must(unix.Wait4(pid, &status, unix.WALL, nil))
	b := make([]byte, 64)
	n, err := unix.PtracePeekData(pid, s.Victim.Address, b)
	return finish(unix.PtraceDetach(pid))(told(s, b[:max(n, 0)], err))
}

// finish adds what went wrong at the end.
func finish(last error) func(string, error) (string, error) {
	return func(detail string, err error) (string, error) {
		if err == nil && last != nil {
			detail += fmt.Sprintf(", then %v", last)
		}
		return detail, err
	}
}

func takeDescriptor(s *scene.Scene) (string, error) {
	pidfd := must(unix.PidfdOpen(s.Victim.PID, 0))
	return toldBy(s, func(b []byte) (int, error) { return unix.Pread(must(unix.PidfdGetfd(pidfd, s.Victim.Secret, 0)), b, 0) })
}

// signals each send a signal of their own, so that the receiver can see which door it came through.
func signals() []door {
	f := func(name string, try func(s *scene.Scene, n unix.Signal) error) door {
		return plain("signals", name, func(s *scene.Scene) error {
			n, ok := s.Signals[name]
			if !ok {
				return errors.New("the scene has no signal for this door")
			}
			return try(s, unix.Signal(n))
		})
	}
	return []door{
		f("kill a process outside", func(s *scene.Scene, n unix.Signal) error { return unix.Kill(s.Victim.PID, n) }),
		f("tgkill a process outside", func(s *scene.Scene, n unix.Signal) error { return unix.Tgkill(s.Victim.PID, s.Victim.PID, n) }),
		f("tkill a process outside", func(s *scene.Scene, n unix.Signal) error {
			return call(unix.SYS_TKILL, uintptr(s.Victim.PID), uintptr(n))
		}),
		f("kill the process group of a process outside", func(s *scene.Scene, n unix.Signal) error { return unix.Kill(-s.Victim.PID, n) }),
		f("pidfd_send_signal to a process outside", func(s *scene.Scene, n unix.Signal) error {
			return unix.PidfdSendSignal(must(unix.PidfdOpen(s.Victim.PID, 0)), n, nil, 0)
		}),
		f("pidfd_send_signal through /proc/PID", func(s *scene.Scene, n unix.Signal) error {
			return unix.PidfdSendSignal(must(unix.Open(fmt.Sprintf("/proc/%d", s.Victim.PID), unix.O_DIRECTORY|unix.O_RDONLY, 0)), n, nil, 0)
		}),
		f("rt_sigqueueinfo to a process outside", func(s *scene.Scene, n unix.Signal) error {
			var info [128]byte
			*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
			return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(s.Victim.PID), uintptr(n), uintptr(unsafe.Pointer(&info)))
		}),
		f("fcntl F_SETOWN a process outside and be written to", onWrite),
		f("kill the starter", func(s *scene.Scene, n unix.Signal) error { return unix.Kill(s.Starter.PID, n) }),
		f("kill the parent of the probe", func(s *scene.Scene, n unix.Signal) error {
			if parent := grandparent(); parent != s.Starter.PID { // that process would die of it
				return fmt.Errorf("process %d is none of those outside that the suite has made", parent)
			}
			return unix.Kill(s.Starter.PID, n)
		}),
		// kill(-1, 0) says nothing of whom it reached, and any other would reach the whole machine: what it could reach is
		// asked one by one, with no signal at all.
		{"kill(-1) would reach processes outside", "signals", false, func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			return "it would reach the victim", unix.Kill(s.Victim.PID, 0)
		}},
	}
}

// onWrite lets the kernel signal the owner of a pipe when it is written to.
func onWrite(s *scene.Scene, n unix.Signal) error {
	var p [2]int
	check(unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	const setSignal = 10 // F_SETSIG
	for command, value := range map[int]int{unix.F_SETOWN: s.Victim.PID, setSignal: int(n)} {
		must(unix.FcntlInt(uintptr(p[0]), command, value))
	}
	must(unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK))
	return write(p[1], "!")
}

// grandparent is who started the process that starts the doors.
func grandparent() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getppid()))
	var pid, parent int
	var name, state string
	if err == nil {
		_, err = fmt.Sscan(string(b), &pid, &name, &state, &parent)
	}
	if err != nil || parent == 0 {
		return os.Getppid()
	}
	return parent
}
