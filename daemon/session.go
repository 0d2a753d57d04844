// A session: what outlives the streams attached to it. Its calls' ways are in accept.go and end.go,
// its questions in question.go, its streams in stream.go.

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/guard"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/pool"
	"github.com/toold/toold/daemon/quota"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/workspace"
)

// Keys of a session's state in the journal. Those that end in a colon have a name behind it.
const (
	keyMeta    = "meta"
	keyOptions = "options"
	keyDir     = "dir"
	keyExports = "exports"
	keyTodos   = "todos"
	keyTurn    = "turn"
	keyCursor  = "cursor:"
	keySeen    = "seen:"
	keyCall    = journal.Notes
	keyEnding  = "ending:" // a result that waits for earlier ones, under Options.ordered_results
	keyTask    = "task:"
	keyRules   = "rules" // that answers have brought
	keyPorts   = "ports" // answers about them
	keyAcked   = "acked"
	keyActive  = "active" // deferred tools that were activated
	keyTell    = "tell"   // what the model is told with the result of the next call
	// keyOpenTurn marks a turn that has not ended, by number.
	keyOpenTurn = "turn:"
)

// meta is what never changes about a session.
type meta struct {
	Roots     []string         `json:"roots"`
	Anonymous bool             `json:"anonymous,omitempty"`
	Unnamed   bool             `json:"unnamed,omitempty"` // its name is the daemon's; also of one that is anonymous
	Owner     access.Principal `json:"owner,omitempty"`   // who made it; read it with owner
}

// callRow is what the journal keeps of a call beside its records.
type callRow struct {
	Turn   uint64 `json:"turn"`
	TurnID string `json:"turn_id,omitempty"`
	ID     string `json:"id"`
	Free   bool   `json:"free,omitempty"` // the id may be used again
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Hash   string `json:"hash"`
	Open   bool   `json:"open,omitempty"`
	// Outcome is how it ended, as on the wire: all that is known when its records have been
	// dropped. 0: it has not ended, or an older daemon has recorded it.
	Outcome int `json:"outcome,omitempty"`
	asking

	watched watched // for those who operate the daemon
	part    *partOf // nil: no call waits for it
	size    int     // bytes of input that it holds while it is open
	dropped bool    // its records are, and its output
	batch   *batch  // of its records that were postponed; nil: none were, or still are
}

type session struct {
	name    string
	daemon  *Daemon
	created time.Time
	meta    meta
	born    uint64         // the number of its first record; 0 if it was brought back
	account *quota.Account // of what clients have it hold in memory
	log     *journal.Log
	queue   *scheduler.Queue
	outputs *spool.Dir
	work    sync.WaitGroup // goroutines of this session that are neither calls nor streams
	working atomic.Int64   // how many of them there are
	ctx     context.Context
	cancel  context.CancelCauseFunc
	gone    chan struct{} // closed when the session has stopped

	state guard.Value[state] // see update

	attachments attachments
	intake      intake
	judge       judge
	asker       asker
	recorder    recorder
	tools       toolHost
	tasks       sessionTasks
	ports       portForwarder
	requests    requester
}

// update runs f with the state of the session, while it holds the session's lock. f must not call
// the queue, update or view, nor wait.
func (s *session) update(f func(its *state)) { s.state.Do(f) }

// view is update for a function that returns a value.
func view[T any](s *session, f func(its *state) T) (value T) {
	s.update(func(its *state) { value = f(its) })
	return value
}

// origin is how a session came about.
type origin uint8

const (
	named     origin = iota // a client attached
	anonymous               // a client just sent a tool use; it ends with its stream
)

// useKey is what makes a tool use the same one: the client's names of turn and call.
// A call without a turn_id has that of its turn.
type useKey struct{ turnID, id string }

// exports is how the environment of calls differs from the client's.
type exports struct {
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
}

var sessionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// A sessionSet is the sessions of a daemon: those that are open, those at rest, and those that a
// restart could not bring back yet. It makes them, finds them, and brings them back from the journal.
type sessionSet struct {
	d        *Daemon
	memories *memstore.Set // what the tool Memory keeps for them
	pools    pool.Latest
	making   sync.Mutex // held while a session is made, so that two are not made under one name or above the limit; locked before mu
	watchers watchers

	mu          sync.Mutex // guards the rest
	open        map[string]*session
	resting     map[string]*resting
	notRestored map[string]notRestored
}

