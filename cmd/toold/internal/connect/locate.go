package connect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toold/toold/daemon/access"
)

const (
	// relistenLimit is how long a daemon may take to notice that its socket is gone and to listen again: twice as long as
	// it takes at most.
	relistenLimit = 5 * time.Second
	// relistenRetry is how long lies between two attempts to connect meanwhile.
	relistenRetry = 50 * time.Millisecond
)

// A silentDaemon runs and holds its lock, but does not answer at its socket.
type silentDaemon struct {
	process *process
	pid     int
	socket  string // empty: not known
	cause   error  // why it was not reached there
}

func (d *silentDaemon) Error() string {
	where := "its socket, which is not known here"
	if d.socket != "" {
		where = "its socket " + d.socket
	}
	return fmt.Sprintf("toold is running (process %d), but it cannot be reached at %s: %v. \"toold stop\" ends it, and "+
		"\"toold start --replace\" starts a new one in its place", d.pid, where, d.cause)
}

// find points the command at the socket where its daemon answers: the one that was asked for or, if no daemon answers
// there, the one that the daemon has recorded in the lock of its state directory. The error is errNone if none runs,
// a [*silentDaemon], or why the socket is not trusted.
func (f *Finder) find(ctx context.Context) error {
	err := probe(ctx, f.Socket)
	if err == nil {
		return nil
	}
	d := f.holder()
	if d == nil {
		return err
	}
	if d.cause = err; d.socket != f.Socket && d.socket != "" {
		if d.cause = probe(ctx, d.socket); d.cause == nil {
			f.Noted("the daemon, process %d, listens on %s", d.pid, d.socket)
			f.state, f.Socket = f.StateDir(), d.socket
			return nil
		}
	}
	if d.process == nil { // nothing else is known of it on this system
		return err
	}
	return d
}

// holder returns the daemon that holds the lock of the state directory, or else of the socket; nil: none does. Where
// the system does not report who holds a lock its process is nil, and it may be gone.
func (f *Finder) holder() *silentDaemon {
	for _, lock := range []string{access.StateLock(f.StateDir()), access.SocketLock(f.Socket)} {
		named, err := access.ReadLock(lock)
		if err != nil {
			continue
		}
		held, err := holdProcess(named.PID)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return &silentDaemon{pid: named.PID, socket: named.Socket}
		case err == nil && held.locks(lock):
			d := &silentDaemon{process: held, pid: named.PID, socket: named.Socket}
			if d.socket == "" { // an older one, if a client has started it
				d.socket, _ = held.flag("--socket")
			}
			return d
		}
	}
	return nil
}

// located is find, repeated while a daemon is silent, until it listens, has ended, or has had time enough to notice that its
// socket is gone.
func (f *Finder) located(ctx context.Context) error {
	deadline := time.Now().Add(relistenLimit)
	for {
		err := f.find(ctx)
		d, silent := errors.AsType[*silentDaemon](err)
		if !silent || !errors.Is(d.cause, errNone) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		_ = d.process.endsWithin(relistenRetry) // either way it is looked for again
	}
}

// end ends the daemon by signals, as it understands them: the first one begins the drain, a second one ends running
// calls. It returns when the process is gone.
func (d *silentDaemon) end(ctx context.Context, now bool) error {
	signals := []syscall.Signal{syscall.SIGTERM}
	if now {
		signals = append(signals, syscall.SIGINT) // another one, since equal ones may become one
	}
	for _, signal := range signals {
		if err := d.process.Signal(signal); err != nil {
			return fmt.Errorf("process %d cannot be ended: %w", d.pid, err)
		}
	}
	return d.process.gone(ctx)
}

// successor returns what a daemon takes over from this one, which a client must have started.
func (d *silentDaemon) successor() (*successor, error) {
	_, client := d.process.flag("--ready-fd")
	root, _ := d.process.flag("--root")
	text, _ := d.process.flag("--idle-exit")
	idle, err := time.ParseDuration(text)
	if !client || err != nil || idle == 0 {
		return nil, notOurs(d.pid)
	}
	return &successor{root, idle}, nil
}

// Trusted returns why the socket's folder is not trusted; nil: it is, or does not exist.
func (f *Finder) Trusted() error {
	if err := ownFolder(filepath.Dir(f.Socket)); !errors.Is(err, errNone) {
		return err
	}
	return nil
}

// Abandoned reports whether no process listens on the socket or holds its lock any more.
func (f *Finder) Abandoned() bool { return f.holder() == nil }
