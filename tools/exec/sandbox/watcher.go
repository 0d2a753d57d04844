// Ending a daemon's processes when the daemon cannot: a watcher process that outlives it, and the
// sweep of the next daemon.

package sandbox

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// watchArg as the first argument makes the program a watcher. It is not one of the program's
// commands.
const watchArg = "--watch-over-daemon"

// A watcher is a process that outlives the daemon. It holds one end of a pipe whose other end only
// the daemon has. When the daemon dies, for whatever reason, the pipe ends, and the watcher kills
// every process with the daemon's marker. A daemon that has killed them itself writes a byte before.
// A watcher that dies before the daemon is replaced.
type watcher struct {
	line *os.File      // the daemon's end
	gone chan struct{} // closed when the last watcher has ended after close

	mu     sync.Mutex
	child  *os.Process
	closed bool
	err    error
}

// canWatch reports whether this program has called WatcherMain, so that it is a watcher when it is started as one.
var canWatch atomic.Bool

// WatcherMain makes the program a watcher and returns after its work is done, if args, which is
// os.Args, ask for that. It then returns true, and main must return. It must be called first in
// main of every program that makes a Runner, and in TestMain.
func WatcherMain(args []string) bool {
	if len(args) != 3 || args[1] != watchArg {
		canWatch.Store(true)
		return false
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	line, ready := os.NewFile(3, "daemon"), os.NewFile(4, "ready")
	_, _ = ready.Write([]byte{1}) // without a reader the line has ended too
	_ = ready.Close()
	_, _ = io.Copy(io.Discard, line) // it ends when the daemon does
	killMarked(args[2])
	return true
}

// watch starts the watcher and returns once it is watching: as the small program that becomes this one
// when it has something to do, or else as this one.
func (r *Runner) watch() (*watcher, error) {
	if !canWatch.Load() {
		return nil, errors.New("main must begin with sandbox.WatcherMain")
	}
	far, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w := &watcher{line: line, gone: make(chan struct{})}
	if w.child, err = r.startSmallWatcher(far); err != nil {
		w.child, err = r.startWatcher(far)
	}
	if err != nil {
		_, _ = far.Close(), line.Close()
		return nil, err
	}
	go func() {
		defer close(w.gone)
		defer far.Close() // kept for a replacement watcher
		for child := w.child; child != nil; {
			awaitExit(child.Pid)
			_, err := collect(child)
			// Not by the small one: where that cannot run, it would die again at once.
			child = w.replace(err, func() (*os.Process, error) { return r.startWatcher(far) })
		}
	}()
	return w, nil
}

// replace starts the next watcher, unless the last one has ended because of close.
func (w *watcher) replace(end error, start func() (*os.Process, error)) *os.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.child, w.err = nil, end
	if !w.closed {
		w.child, w.err = start()
	}
	return w.child
}

// startWatcher starts this program as a watcher at the far end of the line, and waits until it is
// watching.
func (r *Runner) startWatcher(far *os.File) (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	word, ready, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer word.Close()
	child, err := r.spawnWatcher(self, far, ready)
	_ = ready.Close()
	if err != nil {
		return nil, err
	}
	if _, err := word.Read(make([]byte, 1)); err != nil {
		_, _ = collect(child)
		return nil, errors.New("it ended at once")
	}
	return child, nil
}

// spawnWatcher starts a program as the watcher, with files from descriptor 3 on.
func (r *Runner) spawnWatcher(program string, files ...*os.File) (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return spawn(program, []string{self, watchArg, r.generation}, &os.ProcAttr{
		Dir: "/", Files: append([]*os.File{r.null, r.null, r.null}, files...), Env: os.Environ(),
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// close ends the watcher and waits for it. done: it has nothing to kill. The error is the last
// watcher's.
func (w *watcher) close(done bool) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if done {
		_, _ = w.line.Write([]byte{1}) // without it the watcher finds nothing
	}
	err := w.line.Close()
	<-w.gone
	return errors.Join(err, w.err)
}

// Sweep kills what earlier daemons of home have left and waits until it is gone, at most 5 s. It
// returns what it has killed, and what of that the kernel still holds. No daemon of that home may
// be running.
func Sweep(home string) (killed, stuck []Left) { return killMarked(place(home)) }

// killMarked kills all processes whose marker begins with prefix, with all descendants.
func killMarked(prefix string) (killed, stuck []Left) {
	end := time.Now().Add(giveUp)
	seen := map[int]bool{}
	for {
		left := marked(prefix)
		for _, m := range left {
			if !seen[m.pid] {
				seen[m.pid] = true
				killed = append(killed, Left{PID: m.pid, Name: m.name()})
			}
			m.signal(syscall.SIGKILL)
		}
		if len(left) == 0 || time.Now().After(end) {
			return killed, names(left)
		}
		awaitAny(left, again)
	}
}
