// Threads with a filter. A thread installs the filter on itself once and then creates processes,
// which inherit it, so the filter costs nothing where many processes need the same one. A filter
// cannot be removed, so such a thread does nothing else and ends with its goroutine.

package sandbox

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threads are those of one Runner.
type threads struct {
	mu  sync.Mutex
	all map[filter]*thread
}

// A thread creates processes under its filter.
type thread struct {
	asked chan func()
	gone  chan struct{}
	err   error // why it has no filter
}

// get returns the thread with that filter, and creates it the first time.
func (ts *threads) get(f filter) *thread {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.all[f]; t != nil {
		return t
	}
	t := &thread{asked: make(chan func()), gone: make(chan struct{})}
	ready := make(chan struct{})
	go t.live(f, ready)
	<-ready
	ts.all[f] = t
	return t
}

// live serves requests on a thread that ends with it. The thread must not be the program's first
// one, which cannot end and whose restrictions the kernel shows as the program's.
func (t *thread) live(f filter, ready chan struct{}) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if unix.Gettid() == unix.Getpid() {
		go t.live(f, ready) // on another thread, since this one is the first
		<-ready
		runtime.UnlockOSThread()
		return
	}
	t.err = putOn(compiled(f))
	close(ready)
	for act := range t.asked {
		act()
	}
	close(t.gone)
}

// putOn installs a filter on the calling thread.
func putOn(code []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	prog := sockFprog(code)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(prog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return fmt.Errorf("restricting system calls: %w", errno)
	}
	return nil
}

// run carries out p in a process that inherits the filter.
func (t *thread) run(p *program) (pid int, err error) {
	if t.err != nil {
		return 0, t.err
	}
	done := make(chan struct{})
	t.asked <- func() {
		defer close(done)
		pid, err = p.run(0)
	}
	<-done
	return pid, err
}

func (ts *threads) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for f, t := range ts.all {
		close(t.asked)
		<-t.gone
		delete(ts.all, f)
	}
}
