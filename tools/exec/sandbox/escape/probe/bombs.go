//go:build linux

// Doors to more of the machine than one call may have. Each bomb ends by itself at its bound, and offers itself first to
// the kernel's killer.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func bombs(p *probe) {
	add := p.inside("bombs")
	f := func(name string, try func() error) {
		add(name, func() error {
			_ = store("/proc/self/oom_score_adj", "1000")
			return try()
		})
	}
	f("write a file larger than any should be", func() error {
		file := must(os.Create(p.own + "/large"))
		defer os.Remove(file.Name())
		_, err := file.WriteAt([]byte("!"), p.Bounds.FileSize)
		return p.did(err, "%d bytes, all but one a hole", p.Bounds.FileSize)
	})
	f("open more files than any should", func() error {
		for n := range p.Bounds.Files {
			if _, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				return fmt.Errorf("after %d: %w", n, err)
			}
		}
		return p.did(nil, "%d files", p.Bounds.Files)
	})
	f("fill the temporary directory", func() error { return p.fill(os.TempDir()) })
	f("fill /dev/shm", func() error { return p.fill("/dev/shm") })
	f("fill the root", func() error { return p.fill(p.own) })
	f("start more threads than any should", p.threads)
	f("take more memory than any should", func() error { return p.memory(unix.MAP_PRIVATE) })
	f("take more memory than any should that is shared", func() error { return p.memory(unix.MAP_SHARED) })
	f("start more processes than any should", p.forks)
}

// fill writes up to the bound, and no more than half of what is free.
func (p *probe) fill(dir string) error {
	var st unix.Statfs_t
	check(unix.Statfs(dir, &st))
	most := min(p.Bounds.Filled, int64(st.Bavail)*st.Bsize/2)
	f := must(os.CreateTemp(dir, "toold-fill-"))
	defer os.Remove(f.Name())
	piece := []byte(strings.Repeat("toold fills ", 1<<18))
	for written := int64(0); written < most; written += int64(len(piece)) {
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("after %d MiB: %w", written>>20, err)
		}
	}
	return p.did(nil, "%d MiB in %s", most>>20, filepath.Dir(f.Name()))
}

// threads fails by ending the process: Go cannot go on without a thread.
func (p *probe) threads() error {
	var ready, wg sync.WaitGroup
	stop := make(chan struct{})
	most := min(p.Bounds.Processes, 9000) // Go itself stops at 10,000
	ready.Add(most)
	for range most {
		wg.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-stop
		})
	}
	ready.Wait()
	close(stop)
	wg.Wait()
	return p.did(nil, "%d threads", most)
}

// memory touches each page. On a machine that has not so much it takes half of what is free.
func (p *probe) memory(shared int) error {
	most := p.Bounds.Memory
	if free := available(); free > 0 {
		most = min(most, free/2)
	}
	const piece = 64 << 20
	for taken := int64(0); taken < most; taken += piece {
		b, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, shared|unix.MAP_ANONYMOUS)
		if err != nil {
			return fmt.Errorf("after %d MiB: %w", taken>>20, err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return p.did(nil, "%d MiB", most>>20)
}

// available is how many bytes of memory are free; 0: unknown.
func available() int64 {
	b, _ := os.ReadFile("/proc/meminfo") // it may not be read
	_, rest, _ := strings.Cut(string(b), "MemAvailable:")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// forks starts processes that wait to be killed, and kills each of them.
func (p *probe) forks() (refused error) {
	runtime.LockOSThread()
	var started []int
	for len(started) < p.Bounds.Processes {
		pid, no := rawPause(unix.Getpid())
		if no != 0 {
			refused = fmt.Errorf("after %d: %w", len(started), no)
			break
		}
		started = append(started, int(pid))
	}
	for _, pid := range started {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	for _, pid := range started {
		_, err := unix.Wait4(pid, nil, unix.WALL, nil)
		refused = errors.Join(refused, err)
	}
	return p.did(refused, "%d processes", len(started))
}

// rawPause forks a child that ends with its parent, and sooner if it is killed.
//
//go:norace
//go:nocheckptr
func rawPause(parent int) (uintptr, unix.Errno) {
	pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if no != 0 || pid != 0 {
		return pid, no
	}
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	if now, _, _ := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); now == uintptr(parent) {
		for {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
