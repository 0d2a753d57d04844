package sandbox

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// watchArg as the first argument makes the program a watcher. It is no command of the program's own.
const watchArg = "--watch-over-daemon"

// A watcher is a process that outlives the daemon. It holds one end of a pipe whose other end only the daemon has;
// when the daemon dies, by whatever, the pipe ends and the watcher kills what carries the daemon's marker.
type watcher struct {
	line  *os.File // the daemon's end
	child *os.Process
	gone  chan struct{}
	once  sync.Once
	err   error
}

// WatcherMain makes the program the watcher of another and does not return until its work is done, if args, which is
// os.Args, say so; it then reports true and main must return. It must come first in the main of every program that
// makes a Runner, and in TestMain.
func WatcherMain(args []string) bool {
	if len(args) != 3 || args[1] != watchArg {
		return false
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	line := os.NewFile(3, "daemon")
	_, _ = io.Copy(io.Discard, line) // nothing is ever written: it ends when the daemon does
	killMarked(args[2])
	return true
}

// watch starts the watcher.
func (r *Runner) watch() (*watcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	far, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	child, err := r.spawn(self, []string{self, watchArg, r.generation}, &os.ProcAttr{
		Dir: "/", Files: []*os.File{r.null, nil, nil, far},
		Env: []string{markerName + "=" + os.Getenv(markerName), "GOMAXPROCS=1"},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = line.Close()
		return nil, err
	}
	w := &watcher{line: line, child: child, gone: make(chan struct{})}
	go func() {
		defer close(w.gone)
		awaitExit(child.Pid)
		_, w.err = r.collect(child)
	}()
	return w, nil
}

// close lets the watcher go and waits for its end.
func (w *watcher) close() error {
	w.once.Do(func() { _ = w.line.Close() })
	<-w.gone
	return w.err
}

// Sweep kills what earlier daemons of home have left and waits until it is gone, at most 5 s. It gives what it has
// killed, and what of that the kernel still holds. No daemon of that home may be alive.
func Sweep(home string) (killed, stuck []Left) { return killMarked(place(home)) }

// killMarked kills what carries a marker that begins with prefix, with all descendants.
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
