// Upgrades: the daemon goes on as another program in the same process. It is a shutdown whose sessions end nothing: what the
// journal does not have of them is passed on, with the sockets and locks, and the next program brings them back as it does those
// at rest. Until all of that is ready nothing has changed.

package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/protoadapt"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// HandoverFormat is the number of the format of a Handover and of the state directory. A program that does not know the number
// must not take over. The number changes with the meaning of any field.
const HandoverFormat = 1

// A Handover is what the next program of this process goes on with, beside the state directory. It is kept as JSON.
type Handover struct {
	Passed access.Passed `json:"passed"`
}

// An upgrade has the daemon go on as another program.
type upgrade struct {
	d        *Daemon
	one      sync.Mutex // held while an upgrade is under way
	handover *Handover  // for the next program, once life.ending is closed; nil: there is none
}

// upgradeTick is how often an upgrade looks whether anything still runs.
const upgradeTick = 10 * time.Millisecond

// Upgrade has the next program go on, once nothing runs any more.
func (x *daemonServer) Upgrade(ctx context.Context, request *tooldv1.UpgradeRequest) (*tooldv1.UpgradeResponse, error) {
	d := x.daemon
	switch {
	case principalOf(ctx).Remote():
		return nil, apierror.New(codes.PermissionDenied, "not_local", "A daemon is upgraded over its Unix socket, not over TCP.")
	case d.Successor == nil:
		return nil, apierror.Preconditionf("not_upgradable", "", "This daemon cannot go on as another program: it is part of one, or the system has no way to do so. Restart it.")
	case !d.life.upgrade.one.TryLock():
		return nil, apierror.Preconditionf("upgrading", "", "Another upgrade is under way.")
	}
	u := &d.life.upgrade
	defer u.one.Unlock()
	version, err := u.successor(ctx)
	if err == nil {
		err = u.quiesce(ctx, request.GetWait().AsDuration(), request.GetStopTasks())
	}
	if err == nil {
		version, err = u.successor(ctx) // it may be another by now
	}
	if err == nil {
		err = u.handOver()
	}
	if err != nil {
		return nil, err
	}
	return &tooldv1.UpgradeResponse{OldVersion: d.Version, NewVersion: version}, nil
}

// successor asks the program that is installed whether it can take over.
func (u *upgrade) successor(ctx context.Context) (version string, err error) {
	if version, err = u.d.Successor(ctx); err != nil {
		return "", apierror.Preconditionf("successor_refused", "", "The daemon goes on as it is: %v.", err)
	}
	return version, nil
}

// quiesce waits until nothing runs that an upgrade would end. The error names what still runs after that time.
func (u *upgrade) quiesce(ctx context.Context, wait time.Duration, stopTasks bool) error {
	over := time.After(wait)
	for {
		running := u.running(stopTasks)
		if len(running) == 0 {
			return nil
		}
		select {
		case <-over:
			return stillRunning(wait, running)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-u.d.life.ending:
			return shuttingDown()
		case <-time.After(upgradeTick):
		}
	}
}

// A runningThing is what an upgrade waits for.
type runningThing struct {
	kind    string // "call" or "background task"
	session string
	name    string // its id, and what it is
}

// running returns what an upgrade must wait for. Background tasks are stopped, if that is asked for.
func (u *upgrade) running(stopTasks bool) (all []runningThing) {
	for _, s := range u.d.sessions.all() {
		s.update(func(its *state) {
			for _, t := range its.ledger.openTurns() {
				all = append(all, runningThing{"call", s.name, strings.Join(t.openIDs(), ", ")})
			}
		})
		for _, task := range s.tasks.running() {
			all = append(all, runningThing{"background task", s.name, task.ID + " (" + task.Command + ")"})
			if stopTasks {
				task.Stop()
			}
		}
	}
	return all
}

// stillRunning is the error of an upgrade that has waited in vain.
func stillRunning(wait time.Duration, running []runningThing) error {
	failure := &errdetails.PreconditionFailure{}
	var names []string
	for _, r := range running {
		failure.Violations = append(failure.Violations, &errdetails.PreconditionFailure_Violation{Type: r.kind, Subject: r.session, Description: r.name})
		names = append(names, fmt.Sprintf("%s %s of session %s", r.kind, r.name, r.session))
	}
	slices.Sort(names)
	refused := apierror.Preconditionf("still_running", "wait", "The daemon goes on as it is: after %s there still runs %s.", wait, strings.Join(names, "; "))
	refused.Details = []protoadapt.MessageV1{failure}
	return refused
}

// handOver begins the end of this program. On an error it goes on.
func (u *upgrade) handOver() error {
	passed, err := u.d.endpoints.pass()
	if err != nil {
		return apierror.New(codes.ResourceExhausted, "upgrade_failed", "The daemon goes on as it is: its sockets cannot be passed on: %v.", err)
	}
	u.handover = &Handover{Passed: passed}
	u.d.life.once.ending.Do(func() { close(u.d.life.ending) })
	return nil
}

// Handover returns what the next program of this process goes on with; nil: the daemon has ended otherwise. It is complete when
// Serve has returned without an error.
func (d *Daemon) Handover() *Handover {
	select {
	case <-d.life.stopped: // whatever was meant before
		return nil
	default:
		return d.life.upgrade.handover
	}
}

// upgrading is the error for a stream that comes or is there when the daemon goes on as another program.
func upgrading() *apierror.Error {
	return apierror.New(codes.Unavailable, "upgrading", "The daemon is being upgraded. Connect again: the session goes on.")
}

// pass returns descriptors of all that the next program goes on with.
func (e *endpoints) pass() (passed access.Passed, err error) {
	defer func() {
		if err != nil {
			passed.Close()
		}
	}()
	if passed.State, err = e.lock.Pass(); err != nil {
		return passed, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, socket := range e.sockets {
		one, err := socket.Pass()
		if err != nil {
			return passed, err
		}
		passed.Sockets = append(passed.Sockets, one)
	}
	for _, tcp := range e.tcp {
		one, err := tcp.Pass()
		if err != nil {
			return passed, err
		}
		passed.TCP = append(passed.TCP, one)
	}
	return passed, nil
}

// leave has the sockets stay when this program ends.
func (e *endpoints) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, socket := range e.sockets {
		socket.Leave()
	}
}