// newSession makes a session of who's with roots, or with the default root when there are none. It
// has its options before anything is asked of it. When they have as many as the limit allows it closes
// the one that crowding names.
func (x *sessionSet) newSession(who access.Principal, name string, roots []string, options *tooldv1.Options, from origin) (*session, error) {
	for {
		s, idle, err := x.tryNew(who, name, roots, options, from)
		if idle == "" {
			return s, err
		}
		if err := x.closeIdle(idle, "room was needed for another session"); err != nil { // which may wait for hooks
			return nil, err
		}
	}
}

// tryNew makes the session, if no idle one has to be closed for it.
func (x *sessionSet) tryNew(who access.Principal, name string, roots []string, options *tooldv1.Options, from origin) (made *session, idle string, err error) {
	unnamed := name == ""
	if unnamed {
		name = newID("s-")
	}
	if !sessionName.MatchString(name) || name == "." || name == ".." {
		return nil, "", apierror.Invalidf("invalid_session_id", "session_id", "The session id %q is not a name of 1 to 64 letters, digits, dots, dashes and underscores.", convert.Short(name))
	}
	if len(roots) == 0 {
		roots = []string{x.d.Root}
	}
	x.making.Lock()
	defer x.making.Unlock()
	if err := x.d.life.takesNew(); err != nil {
		return nil, "", err
	}
	if s, ok := x.find(name); ok && s.meta.owner() != who {
		return nil, "", nameTaken(name)
	} else if ok {
		return s, "", nil
	}
	places, err := openPlaces(roots, x.d.locks)
	if err != nil {
		return nil, "", err
	}
	scope := scopeOf(places.Roots(), options)
	defer func() {
		if made == nil {
			x.d.settings.Forget(scope)
		}
	}()
	if err := checkSettings(x.d.settings.Load(scope), options); err != nil {
		return nil, "", err
	}
	if idle, err = x.crowding(who); idle != "" || err != nil {
		return nil, idle, err
	}
	about := meta{Roots: places.Roots(), Anonymous: from == anonymous, Unnamed: unnamed, Owner: who}
	made, err = x.beginLocked(name, about, places, options)
	return made, "", err
}

// nameTaken is the error for the name of another principal's session.
func nameTaken(name string) *apierror.Error {
	return apierror.NotFoundf("unknown_session", "session_id", "You have no session %q, and cannot make one: the name is taken. Use another.", name)
}

// beginLocked makes the session. The caller has locked making.
func (x *sessionSet) beginLocked(name string, about meta, places *workspace.Workspace, options *tooldv1.Options) (*session, error) {
	if err := x.d.journal.Present(); err != nil {
		return nil, journalRefusal(err)
	}
	log, err := x.d.journal.Create(name)
	switch {
	case errors.Is(err, journal.ErrExists) && x.keptMeta(name).owner() != about.owner():
		return nil, nameTaken(name)
	case errors.Is(err, journal.ErrExists):
		return nil, apierror.Preconditionf("session_closed", "session_id", "The session %q is closed. Its records can still be read with Watch; use another name for a new one.", name)
	case err != nil:
		return nil, journalRefusal(err)
	}
	s, err := x.assemble(name, about, log, places)
	if err != nil {
		return nil, errors.Join(err, x.d.journal.Remove(name))
	}
	if err := s.begin(options); err != nil {
		s.abandon(err)
		return nil, errors.Join(err, x.d.journal.Remove(name))
	}
	s.startHooks(hook.Input{Event: hook.SessionStart, Source: "startup"}, "startup") // before a client can close it
	x.mu.Lock()
	x.open[name] = s
	x.mu.Unlock()
	return s, nil
}

