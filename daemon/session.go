package daemon

// A session: what outlives the streams attached to it. Its calls' ways are in accept.go and end.go, its questions in
// question.go, its streams in stream.go.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/spool"
	"github.com/toold/toold/tools/workspace"
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
	keyCall    = "call:"
	keyEnding  = "ending:" // a result that waits for earlier ones, under Options.ordered_results
	keyTask    = "task:"
	// keyOpenTurn marks a turn that has not ended, by number.
	keyOpenTurn = "turn:"
)

// meta is what never changes about a session.
type meta struct {
	Roots     []string `json:"roots"`
	Anonymous bool     `json:"anonymous,omitempty"`
}

// callRow is what the journal keeps of a call beside its records.
type callRow struct {
	Turn   uint64 `json:"turn"`
	TurnID string `json:"turn_id,omitempty"`
	ID     string `json:"id"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Hash   string `json:"hash"`
	Open   bool   `json:"open,omitempty"`
}

type session struct {
	name    string
	daemon  *Daemon
	created time.Time
	meta    meta
	log     *journal.Log
	queue   *scheduler.Queue
	places  *workspace.Workspace
	memory  *workspace.Memory
	outputs *spool.Dir
	tasks   *background.Set
	work    sync.WaitGroup // goroutines of this session that are neither calls nor streams
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// intake is held while a tool use is accepted, so that the journal, the numbering and the queue see the same order.
	// It is taken before mu and never while mu is held. Calls that end do not take it.
	intake sync.Mutex

	skipping sync.Mutex // held while skipped calls are recorded, so that their order holds

	mu       sync.Mutex       // guards everything below; never held while the queue is called
	tail     *journal.Pending // the newest entries; nil before the first
	options  *tooldv1.Options
	env      map[string]string // the client's; not kept
	client   *tooldv1.ClientInfo
	dir      string
	exports  exports
	todos    []tools.Todo
	cursors  map[string]int64
	turns    map[uint64]*turn // those that have not ended
	open     *turn            // the main stream's, that still takes tool uses
	lastTurn uint64
	calls    map[string]*callRow // every call that is kept, by key
	uses     map[useKey]string   // key by the client's names
	byID     map[string]string   // newest key by the client's id alone
	live     map[string]*live    // calls whose act has begun
	news     chan struct{}       // closed, and made anew, when a call prints its first or ends
	openSize int                 // bytes of input in open calls
	begun    int                 // calls whose turn has come and that have not ended
	deferred []change            // of concurrent calls, until none of them runs any more
	asked    map[string]*asked   // open questions, by call
	skipped  []skip              // calls whose turn never came and whose result is still to be recorded
	streams  map[*stream]struct{}
	main     *stream
	detached time.Time // since when no main stream is attached
	canAsk   bool      // the last main stream could answer
	grace    *time.Timer
	closed   bool
	used     time.Time // when somebody last used it
}

// useKey is what makes a tool use the same one: the client's names of turn and call.
type useKey struct{ turnID, id string }

// exports is how the environment of calls differs from the client's.
type exports struct {
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
}

var sessionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// newSession makes a session with roots, or with the default root when there are none.
func (d *Daemon) newSession(name string, roots []string, anonymous bool) (*session, error) {
	if name == "" {
		name = newID("s-")
	}
	if !sessionName.MatchString(name) || name == "." || name == ".." {
		return nil, refuse(codes.InvalidArgument, "invalid_session_id",
			"The session id %q is not a name of 1 to 64 letters, digits, dots, dashes and underscores.", name).at("session_id")
	}
	if len(roots) == 0 {
		roots = []string{d.Root}
	}
	if err := d.makeRoom(); err != nil {
		return nil, err
	}
	log, err := d.journal.Create(name)
	if errors.Is(err, journal.ErrExists) {
		return nil, refuse(codes.FailedPrecondition, "session_closed",
			"The session %q is closed. Its records can still be read with Watch; use another name for a new one.", name).at("session_id")
	}
	if err != nil {
		return nil, journalRefusal(err)
	}
	s, err := d.assemble(name, log, meta{Roots: roots, Anonymous: anonymous})
	if err != nil {
		return nil, errors.Join(err, d.journal.Remove(name))
	}
	s.meta.Roots = s.places.Roots()
	s.dir = s.meta.Roots[0]
	if _, err := log.Append(s.entry(nil, pipeline.Changed{Dir: s.dir}, put(keyMeta, s.meta), put(keyDir, s.dir))); err != nil {
		return nil, journalRefusal(err)
	}
	d.mu.Lock()
	d.sessions[name] = s
	d.mu.Unlock()
	return s, nil
}

// assemble puts a session together around its log, new or restored.
func (d *Daemon) assemble(name string, log *journal.Log, about meta) (*session, error) {
	places, err := openPlaces(about.Roots, d.locks)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(d.StateDir, "sessions", name)
	outputs, err := spool.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := places.Admit(workspace.Places{Readable: []string{folder}, Hidden: []string{d.StateDir}}); err != nil {
		return nil, err
	}
	s := &session{
		name: name, daemon: d, created: time.Now(), meta: about, log: log, places: places, memory: workspace.NewMemory(), outputs: outputs,
		options: &tooldv1.Options{}, cursors: map[string]int64{}, turns: map[uint64]*turn{}, calls: map[string]*callRow{},
		uses: map[useKey]string{}, byID: map[string]string{}, live: map[string]*live{}, asked: map[string]*asked{},
		streams: map[*stream]struct{}{}, news: make(chan struct{}), detached: time.Now(), used: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.tasks = background.NewSet(s.taskEnded)
	s.queue = d.scheduler.NewQueue(scheduler.Streaming, scheduler.DefaultConcurrency, func(uint64) {})
	return s, nil
}

// openPlaces opens the roots, which a client has named.
func openPlaces(roots []string, locks *workspace.Locks) (*workspace.Workspace, error) {
	for _, root := range roots {
		info, err := os.Stat(root)
		switch {
		case !filepath.IsAbs(root):
			return nil, refuse(codes.InvalidArgument, "invalid_root", "The root %q is not an absolute path.", clean(root)).at("roots")
		case errors.Is(err, fs.ErrNotExist):
			return nil, refuse(codes.InvalidArgument, "invalid_root", "The root %q does not exist.", clean(root)).at("roots")
		case err != nil:
			return nil, refuse(codes.InvalidArgument, "invalid_root", "The root %q cannot be used: %v.", clean(root), err).at("roots")
		case !info.IsDir():
			return nil, refuse(codes.InvalidArgument, "invalid_root", "The root %q is not a directory.", clean(root)).at("roots")
		}
	}
	places, err := workspace.Open(roots, locks)
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "invalid_root", "The roots cannot be used: %v.", err).at("roots")
	}
	return places, nil
}

// makeRoom closes the longest idle detached session when there are as many as the limit allows.
func (d *Daemon) makeRoom() error {
	sessions := d.open()
	if len(sessions) < d.limits.Sessions {
		return nil
	}
	var oldest *session
	var since time.Time
	for _, s := range sessions {
		if idle, unused := s.idleSince(); unused && (oldest == nil || idle.Before(since)) {
			oldest, since = s, idle
		}
	}
	if oldest == nil {
		return refuse(codes.ResourceExhausted, "too_many_sessions",
			"%d sessions are open and all are in use. Close one, or raise limits.sessions in the settings.", len(sessions))
	}
	oldest.close("room was needed for another session")
	return nil
}

// idleSince tells since when nobody has used the session; unused is false while somebody does: a stream, a call, an
// open question, a background task.
func (s *session) idleSince() (since time.Time, unused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.streams) == 0 && len(s.turns) == 0 && len(s.asked) == 0 && s.runningTasks() == 0
}

// close stops everything of the session and seals its log. It returns when every call has its result.
func (s *session) close(why string) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	cause := &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the session was closed: " + why}
	s.queue.Close(cause)
	s.cancel(cause)
	s.settled()
	s.tasks.Close()
	s.endTurns()
	_, _ = s.log.Append(s.entry(nil, pipeline.Changed{Closed: true}))
	_ = s.log.Seal()
	s.daemon.mu.Lock()
	delete(s.daemon.sessions, s.name)
	s.daemon.mu.Unlock()
	for _, stream := range s.attached() {
		stream.end(refuse(codes.Aborted, "session_closed", "The session was closed: %s.", why))
	}
	s.work.Wait()
}

// settled waits until every call of the session has its result.
func (s *session) settled() {
	_ = s.queue.Wait(context.Background())
	s.recordSkipped()
}

func (s *session) attached() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// entry makes a journal entry of an event, of use or of the session itself when use is nil.
func (s *session) entry(use *pipeline.Use, event pipeline.Event, state ...journal.Put) journal.Entry {
	wire := eventOf(use, event)
	return s.wireEntry(use, wire, state...)
}

func (s *session) wireEntry(use *pipeline.Use, wire *tooldv1.ExecuteResponse, state ...journal.Put) journal.Entry {
	body, err := proto.Marshal(wire)
	if err != nil {
		panic("BUG: an event that cannot be marshalled: " + err.Error())
	}
	e := journal.Entry{Kind: kindOf(wire), Turn: wire.GetTurn(), Body: body, State: state}
	if use != nil {
		e.Call = use.Key
	}
	return e
}

// put makes a change of the session's state. A value is kept as JSON.
func put(key string, value any) journal.Put {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG: state %s cannot be marshalled: %v", key, err))
	}
	return journal.Put{Key: key, Value: text}
}

// notice records something that clients should know. A full disk loses it, since nothing depends on it.
func (s *session) notice(n pipeline.Noticed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(s.entry(nil, n))
}

// setOptions checks and merges options. They are in force from the next turn, permission_mode at once.
func (s *session) setOptions(change *tooldv1.Options, env map[string]string) error {
	if err := checkOptions(change, s.daemon.Tools); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(env) > 0 {
		s.env = env
	}
	if change == nil {
		return nil
	}
	before := modeOf(s.options)
	s.options = merged(s.options, change)
	kept, err := proto.Marshal(s.options)
	if err != nil {
		return err
	}
	event := pipeline.Changed{}
	if mode := modeOf(s.options); mode != before {
		event.Mode = &mode
	}
	s.enqueue(s.entry(nil, event, journal.Put{Key: keyOptions, Value: kept}))
	return nil
}

// checkOptions refuses what is not served or makes no sense.
func checkOptions(o *tooldv1.Options, offered []tools.Tool) error {
	unserved := func(field string) error {
		return refuse(codes.FailedPrecondition, "not_served", "options.%s is not served by this daemon yet. Leave it unset.", field).at("options." + field)
	}
	invalid := func(field, format string, args ...any) error {
		return refuse(codes.InvalidArgument, "invalid_option", "options.%s %s.", field, fmt.Sprintf(format, args...)).at("options." + field)
	}
	switch {
	case o == nil:
		return nil
	case o.GetOrdering() == tooldv1.Ordering_ORDERING_DEPENDENCY:
		return unserved("ordering")
	case o.SettingsJson != nil:
		return unserved("settings_json")
	case o.Trusted != nil:
		return unserved("trusted")
	case o.MaxConcurrency != nil && (o.GetMaxConcurrency() < 1 || o.GetMaxConcurrency() > scheduler.MaxConcurrency):
		return invalid("max_concurrency", "is %d, but must be 1 to %d", o.GetMaxConcurrency(), scheduler.MaxConcurrency)
	}
	for _, name := range o.GetTools().GetNames() {
		if !slices.ContainsFunc(offered, func(t tools.Tool) bool { return t.Spec().Name == name }) {
			return invalid("tools", "names %q, which is no tool of this daemon", clean(name))
		}
	}
	var unknown error
	o.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if enum := field.Enum(); enum != nil && enum.Values().ByNumber(value.Enum()) == nil {
			unknown = invalid(string(field.Name()), "has the value %d, which this daemon does not know", value.Enum())
		}
		return unknown == nil
	})
	return unknown
}
