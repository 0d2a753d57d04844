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
	"sync/atomic"
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
	Passed   access.Passed   `json:"passed"`
	Sessions []passedSession `json:"sessions"` // not closed
}

// An upgrade has the daemon go on as another program.
type upgrade struct {
	d        *Daemon
	one      sync.Mutex                    // held while an upgrade is under way
	door     atomic.Pointer[chan struct{}] // what it points to is closed when that is over; nil: none is
	handover *Handover                     // for the next program, once life.ending is closed; nil: there is none
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
		version, err = u.carryOut(ctx, request.GetWait().AsDuration(), request.GetStopTasks())
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

// carryOut has calls wait, and begins the end of this program once nothing runs. On an error they go on.
func (u *upgrade) carryOut(ctx context.Context, wait time.Duration, stopTasks bool) (version string, err error) {
	over := time.Now().Add(wait)
	opened := make(chan struct{})
	u.door.Store(&opened)
	defer close(opened)
	defer u.door.Store(nil)
	for begun := false; !begun; {
		if err = u.d.life.takesNew(); err == nil {
			err = u.quiesce(ctx, wait, over, stopTasks)
		}
		if err == nil {
			version, err = u.successor(ctx) // it may be another by now
		}
		if err == nil {
			begun, err = u.handOver()
		}
		if err != nil {
			u.goOn()
			return "", err
		}
	}
	return version, nil
}

// pass returns when an upgrade that is under way has come to its end. A call whose client could not attach again waits here, where it is
// not accepted yet. The error is that this program ends.
func (u *upgrade) pass(ctx context.Context) error {
	if door := u.door.Load(); door != nil {
		select {
		case <-*door:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return u.d.life.takesNew()
}

// quiesce waits until nothing runs that an upgrade would end. The error names what still runs after that time.
func (u *upgrade) quiesce(ctx context.Context, wait time.Duration, until time.Time, stopTasks bool) error {
	over := time.After(time.Until(until))
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
	kind    string // "call", "background task" or "hook"
	session string
	name    string // its id, and what it is
}

// running returns what an upgrade must wait for, and has other calls wait. Background tasks are stopped, if that is asked for.
func (u *upgrade) running(stopTasks bool) (all []runningThing) {
	for _, s := range u.d.sessions.all() {
		s.intake.pause.setUpgrade(view(s, s.resumable))
		all = append(all, view(s, s.running)...)
		for _, task := range s.tasks.running() {
			all = append(all, runningThing{"background task", s.name, task.ID + " (" + task.Command + ")"})
			if stopTasks {
				task.Stop()
			}
		}
	}
	return all
}

// resumable reports whether all clients of the session can attach again, and calls can go on without what those bring. Else its calls end
// before an upgrade.
func (s *session) resumable(its *state) bool {
	for st := range its.clients.streams {
		if st.only != "" {
			return false
		}
	}
	return !s.meta.Anonymous && len(its.toolset.clientTools)+len(its.clients.editors) == 0
}

// running returns the calls that an upgrade must wait for: those that have begun and do not wait for an answer. If a client cannot attach
// again, they are all.
func (s *session) running(its *state) (all []runningThing) {
	resumable := s.resumable(its)
	for key, row := range its.ledger.calls {
		_, begun := its.shell.given[key]
		a := its.questions.asked[key]
		if row.Open && (begun && (its.ledger.live[key] != nil || a == nil || a.done) || !resumable) {
			all = append(all, runningThing{"call", s.name, fmt.Sprintf("%s (%s)", row.ID, row.Name)})
		}
	}
	if len(all) == 0 && s.working.Load() > 0 {
		all = append(all, runningThing{"hook", s.name, "of the session"})
	}
	return all
}

// goOn lets calls begin again: the upgrade is given up.
func (u *upgrade) goOn() {
	for _, s := range u.d.sessions.all() {
		s.update(func(its *state) { its.passing = false })
		s.intake.pause.setUpgrade(false)
		s.asker.rejudge(s.judge.policy()) // what was not done meanwhile
		s.update(s.asker.reviewQuestions)
	}
}

// mark has nothing begin or be answered in any session from now on, and begins the end of this program, for the next one. False:
// something runs again, or the program ends already, and nothing is marked.
func (u *upgrade) mark(next *Handover) (begun bool) {
	u.d.sessions.making.Lock()
	defer u.d.sessions.making.Unlock()
	var marked []*session
	defer func() {
		if begun {
			return
		}
		for _, s := range marked {
			s.update(func(its *state) { its.passing = false })
			s.asker.rejudge(s.judge.policy())
		}
	}()
	for _, s := range u.d.sessions.all() {
		s.intake.pause.setUpgrade(true) // also where calls were to end before; when nothing is marked, running looks at that again
		quiet := view(s, func(its *state) bool {
			its.passing = len(s.running(its)) == 0 && len(s.tasks.running()) == 0
			return its.passing
		})
		if !quiet {
			return false
		}
		marked = append(marked, s)
	}
	u.d.life.once.ending.Do(func() {
		begun, u.handover = true, next
		u.d.endpoints.leave()  // a client that is refused and connects again comes to the next program
		close(u.d.life.ending) // no other session is made
	})
	return begun
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

// handOver begins the end of this program. On an error it goes on; without one, and if it has not begun, something runs again.
func (u *upgrade) handOver() (begun bool, err error) {
	passed, err := u.d.endpoints.pass()
	if err != nil {
		return false, apierror.New(codes.ResourceExhausted, "upgrade_failed", "The daemon goes on as it is: its sockets cannot be passed on: %v.", err)
	}
	if !u.mark(&Handover{Passed: passed}) {
		passed.Close()
		return false, nil
	}
	return true, nil
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

// hasLeft reports whether the listeners were closed by leave.
func (e *endpoints) hasLeft() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

// leave ends the listeners of this program. Their sockets stay for the next one, which accepts those who connect meanwhile.
func (e *endpoints) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = true
	for _, socket := range e.sockets {
		socket.Leave()
		_ = socket.Close() // an error is about descriptors that go away with the program
	}
	for _, listener := range e.tcp {
		_ = listener.Close()
	}
}
