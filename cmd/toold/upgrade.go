// A newer program in the place of an older daemon: the old one is asked to end, and this program takes its socket, root
// and state. Clients that were attached go on where they were. It does not know what the daemon does with their calls.

package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/mod/semver"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// upgraded returns a link to a daemon of this program's version instead of an older one that has nothing to do; else
// l, which it was given. A daemon that no client has started is left alone, and so is one that listens on TCP too, of a version that cannot be
// compared, or of a system that does not tell when a process has ended.
func (s *app) upgraded(ctx context.Context, l *link) (*link, error) {
	if s.replaced || !semver.IsValid(version) || runtime.GOOS == "darwin" {
		return l, nil
	}
	s.replaced = true // at most once, whatever comes of it
	info, err := l.daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if _, broken := usableSettings(); broken != nil {
		return l, nil //nolint:nilerr // and the one that runs has others in force
	}
	if err != nil || semver.Compare(info.GetVersion(), version) >= 0 || !semver.IsValid(info.GetVersion()) || info.GetLimits().GetIdleExit() == nil || len(info.GetListeners()) > 1 {
		return l, nil //nolint:nilerr // what is wrong with the daemon, the command itself will meet
	}
	err = s.replace(ctx, l, info, &tooldv1.ShutdownRequest{IfIdle: true})
	if status.Code(err) == codes.FailedPrecondition {
		s.noted("toold %s is running and busy, so %s does not take its place yet; \"toold start --replace\" does", info.GetVersion(), version)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	return s.connect(ctx)
}

// replace ends the daemon behind l, which is closed, and starts this program in its place.
func (s *app) replace(ctx context.Context, l *link, old *tooldv1.GetInfoResponse, end *tooldv1.ShutdownRequest) error {
	if old.GetLimits().GetIdleExit() == nil {
		return notOurs(int(old.GetPid()))
	}
	if _, err := usableSettings(); err != nil { // the one that runs is better than none
		return err
	}
	held, err := holdProcess(int(old.GetPid()))
	if errors.Is(err, errors.ErrUnsupported) {
		return misused("this system does not tell when process %d has ended: run \"toold stop\", then \"toold start\"", old.GetPid())
	}
	if err != nil {
		return err
	}
	if _, err := l.daemon.Shutdown(ctx, end); err != nil {
		return err
	}
	l.close()
	if err := held.gone(ctx); err != nil {
		return err
	}
	s.noted("toold %s has ended, and %s takes its place", old.GetVersion(), version)
	s.successor = &successor{old.GetDefaultRoot(), old.GetLimits().GetIdleExit().AsDuration()}
	return s.launch(ctx)
}

// notOurs refuses to replace a daemon that no client has started.
func notOurs(pid int) error {
	return misused("process %d was not started by a client but with \"toold serve\", perhaps by the system: start it again there", pid)
}

// replaceRunning replaces the daemon that runs, if one does.
func (s *app) replaceRunning(ctx context.Context) error {
	s.replaced = true
	err := s.find(ctx)
	if silent := new(silentDaemon); errors.As(err, &silent) {
		return s.replaceSilent(ctx, silent)
	}
	if errors.Is(err, errNobody) {
		return nil
	}
	l, info, err := s.greet(ctx, s.connectRunning)
	if err != nil {
		return err
	}
	defer l.close()
	return s.replace(ctx, l, info, &tooldv1.ShutdownRequest{})
}

// replaceSilent replaces a daemon that cannot be reached. The new one listens where this command looks for it.
func (s *app) replaceSilent(ctx context.Context, d *silentDaemon) error {
	next, err := d.successor()
	if err == nil {
		_, err = usableSettings() // the one that runs is better than none
	}
	if err != nil {
		d.process.release()
		return err
	}
	if err := d.end(ctx, false); err != nil {
		return err
	}
	s.noted("process %d could not be reached and has ended", d.pid)
	s.successor = next
	return s.launch(ctx)
}

// successor is what a daemon takes over from the one before it.
type successor struct {
	root     string
	idleExit time.Duration
}
