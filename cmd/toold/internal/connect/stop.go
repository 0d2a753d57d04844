package connect

import (
	"context"
	"errors"
	"net"
	"os"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Stop ends the daemon and returns its process id; 0: none was running. now: running calls do not get the drain time. gone:
// the process has ended; a system that does not report that returns false, and the process is ending.
func (f *Finder) Stop(ctx context.Context, now bool) (pid int, gone bool, err error) {
	if f.UnitWaits() {
		return 0, true, nil
	}
	var conn net.Conn
	err = f.find(ctx)
	if silent, is := errors.AsType[*silentDaemon](err); is {
		f.Noted("process %d cannot be reached (%v) and is ended by a signal", silent.pid, silent.cause)
		return silent.pid, true, silent.end(ctx, now)
	}
	if err == nil {
		conn, err = open(ctx, f.Socket)
	}
	if errors.Is(err, errNone) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, unreachable(err)
	}
	_ = conn.Close()
	l, err := Dial(f.Socket)
	if err != nil {
		return 0, false, err
	}
	defer l.Close()
	info, err := l.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{}) // the process that listens may be a service manager
	if err != nil {
		return 0, false, err
	}
	pid = int(info.GetPid())
	held, err := holdProcess(pid)
	if errors.Is(err, os.ErrProcessDone) {
		return pid, true, nil
	}
	watched := !errors.Is(err, errors.ErrUnsupported)
	if err != nil && watched {
		return pid, false, err
	}
	if _, err := l.Daemon.Shutdown(ctx, &tooldv1.ShutdownRequest{Now: now}); err != nil || !watched {
		return pid, false, err
	}
	return pid, true, held.gone(ctx)
}
