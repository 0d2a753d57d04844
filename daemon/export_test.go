package daemon

import (
	"time"

	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// SetGrace changes how long the calls of a client that went away go on. Before Serve.
func (d *Daemon) SetGrace(grace time.Duration) { d.grace = grace }

// Retain looks through the journal as if it were then.
func (d *Daemon) Retain(now time.Time) error { return d.retain(now) }

// SweepCheckpoints drops checkpoints as it would be done at that time.
func (d *Daemon) SweepCheckpoints(now time.Time) error { return d.sweepCheckpoints(now) }

// ClientRequests is how many client requests of a session are held.
func (d *Daemon) ClientRequests(session string) int {
	s, _ := d.sessions.find(session)
	return view(s, func(its *state) int { return len(its.clients.requests) })
}

// SetRest changes how long a session is unused before it rests. Before Serve.
func (d *Daemon) SetRest(after time.Duration) { d.life.restAfter = after }

// AtRest is how many sessions are at rest.
func (d *Daemon) AtRest() int { return len(d.sessions.allAtRest()) }

// Schedulers is how many principals have one.
func (d *Daemon) Schedulers() int { return len(d.shares.all()) }

// Overview compares the sessions of the daemon's own user with what was sent of them before: nothing.
func (d *Daemon) Overview() func() error {
	o := &overview{daemon: d, who: access.Self(), sent: map[string]*tooldv1.SessionState{}, out: func(any) error { return nil }}
	return o.sendChanges
}

// RealPath is where the path leads as far as it exists.
func RealPath(path string) string { return realPath(path) }
