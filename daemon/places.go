// What a daemon needs to be found and to keep its word: its sockets, its locks, its journal. Others may delete, move
// or replace them while it runs. What can be made again is; for the rest the user is told what to do.

package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/daemon/convert"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// placesTick is how often the daemon looks for what it needs. It does so at every GetInfo too.
const placesTick = 2 * time.Second

// endpoints are where the daemon is found: its listeners, and the lock on its state directory.
type endpoints struct {
	d    *Daemon
	lock *access.Lock

	mu        sync.Mutex          // guards the rest
	listeners []*tooldv1.Listener // none before Serve
	sockets   []*access.Socket    // those that are Unix sockets
}

// listenOn notes where the daemon listens, for its clients and in the lock of the state directory.
func (e *endpoints) listenOn(listeners []net.Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners = described(listeners)
	for _, listener := range listeners {
		socket, is := listener.(*access.Socket)
		if !is {
			continue
		}
		e.sockets = append(e.sockets, socket)
		if err := e.lock.Record(socket.Path()); err != nil {
			e.d.Log.Warn("the lock of the state directory does not name the socket", zap.Error(err))
		}
	}
}

// maintain looks for what the daemon needs until ctx ends, and logs what changes.
func (e *endpoints) maintain(ctx context.Context) {
	var known []string
	every(ctx, placesTick, func() {
		missing := e.restore()
		for _, what := range missing {
			if !slices.Contains(known, what) {
				e.d.Log.Error("something that the daemon needs is gone", zap.String("what", what))
			}
		}
		if len(missing) == 0 && len(known) > 0 {
			e.d.Log.Info("all that the daemon needs is there again")
		}
		known = missing
	})
}

// restore makes again what is gone, and returns warnings about what it cannot.
func (e *endpoints) restore() (warnings []string) {
	e.mu.Lock()
	sockets := e.sockets
	e.mu.Unlock()
	for _, socket := range sockets {
		again, err := socket.Keep()
		if again {
			e.d.Log.Warn("the socket was gone: the daemon listens there again", zap.String("socket", socket.Path()))
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the socket %s or its lock file was deleted or replaced, and the daemon "+
				"cannot listen there again (%v): clients that are connected go on, and others do not reach this daemon, "+
				"process %d", socket.Path(), err, os.Getpid()))
		}
	}
	if err := e.lock.Keep(); err != nil {
		warnings = append(warnings, fmt.Sprintf("the lock file of the state directory was deleted or replaced, and the "+
			"daemon cannot take it again (%v)", err))
	}
	if gone := e.d.journal.Present(); gone != nil {
		warnings = append(warnings, goneText(gone)+"; until then no call is accepted")
	}
	return warnings
}

// goneText returns, as a clause, what has become of the journal and what to do about it.
func goneText(gone *journal.GoneError) string {
	what := "was deleted or moved away"
	switch {
	case gone.Replaced():
		what = "was replaced by another file"
	case !gone.Absent():
		what = fmt.Sprintf("cannot be reached any more (%v)", gone.Err)
	}
	return fmt.Sprintf("%s, which holds the journal, %s while the daemon runs. Put it back, or restart toold "+
		"(`toold start --replace`): the new daemon goes on with the journal that it finds there, or begins a new one",
		gone.Path, what)
}

// described returns where the daemon listens, for clients.
func described(listeners []net.Listener) (wire []*tooldv1.Listener) {
	for _, listener := range listeners {
		switch l := listener.(type) {
		case *access.TCPListener:
			wire = append(wire, &tooldv1.Listener{Address: "tcp://" + l.Addr().String(), Tls: l.TLS()})
		default:
			wire = append(wire, &tooldv1.Listener{Address: "unix:" + convert.Clean(l.Addr().String())})
		}
	}
	return wire
}
