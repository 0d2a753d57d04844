//go:build linux

// Doors into processes outside: their memory, descriptors, limits, priorities, signals.

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

func processes(p *probe) {
	in, f, pid := p.inside("processes"), p.outside("processes"), p.Victim.PID
	in("process_vm_readv from a process outside", func() error {
		return p.toldBy(func(b []byte) (int, error) { return readFrom(pid, p.Victim.Address, b[:64]) })
	})
	f("process_vm_writev into a process outside", func() error { // behind the secret, where the victim shows what it holds when it ends
		b := []byte("overwritten")
		there := []unix.RemoteIovec{{Base: p.Victim.Address + 1024, Len: len(b)}}
		_, err := unix.ProcessVMWritev(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}, there, 0)
		return err
	})
	in("ptrace attach to a process outside", func() error { return p.trace(unix.PtraceAttach) })
	in("ptrace seize of a process outside", func() error {
		return p.trace(func(pid int) error { return errors.Join(unix.PtraceSeize(pid), unix.PtraceInterrupt(pid)) })
	})
	in("ptrace seize of the first process", func() error { return p.seize(1) })
	in("process_vm_readv from the first process", func() error { return mayRead(1) })
	in("pidfd_getfd from a process outside", func() error {
		fd := must(unix.PidfdGetfd(must(unix.PidfdOpen(pid, 0)), p.Victim.Secret, 0))
		return p.toldBy(func(b []byte) (int, error) { return unix.Pread(fd, b, 0) })
	})
	in("kcmp with a process outside", func() error {
		const kcmpFiles = 2
		p.mustBeVictim()
		return call(unix.SYS_KCMP, pid, os.Getpid(), kcmpFiles)
	})
	in("move_pages of a process outside", func() error {
		p.mustBeVictim()
		page, status := p.Victim.Address, int32(0)
		return call(unix.SYS_MOVE_PAGES, pid, 1, unsafe.Pointer(&page), 0, unsafe.Pointer(&status), 0)
	})
	f("prlimit on a process outside", func() error {
		var l unix.Rlimit
		check(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l))
		l.Cur--
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &l, nil)
	})
	in("prlimit on a process outside with a pointer that a filter may take for none", func() error {
		p.mustBeVictim()
		return limitFromAfar(pid)
	})
	f("setpriority on a process outside", func() error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 7) })
	f("ioprio_set on a process outside", func() error {
		const process, best, lowest = 1, 2 << 13, 7
		return call(unix.SYS_IOPRIO_SET, process, pid, best|lowest)
	})
	f("sched_setaffinity on a process outside", func() error {
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(pid, &set)
	})
	f("sched_setscheduler on a process outside", func() error {
		const batch = 3
		return call(unix.SYS_SCHED_SETSCHEDULER, pid, batch, unsafe.Pointer(new(int32)))
	})
}

// limitFromAfar has the new limit where the low half of the address is zero.
func limitFromAfar(pid int) error {
	const hint, flags = 1 << 33, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	at := must(result(unix.SYS_MMAP, hint, 4096, unix.PROT_READ|unix.PROT_WRITE, flags, -1))
	var l unix.Rlimit
	check(unix.Getrlimit(unix.RLIMIT_NOFILE, &l))
	l.Cur--
	// A file brings it to an address that Go does not know.
	fd := must(unix.MemfdCreate("limit", unix.MFD_CLOEXEC))
	must(unix.Write(fd, unsafe.Slice((*byte)(unsafe.Pointer(&l)), unsafe.Sizeof(l))))
	if n := must(result(unix.SYS_PREAD64, fd, at, unsafe.Sizeof(l))); n != unsafe.Sizeof(l) {
		return errors.New("the limit was not put where it must be")
	}
	return call(unix.SYS_PRLIMIT64, pid, unix.RLIMIT_NOFILE, at)
}

// readFrom reads from the memory of a process.
func readFrom(pid int, address uintptr, b []byte) (int, error) {
	return unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}, []unix.RemoteIovec{{Base: address, Len: len(b)}}, 0)
}

