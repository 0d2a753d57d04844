package node

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A mirrorServer stores what the journal of a workspace's daemon commits in the workspace's log.
type mirrorServer struct {
	lease    *lease.Lease
	counters *counters
	listener *daemonListener
	lost     context.Context // ends when the unit is to end at once
	open     context.Context // ends with stop, too
	close    context.CancelFunc
	served   chan struct{} // closed when nothing is served any more
	fenced   chan struct{} // closed when another has taken the workspace over

	turn        sync.Mutex                 // held while something is appended
	group       uint64                     // of the last request that was stored; guarded by turn, as count
	count       uint64                     // requests that were stored
	interrupted func(session, call string) // nil: nobody asks

	container atomic.Pointer[container.Container] // lives by what is appended; nil: it does not

	mu       sync.Mutex // guards the rest
	underWay *request   // that is being stored, the last that came; nil: none is
	wrong    error      // why nothing is appended any more
}

// A request is one that is being stored, or could not be.
type request struct {
	since  time.Time     // when it came
	stored chan struct{} // closed when it is
}

// serveMirror serves on a socket until stop is called. lost ends when the unit is to end at once.
func serveMirror(lost context.Context, socket string, l *lease.Lease, counters *counters) (*mirrorServer, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	m := &mirrorServer{
		lease: l, lost: lost, counters: counters, listener: &daemonListener{UnixListener: listener}, served: make(chan struct{}), fenced: make(chan struct{}),
	}
	m.open, m.close = context.WithCancel(lost)
	go m.serve()
	return m, nil
}

// serve answers the daemon until stop is called.
func (m *mirrorServer) serve() {
	defer close(m.served)
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		conns.Go(func() {
			hangUp := func() { _ = conn.Close() }
			defer context.AfterFunc(m.open, hangUp)()
			_ = mirror.ServeConn(conn, func(request *tooldv1.AppendChangesRequest, payload []byte, held func()) error {
				err := m.store(request, payload, held)
				if err != nil {
					hangUp() // no refusal either
				}
				return err
			})
			hangUp() // the daemon connects again if it can
		})
	}
}

// A daemonListener accepts connections of one process only, the first one that connects: that is the daemon, which can run no
// command before. It may connect again, for instance when this process was stopped while it tried.
type daemonListener struct {
	*net.UnixListener
	daemon int32 // its process; 0: it has not connected yet
}

// Accept returns the next connection of the daemon, and closes those of commands.
func (l *daemonListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if pid := peer(conn); pid > 0 && (l.daemon == 0 || l.daemon == pid) {
			l.daemon = pid
			return conn, nil
		}
		_ = conn.Close()
	}
}

// peer returns the process at the other end, 0 if it is not known.
func peer(conn *net.UnixConn) (pid int32) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // it fails only for a closed connection
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = cred.Pid
		}
	})
	return pid
}

// setContainer has a container live by what is appended.
func (m *mirrorServer) setContainer(c *container.Container) { m.container.Store(c) }

// acknowledged notes that an append was, and when it was begun.
func (m *mirrorServer) acknowledged(begun container.Instant) {
	if c := m.container.Load(); c != nil {
		c.Beat(begun)
	}
}

// stop ends the server, and what is being appended.
func (m *mirrorServer) stop() {
	m.close()
	_ = m.listener.Close()
	<-m.served
}

// store appends a request to the log, once: it comes again if its answer was lost.
//
// If the workspace belongs to another node the daemon gets no answer at all: it is killed before it can do or tell
// anything. Until a request is stored, what mark returns lets nothing pass that the daemon has sent since it was held.
func (m *mirrorServer) store(request *tooldv1.AppendChangesRequest, payload []byte, held func()) error {
	stored := m.begin(time.Now())
	held()
	err := m.append(request, payload, stored)
	if err != nil {
		if m.open.Err() == nil || m.lost.Err() != nil {
			m.fail(err)
		}
		<-m.open.Done() // the daemon is dead
	}
	return err
}

func (m *mirrorServer) append(request *tooldv1.AppendChangesRequest, payload []byte, stored func()) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if request.GetGroup() <= m.group {
		stored()
		return nil
	}
	begun, instant := time.Now(), container.Now()
	if err := m.lease.Append(m.open, payload); err != nil { // the daemon waits for as long as it lives
		return err
	}
	stored()
	m.acknowledged(instant)
	m.group = request.GetGroup()
	m.count++
	m.counters.appends.Add(1)
	m.counters.appending.Add(int64(time.Since(begun)))
	m.counters.results.count(request.GetChanges())
	m.look(request.GetChanges())
	return nil
}

// begin notes that a request has come, until the function that it returns is called: when it is stored.
func (m *mirrorServer) begin(at time.Time) (stored func()) {
	r := &request{at, make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.underWay = r
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(r.stored)
		if m.underWay == r { // else it has come again over another connection, and is about to be found stored
			m.underWay = nil
		}
	}
}

// mark returns what returns nil when everything is stored that the daemon knew when it sent what has come from it. Its journal
// shows records as soon as their request has come here.
func (m *mirrorServer) mark(ctx context.Context) (passes func() error) {
	m.mu.Lock()
	r := m.underWay
	m.mu.Unlock()
	return func() error {
		if r == nil {
			return nil
		}
		select {
		case <-r.stored:
			return nil
		case <-m.open.Done():
			return status.Error(codes.Unavailable, "the workspace was lost before what its daemon has sent was stored")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail notes why nothing is appended any more.
func (m *mirrorServer) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong == nil {
		m.wrong = err
		close(m.fenced)
	}
}

// fault returns why nothing is appended any more, nil if everything was.
func (m *mirrorServer) fault() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// appended returns how many requests were stored.
func (m *mirrorServer) appended() uint64 {
	m.turn.Lock()
	defer m.turn.Unlock()
	return m.count
}

// between calls do while nothing is appended.
func (m *mirrorServer) between(do func()) {
	m.turn.Lock()
	defer m.turn.Unlock()
	do()
}

// overdue reports whether a request has waited for the log for longer than so long.
func (m *mirrorServer) overdue(than time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.underWay != nil && time.Since(m.underWay.since) > than
}
