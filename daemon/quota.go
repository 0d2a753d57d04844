// What each principal has for himself: so many sessions, and a scheduler with so many slots, so that none takes
// another's share.

package daemon

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/scheduler"
)

// remoteSessions is how often limits.sessions all principals of TCP together may have, since a certificate authority can
// name any number of them. The machine's own user has his besides.
const remoteSessions = 4

// crowding returns the principal's longest idle detached session when he has as many as the limit allows; nil: there is
// room.
func (x *sessionSet) crowding(who access.Principal) (oldest *session, err error) {
	var own []*session
	remote := 0
	for _, s := range x.all() {
		if s.meta.owner() == who {
			own = append(own, s)
		}
		if s.meta.owner().Remote() {
			remote++
		}
	}
	if len(own) < x.d.limits.Sessions && (!who.Remote() || remote < x.d.limits.Sessions*remoteSessions) {
		return nil, nil
	}
	var since time.Time
	for _, s := range own {
		if idle, unused := s.attachments.idleSince(); unused && (oldest == nil || idle.Before(since)) {
			oldest, since = s, idle
		}
	}
	if oldest == nil {
		return nil, apierror.New(codes.ResourceExhausted, "too_many_sessions",
			"%d sessions are open and all are in use. Close one, or raise limits.sessions in the settings.", max(len(own), remote))
	}
	return oldest, nil
}

// shares are the schedulers of principals. Their methods are safe for concurrent use.
type shares struct {
	slots int // of each: limits.max_running_calls

	mu      sync.Mutex // guards the rest
	of      map[access.Principal]*share
	drained error // why nothing starts any more; nil while it does
}

type share struct {
	*scheduler.Scheduler
	queues int // that have not been released
}

func newShares(slots int) *shares { return &shares{slots: slots, of: map[access.Principal]*share{}} }

// queue makes the queue of a session. It is released when the session has finished.
func (x *shares) queue(who access.Principal) *scheduler.Queue {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := x.of[who]
	if own == nil {
		own = &share{Scheduler: scheduler.New(x.slots)}
		x.of[who] = own
		if x.drained != nil {
			own.Drain(x.drained)
		}
	}
	own.queues++
	return own.NewQueue(scheduler.Streaming, scheduler.DefaultConcurrency)
}

// release takes note that one of the principal's queues is closed. With the last his scheduler ends.
func (x *shares) release(who access.Principal) {
	x.mu.Lock()
	own := x.of[who]
	last := false
	if own != nil {
		own.queues--
		if last = own.queues == 0; last {
			delete(x.of, who)
		}
	}
	x.mu.Unlock()
	if last {
		own.Close()
	}
}

func (x *shares) all() (all []*share) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, own := range x.of {
		all = append(all, own)
	}
	return all
}

// drain skips all that waits and whatever is added from now on.
func (x *shares) drain(cause error) {
	x.mu.Lock()
	if x.drained == nil {
		x.drained = cause
	}
	x.mu.Unlock()
	for _, own := range x.all() {
		own.Drain(cause)
	}
}

// wait returns when nothing runs any more, or ctx has ended. Nothing starts meanwhile: it has been drained.
func (x *shares) wait(ctx context.Context) {
	for _, own := range x.all() {
		_ = own.Wait(ctx) // its error is that of ctx
	}
}

// close stops everything, and returns when it has.
func (x *shares) close() {
	for _, own := range x.all() {
		own.Close()
	}
}
