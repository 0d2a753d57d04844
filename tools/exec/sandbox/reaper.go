// Notification of children that have ended.

package sandbox

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper calls a function each time children of the daemon have ended, and then wakes everything
// that waits for that.
type reaper struct {
	signals chan os.Signal
	done    chan struct{}

	mu   sync.Mutex
	wait chan struct{} // closed at the next change; nil while nothing waits
}

func (r *reaper) start(reap func()) {
	r.signals, r.done = make(chan os.Signal, 1), make(chan struct{}) // one signal stands for any number of children
	signal.Notify(r.signals, syscall.SIGCHLD)
	go func() {
		defer close(r.done)
		for range r.signals {
			reap()
			r.notify()
		}
	}()
}

func (r *reaper) stop() {
	signal.Stop(r.signals)
	close(r.signals)
	<-r.done
}

func (r *reaper) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wait != nil {
		close(r.wait)
		r.wait = nil
	}
}

// changed returns a channel that is closed once children have ended after this call.
func (r *reaper) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wait == nil {
		r.wait = make(chan struct{})
	}
	return r.wait
}
