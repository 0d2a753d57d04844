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

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func bombs() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "bombs", false, func(s *scene.Scene) (string, error) {
			_ = store("/proc/self/oom_score_adj", "1000")
			return try(s)
		}}
	}
	return []door{
		f("write a file larger than any should be", func(s *scene.Scene) (string, error) {
			file := must(os.Create(own(s, "large")))
			defer os.Remove(file.Name())
			_, err := file.WriteAt([]byte("!"), s.Bounds.FileSize)
			return fmt.Sprintf("%d bytes, all but one a hole", s.Bounds.FileSize), err
		}),
		f("open more files than any should", func(s *scene.Scene) (string, error) {
			for n := range s.Bounds.Files {
				if _, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
					return "", fmt.Errorf("after %d: %w", n, err)
				}
			}
			return fmt.Sprintf("%d files", s.Bounds.Files), nil
		}),
		f("fill the temporary directory", func(s *scene.Scene) (string, error) { return fill(os.TempDir(), s.Bounds.Filled) }),
		f("fill /dev/shm", func(s *scene.Scene) (string, error) { return fill("/dev/shm", s.Bounds.Filled) }),
		f("fill the root", func(s *scene.Scene) (string, error) { return fill(s.Own, s.Bounds.Filled) }),
		f("start more threads than any should", threads),
		f("take more memory than any should", func(s *scene.Scene) (string, error) { return memory(s, unix.MAP_PRIVATE) }),
		f("take more memory than any should that is shared", func(s *scene.Scene) (string, error) { return memory(s, unix.MAP_SHARED) }),
		f("start more processes than any should", forks),
	}
}

// fill writes up to most bytes, and no more than half of what is free.
func fill(dir string, most int64) (string, error) {
	var st unix.Statfs_t
	check(unix.Statfs(dir, &st))
	most = min(most, int64(st.Bavail)*st.Bsize/2)
	f := must(os.CreateTemp(dir, "toold-fill-"))
	defer os.Remove(f.Name())
	piece := []byte(strings.Repeat("toold fills ", 1<<18))
	for written := int64(0); written < most; written += int64(len(piece)) {
		if _, err := f.Write(piece); err != nil {
			return "", fmt.Errorf("after %d MiB: %w", written>>20, err)
		}
	}
	return fmt.Sprintf("%d MiB in %s", most>>20, filepath.Dir(f.Name())), nil
}

// threads fails by ending the process: Go cannot go on without a thread.
func threads(s *scene.Scene) (string, error) {
	var ready, wg sync.WaitGroup
	stop := make(chan struct{})
	most := min(s.Bounds.Processes, 9000) // Go itself stops at 10,000
	for range most {
		ready.Add(1)
		wg.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-stop
		})
	}
	ready.Wait()
	close(stop)
	wg.Wait()
	return fmt.Sprintf("%d threads", most), nil
}

// memory touches each page. On a machine that has not so much it takes half of what is free.
func memory(s *scene.Scene, shared int) (string, error) {
	most := s.Bounds.Memory
	if free := available(); free > 0 {
		most = min(most, free/2)
	}
	const piece = 64 << 20
	for taken := int64(0); taken < most; taken += piece {
		b, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, shared|unix.MAP_ANONYMOUS)
		if err != nil {
			return "", fmt.Errorf("after %d MiB: %w", taken>>20, err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return fmt.Sprintf("%d MiB", most>>20), nil
}

func available() int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// forks starts processes that wait to be killed, and kills each of them.
func forks(s *scene.Scene) (string, error) {
	runtime.LockOSThread()
	var started []int
	var refused error
	for len(started) < s.Bounds.Processes {
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
	return fmt.Sprintf("%d processes", len(started)), refused
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
