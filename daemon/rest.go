// Sessions at rest. One that no client uses, and that has nothing running, needs no memory: after a
// while it is only in the journal, as it would be after the end of the daemon, with what the journal
// does not keep beside it. The next client finds it as it was. What is in the journal, and how
// a session is made of it, is restore.go's.

package daemon

import (
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/daemon/sealed"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// restAfter is how long a session is unused before it rests. Ours: longer than between two calls of a
// client that attaches for each.
const restAfter = maintenanceTick

// errResting is why a session that is about to rest takes no stream and no call. It is at rest once
// its gone is closed, and can be brought back.
var errResting = errors.New("the session is about to rest")

// A resting is a session at rest: what the journal does not keep of it.
type resting struct {
	info   journal.Info // its name, and when it was made
	meta   meta
	listed *tooldv1.Session // as ListSessions describes it
	used   time.Time
	bytes  int64       // of options, and of the client's environment
	env    *sealed.Box // the client's environment, which may hold secrets; nil: it sent none

	owner     access.Owner
	client    *tooldv1.ClientInfo
	peer      *pipeline.Peer
	detached  time.Time
	canAsk    bool
	proposed  map[string]bool
	mentioned map[string]bool
	announced announced
	open      *openWork // from the program before; nil: nothing is under way
}

// restsIn returns how long it is until the session may rest, or is to be looked at again for that; 0:
// it may now.
func (at *attachments) restsIn() (wait time.Duration) {
	after := at.s.daemon.life.restAfter
	at.s.update(func(its *state) {
		if wait = after; at.s.mayRest(its) {
			wait = max(0, after-time.Since(its.used), after-time.Since(its.found))
		}
	})
	return wait
}

// mayRest reports whether nothing of the session is in use that would be lost with its memory.
func (s *session) mayRest(its *state) bool {
	c := &its.clients
	idle := len(c.streams)+len(c.requests)+len(c.editors)+len(its.toolset.clientTools) == 0 && c.watching == nil &&
		its.ledger.running+len(its.ledger.live)+len(its.ledger.deferred)+len(its.questions.asked)+len(its.questions.ahead) == 0
	for _, t := range its.ledger.turns { // one whose calls have all ended is ended first
		idle = idle && len(t.open) == 0
	}
	return idle && !its.stopping && !s.meta.Anonymous && s.working.Load() == 0 &&
		len(s.tasks.set.List()) == 0 && s.tools.servers.Resting() && !s.judge.languages.Used()
}

// rest has the session rest, unless it is used meanwhile.
func (x *sessionSet) rest(s *session) {
	if s.intake.endIdleTurns() {
		signal(x.d.life.wake)
		return
	}
	r, err := s.putAside()
	if err != nil {
		x.d.Log.Warn("what a session has could not be put aside: it stays in memory", zap.String("session", s.name), zap.Error(err))
		return
	}
	if r == nil {
		signal(x.d.life.wake) // it may be time again as soon as what it was used for has ended
		return
	}
	s.halt(errResting)
	s.release() // while requests still wait for gone: the next session of this name has the same outputs
	x.mu.Lock()
	delete(x.open, s.name)
	x.resting[s.name] = r
	x.mu.Unlock()
	close(s.gone)
	signal(x.d.reclaimer.wake) // however little it was: the next one may rest much later
	signal(x.d.life.wake)      // to close it may be due sooner than what was due before
}

// endIdleTurns ends the turns that a client has left open, whose calls have all ended, and reports
// whether there were any. Their hooks may take a while.
func (i *intake) endIdleTurns() (any bool) {
	i.alone(func(in inlet) {
		var left []*turn
		i.s.update(func(its *state) {
			if i.s.mayRest(its) {
				left = its.ledger.openTurns()
			}
		})
		for _, t := range left {
			in.endTurn(t)
		}
		any = len(left) > 0
	})
	return any
}

// putAside marks the session as one that is about to rest, and returns what is kept of it; nil: it
// is in use, or not all of it is in the journal yet.
func (s *session) putAside() (r *resting, err error) {
	if gone := s.daemon.journal.Present(); gone != nil {
		return nil, gone
	}
	var tail *journal.Pending
	var before map[string]string
	s.update(func(its *state) {
		its.ledger.flush()
		tail, before = its.ledger.tail, its.shell.vars.client
	})
	if tail != nil {
		if _, err := tail.Wait(); err != nil {
			return nil, err
		}
	}
	box, err := seal(s.daemon.inState(restingDir), before)
	if err != nil {
		return nil, err
	}
	listed := inList(s.describe())
	s.update(func(its *state) {
		if tail != its.ledger.tail || len(its.ledger.turns) > 0 || !s.mayRest(its) || its.usedWithin(s.daemon.life.restAfter) {
			return
		}
		its.stopping, its.resting = true, true
		r = s.restingOf(its, listed, box)
	})
	if r == nil && box != nil {
		box.Remove()
	}
	return r, nil
}

// restingOf returns what is kept of the session while it rests.
func (s *session) restingOf(its *state, listed *tooldv1.Session, box *sealed.Box) *resting {
	return &resting{
		info: journal.Info{Name: s.name, Created: s.created}, meta: s.meta, listed: listed, used: its.used, bytes: optionBytes(its.options, its.shell.vars.client), env: box,
		owner: its.clients.owner, client: its.clients.info, peer: its.clients.peer, detached: its.clients.detached,
		canAsk: its.questions.canAsk, proposed: its.questions.proposed, mentioned: its.shell.mentioned, announced: its.toolset.announced,
	}
}

// usedWithin reports whether a client has used the session, or it was found for a request, in that
// time.
func (its *state) usedWithin(span time.Duration) bool {
	return time.Since(its.used) < span || time.Since(its.found) < span
}

// keepAwake keeps the session from resting for a while, for the request that it was found for. It
// reports false if the session is about to rest already.
func (s *session) keepAwake() bool {
	return view(s, func(its *state) bool {
		its.found = time.Now()
		return !its.resting
	})
}

// restingDir is where environments of sessions at rest are, in the state directory.
const restingDir = "resting"

// seal puts an environment aside; nil: there is none.
func seal(dir string, env map[string]string) (*sealed.Box, error) {
	if len(env) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	return sealed.Write(dir, text)
}

// wakeLocked brings a session at rest back; the caller has locked making. One that a client asks for is
// refused while its options pass a limit.
func (x *sessionSet) wakeLocked(r *resting, why reason) (*session, error) {
	env := map[string]string{}
	if r.env != nil {
		text, err := r.env.Read()
		if err == nil {
			err = json.Unmarshal(text, &env)
		}
		if err != nil {
			x.d.Log.Warn("the environment that a client has sent is lost: calls get the daemon's", zap.String("session", r.info.Name), zap.Error(err))
		}
	}
	account := x.d.ledger.Open(string(r.meta.owner()))
	over := account.Fits(quota.Options, r.bytes)
	account.Close()
	if over != nil && why == forClient {
		return nil, quotaRefusal(over, "session_id")
	}
	s, err := x.reassemble(r.info.Name)
	if err != nil {
		return nil, err
	}
	s.created = r.info.Created
	s.update(func(its *state) {
		its.used, its.shell.vars = r.used, its.shell.vars.withClient(env)
		its.clients.owner, its.clients.info, its.clients.peer, its.clients.detached = r.owner, r.client, r.peer, r.detached
		its.questions.canAsk, its.questions.proposed, its.shell.mentioned = r.canAsk, r.proposed, r.mentioned
		its.toolset.announced, its.toolset.offered = r.announced, r.announced.revision != ""
		s.account.Restore(quota.Options, optionBytes(its.options, env))
	})
	if r.open != nil {
		s.goOn(r.open)
	}
	x.mu.Lock()
	delete(x.resting, s.name)
	x.open[s.name] = s
	x.mu.Unlock()
	if r.env != nil {
		r.env.Remove()
	}
	return s, nil
}

// reassemble puts a session together that has ended in order, from what the journal keeps.
func (x *sessionSet) reassemble(name string) (*session, error) {
	log, err := x.d.journal.Log(name)
	if err != nil {
		return nil, err
	}
	kept, err := log.State("")
	if err != nil {
		return nil, err
	}
	rows, err := callRows(kept)
	if err != nil {
		return nil, err
	}
	return x.revive(log, kept, crashedSession{name: name, log: log, rows: rows, state: kept})
}

// reason is what a session is brought back for.
type reason uint8

const (
	forClient reason = iota
	forDaemon        // which is about to close it
)

// atRest returns the session of that name if it is at rest; nil: it is not.
func (x *sessionSet) atRest(name string) *resting {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.resting[name]
}

// allAtRest returns the sessions at rest.
func (x *sessionSet) allAtRest() (all []*resting) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.resting {
		all = append(all, r)
	}
	return all
}

// describe returns the session as ListSessions shows it; info is from the journal.
func (r *resting) describe(info journal.Info) *tooldv1.Session {
	wire := proto.CloneOf(r.listed)
	wire.FirstKeptSeq, wire.LastSeq = info.First, info.Last
	return wire
}

// closeIdle ends a session for good, which may be at rest.
func (x *sessionSet) closeIdle(name, why string) error {
	return awake(func() (*session, error) { return x.retrieve(name, forDaemon) }, func(s *session) error {
		if s == nil { // another has closed it
			return nil
		}
		return s.close(why)
	})
}

// awake runs f with the session that find returns, again if that was about to rest.
func awake(find func() (*session, error), f func(*session) error) error {
	for {
		s, err := find()
		if err != nil {
			return err
		}
		if err = f(s); !errors.Is(err, errResting) {
			return err
		}
		<-s.gone
	}
}