// mayRead reports whether the memory of a process may be read, at an address at which nothing is: who may not is told so before.
func mayRead(pid int) error {
	if _, err := readFrom(pid, 8, make([]byte, 8)); !errors.Is(err, unix.EFAULT) {
		return err
	}
	return nil
}

func (p *probe) seize(pid int) error {
	return p.did(unix.PtraceSeize(pid), "seized; it is let go when this process ends")
}

func (p *probe) trace(stop func(pid int) error) error {
	runtime.LockOSThread()
	pid := p.Victim.PID
	p.mustBeVictim()
	check(stop(pid))
	must(unix.Wait4(pid, nil, unix.WALL, nil))
	err := p.toldBy(func(b []byte) (int, error) { return unix.PtracePeekData(pid, p.Victim.Address, b[:64]) })
	p.then(unix.PtraceDetach(pid))
	return err
}

// signals each send a signal of their own, so that the receiver can see which door it came through.
func signals(p *probe) {
	add, pid := p.outside("signals"), p.Victim.PID
	f := func(name string, try func(n unix.Signal) error) {
		add(name, func() error {
			n, ok := p.Signals[name]
			if !ok {
				return errors.New("the scene has no signal for this door")
			}
			return try(unix.Signal(n))
		})
	}
	f("kill a process outside", func(n unix.Signal) error { return unix.Kill(pid, n) })
	f("tgkill a process outside", func(n unix.Signal) error { return unix.Tgkill(pid, pid, n) })
	f("tkill a process outside", func(n unix.Signal) error { return call(unix.SYS_TKILL, pid, int(n)) })
	f("kill the process group of a process outside", func(n unix.Signal) error { return unix.Kill(-pid, n) })
	f("pidfd_send_signal to a process outside", func(n unix.Signal) error {
		return unix.PidfdSendSignal(must(unix.PidfdOpen(pid, 0)), n, nil, 0)
	})
	f("pidfd_send_signal through /proc/PID", func(n unix.Signal) error {
		return unix.PidfdSendSignal(open(proc(pid, ""), unix.O_DIRECTORY|unix.O_RDONLY), n, nil, 0)
	})
	f("rt_sigqueueinfo to a process outside", func(n unix.Signal) error {
		info := [32]int32{2: -1} // SI_QUEUE
		return call(unix.SYS_RT_SIGQUEUEINFO, pid, int(n), unsafe.Pointer(&info))
	})
	f("fcntl F_SETOWN a process outside and be written to", p.onWrite)
	f("kill the starter", func(n unix.Signal) error { return unix.Kill(p.Starter.PID, n) })
	f("kill the parent of the probe", func(n unix.Signal) error {
		if parent := grandparent(); parent != p.Starter.PID { // that process would die of it
			return fmt.Errorf("process %d is none of those outside that the suite has made", parent)
		}
		return unix.Kill(p.Starter.PID, n)
	})
	// kill(-1, 0) says nothing of whom it reached, and any other would reach the whole machine: what it could reach is
	// asked one by one, with no signal at all.
	p.inside("signals")("kill(-1) would reach processes outside", func() error {
		p.mustBeVictim()
		return p.did(unix.Kill(pid, 0), "it would reach the victim")
	})
}

// onWrite lets the kernel signal the owner of a pipe when it is written to.
func (p *probe) onWrite(n unix.Signal) error {
	var pipe [2]int
	check(unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	const setSignal = 10 // F_SETSIG
	for _, set := range [][2]int{{unix.F_SETOWN, p.Victim.PID}, {setSignal, int(n)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		must(unix.FcntlInt(uintptr(pipe[0]), set[0], set[1]))
	}
	return write(pipe[1], "!")
}

// grandparent is who started the process that starts the doors.
func grandparent() int {
	text, err := status(strconv.Itoa(os.Getppid()), "PPid")
	if parent, err2 := strconv.Atoi(text); err == nil && err2 == nil && parent != 0 {
		return parent
	}
	return os.Getppid()
}