// begin makes the first records of the session.
func (s *session) begin(options *tooldv1.Options) error {
	dir := s.meta.Roots[0]
	began := entry(nil, pipeline.Changed{Dir: dir}, putState(keyMeta, s.meta), putState(keyDir, dir))
	_, err := view(s, func(its *state) *journal.Pending {
		its.shell.dir = dir
		return its.ledger.append(began)
	}).Wait()
	if err != nil {
		return journalRefusal(err)
	}
	s.born = s.log.Last()
	return s.setOptions(options)
}

// assemble puts a session together around its log, new or restored.
func (x *sessionSet) assemble(name string, about meta, log *journal.Log, places *workspace.Workspace) (*session, error) {
	outputs, err := x.outputs(name, about.owner())
	if err != nil {
		return nil, err
	}
	s := &session{
		name: name, daemon: x.d, created: log.Created(), meta: about, log: log, outputs: outputs,
		gone: make(chan struct{}), account: x.d.ledger.Open(string(about.owner())), queue: x.d.shares.queue(about.owner()),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.update(func(its *state) { *its = newState(log) })
	s.ports = portForwarder{s: s, at: x.portAddress(name), ports: map[int]*servedPort{}}
	s.connect(places)
	return s, nil
}

// connect makes the parts of the session.
func (s *session) connect(places *workspace.Workspace) {
	s.attachments.s, s.intake.s, s.asker.s, s.recorder.s, s.tools.s, s.tasks.s, s.requests.s = s, s, s, s, s, s, s
	s.intake.pause.set = s.queue.SetPaused
	s.tasks.set = background.NewSet(background.Events{Ended: s.tasks.taskEnded, Listened: func(*background.Task) { s.ports.review() }})
	s.judge.scope = scope{
		daemon: s.daemon, name: s.name, meta: s.meta, places: places, readState: workspace.NewReadState(), outputs: s.outputs.Path(),
		temporary: s.daemon.tempOf(s.name), tasks: s.tasks.set, ports: s.ports.of,
	}
	s.judge.basis = func() basis { return view(s, (*state).basis) }
	s.judge.changed = s.settingsChanged
	s.judge.languages = language.NewSet(s.judge.languageHost(s.ctx))
	s.tools.judge = &s.judge
	s.tools.openServers()
	s.requests.buffers = workspace.NewBuffers(s.requests.applyEdit, s.requests.reserveBuffers)
	s.judge.readState.SetBuffers(s.requests.buffers)
}

// forCalls returns what calls need of the session.
func (s *session) forCalls() pipeline.Session {
	return pipeline.Session{
		Judge: &s.judge, Turns: &s.intake, Asker: &s.asker, Recorder: &s.recorder, Editors: &s.requests, Observer: &s.tools, Background: s,
	}
}

// outputs opens the folder for what the session's calls print.
func (x *sessionSet) outputs(session string, owner access.Principal) (*spool.Dir, error) {
	folder, err := x.d.outputs.Dir(session, string(owner))
	if err != nil {
		return nil, apierror.New(codes.Internal, "output_failed", "The outputs of session %q cannot be opened: %v.", session, err)
	}
	return folder, nil
}

// openPlaces opens the roots, which a client has named.
func openPlaces(roots []string, locks *workspace.Locks) (*workspace.Workspace, error) {
	if len(roots) > maxRoots {
		return nil, apierror.Invalidf("invalid_root", "roots", "%d roots were sent, and at most %d are taken.", len(roots), maxRoots)
	}
	for _, root := range roots {
		why := ""
		info, err := os.Stat(root)
		switch {
		case !filepath.IsAbs(root):
			why = "is not an absolute path"
		case errors.Is(err, fs.ErrNotExist):
			why = "does not exist"
		case err != nil:
			why = fmt.Sprintf("cannot be used: %v", err)
		case !info.IsDir():
			why = "is not a directory"
		}
		if why != "" {
			return nil, apierror.Invalidf("invalid_root", "roots", "The root %q %s.", convert.Short(root), why)
		}
	}
	places, err := workspace.Open(roots, locks)
	if err != nil {
		return nil, apierror.Invalidf("invalid_root", "roots", "The roots cannot be used: %v.", err)
	}
	return places, nil
}

func (at *attachments) attached() []*stream {
	return view(at.s, func(its *state) []*stream { return slices.Collect(maps.Keys(its.clients.streams)) })
}
