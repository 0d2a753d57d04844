package connect

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/mod/semver"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// upgraded returns a link to a daemon of this program's version instead of an older one that has nothing to do; else
// l, which it was given. It does not replace a daemon that no client has started, one that listens on TCP too, one of a version that cannot be
// compared, or any on a system that does not report when a process has ended.
func (f *Finder) upgraded(ctx context.Context, l *toold.Conn) (*toold.Conn, error) {
	if f.replaced || !semver.IsValid(f.Version) || runtime.GOOS == "darwin" {
		return l, nil
	}
	f.replaced = true // at most once, whatever comes of it
	info, err := l.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if _, broken := usableSettings(); broken != nil {
		return l, nil //nolint:nilerr // and the one that runs has others in force
	}
	if err != nil || semver.Compare(info.GetVersion(), f.Version) >= 0 || !semver.IsValid(info.GetVersion()) || info.GetLimits().GetIdleExit() == nil || len(info.GetListeners()) > 1 {
		return l, nil //nolint:nilerr // what is wrong with the daemon, the command itself will meet
	}
	err = f.replace(ctx, l, info, &tooldv1.ShutdownRequest{IfIdle: true})
	if status.Code(err) == codes.FailedPrecondition {
		f.Noted("toold %s is running and busy, so %s does not take its place yet; \"toold start --replace\" does", info.GetVersion(), f.Version)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	return f.Connect(ctx)
}

// replace ends the daemon behind l, which is closed, and starts this program in its place.
func (f *Finder) replace(ctx context.Context, l *toold.Conn, old *tooldv1.GetInfoResponse, end *tooldv1.ShutdownRequest) error {
	if old.GetLimits().GetIdleExit() == nil {
		return notOurs(int(old.GetPid()))
	}
	if _, err := usableSettings(); err != nil { // the one that runs is better than none
		return err
	}
	held, err := holdProcess(int(old.GetPid()))
	if errors.Is(err, errors.ErrUnsupported) {
		return cli.Misused("this system does not tell when process %d has ended: run \"toold stop\", then \"toold start\"", old.GetPid())
	}
	if err != nil {
		return err
	}
	if _, err := l.Daemon.Shutdown(ctx, end); err != nil {
		return err
	}
	l.Close()
	if err := held.gone(ctx); err != nil {
		return err
	}
	f.Noted("toold %s has ended, and %s takes its place", old.GetVersion(), f.Version)
	f.successor = &successor{old.GetDefaultRoot(), old.GetLimits().GetIdleExit().AsDuration()}
	return f.launch(ctx)
}

// notOurs refuses to replace a daemon that no client has started.
func notOurs(pid int) error {
	return cli.Misused("process %d was not started by a client but with \"toold serve\", perhaps by the system: start it again there", pid)
}

// ReplaceRunning replaces the daemon that runs, if one does.
func (f *Finder) ReplaceRunning(ctx context.Context) error {
	f.replaced = true
	err := f.find(ctx)
	if silent, is := errors.AsType[*silentDaemon](err); is {
		return f.replaceSilent(ctx, silent)
	}
	if errors.Is(err, errNone) {
		return nil
	}
	l, info, err := f.Info(ctx, f.Running)
	if err != nil {
		return err
	}
	defer l.Close()
	return f.replace(ctx, l, info, &tooldv1.ShutdownRequest{})
}

// replaceSilent replaces a daemon that cannot be reached. The new one listens where this command looks for it.
func (f *Finder) replaceSilent(ctx context.Context, d *silentDaemon) error {
	next, err := d.successor()
	if err == nil {
		_, err = usableSettings() // the one that runs is better than none
	}
	if err == nil {
		err = d.end(ctx, false)
	}
	if err != nil {
		return err
	}
	f.Noted("process %d could not be reached and has ended", d.pid)
	f.successor = next
	return f.launch(ctx)
}

// successor is what a daemon takes over from the one before it.
type successor struct {
	root     string
	idleExit time.Duration
}

// Info connects, by Connect or Running, and asks the daemon what it is. Its state directory is the one of StateDir from then on.
func (f *Finder) Info(ctx context.Context, connect func(context.Context) (*toold.Conn, error)) (*toold.Conn, *tooldv1.GetInfoResponse, error) {
	l, err := connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := l.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	f.state = cmp.Or(info.GetStateDir(), f.state)
	return l, info, nil
}
