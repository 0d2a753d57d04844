// The state of a session, in parts with one subject each, how its changes become entries of the
// journal, and what calls leave to the next ones: working directory, environment, todo list,
// cursors.

package daemon

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

// A state is everything about a session that changes. A pointer to it is proof of the session's
// lock.
type state struct {
	ledger    ledger
	questions questions
	clients   clients
	toolset   toolset
	shell     shell

	options  *tooldv1.Options
	used     time.Time // when a client last used the session
	found    time.Time // when it was put together, or last found for a request
	stopping bool      // takes nothing more
	resting  bool      // it is stopping in order to rest
	passing  bool      // another program is about to go on with it: no question is closed
}

// A ledger is the session's calls and turns, and which of its records are still needed.
type ledger struct {
	log      *journal.Log
	tail     *journal.Pending // the newest entries; nil before the first
	turns    map[uint64]*turn // those whose end is not recorded
	open     *turn            // the main stream's, that still takes tool uses
	lastTurn uint64
	calls    map[string]*callRow // every call that is kept, by key
	uses     map[useKey]string   // key by the client's names
	byID     map[string]string   // newest key by the client's id alone
	live     map[string]*live    // calls whose act has begun
	news     chan struct{}       // closed, and made again, when a call prints its first or ends
	openSize int                 // bytes of input in open calls
	running  int                 // calls whose turn has come and that have not ended
	deferred []change            // of concurrent calls, until none of them runs any more
	kept     time.Time           // when the newest checkpoint was made
	recorded map[string]uint64   // hashes of the read states that this process has recorded last, by key
	acked    uint64              // the client has stored the records up to this number

	postponed postponed
}

// questions are those that are asked or wait to be asked, and what answers have left behind.
type questions struct {
	asked      map[string]*asked // by call
	ahead      []*pipeline.Call  // that are still to ask ahead; the first is at it
	remembered []remembered
	proposed   map[string]bool // MCP servers that users have refused or were notified of
	ports      map[int]bool    // answers about ports
	canAsk     bool            // the last main stream could answer
	freed      chan struct{}   // closed, and made again, when a question is closed
}

// clients are the streams, and what the clients behind them have, want and left.
type clients struct {
	streams  map[*stream]struct{}
	main     *stream
	owner    access.Owner // of the last main stream
	detached time.Time    // since when no main stream is attached
	deadline time.Time    // when to handle what a client left behind; zero: nothing was left
	info     *tooldv1.ClientInfo
	peer     *pipeline.Peer              // who used the session last, as recorded; nil: no client has since the daemon started
	requests map[*clientRequest]struct{} // that are not answered
	editors  map[string]*stream          // who has a buffer, by its file's real path
	watching *fileWatch                  // nil: no client wants to know
}

// A toolset is what changes of a session's tools.
type toolset struct {
	clientTools map[string][]*clientTool // tools that clients run, by name, the newest last
	dynamic     *dynamicTools
	announced   announced // what clients were told of its tools last
	serving     bool      // MCP servers are served
	offered     bool      // a client may know the tools, so that it is told of changes
}

// A shell is what one call leaves to the next, as in a terminal.
type shell struct {
	dir       string
	vars      *variables          // never nil
	given     map[string][]string // the environment of the calls that have begun, by key
	todos     []tools.Todo
	mentioned map[string]bool // what is said once, by calls
	cursors   map[string]int64
	tell      string // what the model is told with the result of the next call; empty: nothing
}

func newState(log *journal.Log) state {
	now := time.Now()
	return state{
		options: &tooldv1.Options{}, used: now, found: now,
		ledger: ledger{
			log:   log,
			turns: map[uint64]*turn{}, calls: map[string]*callRow{}, uses: map[useKey]string{}, byID: map[string]string{},
			live: map[string]*live{}, news: make(chan struct{}), recorded: map[string]uint64{},
		},
		questions: questions{asked: map[string]*asked{}, proposed: map[string]bool{}, freed: make(chan struct{})},
		clients:   clients{streams: map[*stream]struct{}{}, requests: map[*clientRequest]struct{}{}, editors: map[string]*stream{}, detached: now},
		toolset:   toolset{clientTools: map[string][]*clientTool{}, dynamic: &dynamicTools{}},
		shell:     shell{vars: &variables{}, given: map[string][]string{}, cursors: map[string]int64{}, mentioned: map[string]bool{}},
	}
}

// stateSeed keeps clients from choosing file contents whose hashes collide.
var stateSeed = maphash.MakeSeed()

// noteRead reports whether the value differs from the last one for its key, and remembers it. The caller passes it to the journal then.
func (l *ledger) noteRead(put journal.Put) (changed bool) {
	hash := maphash.Bytes(stateSeed, put.Value)
	if before, known := l.recorded[put.Key]; known && before == hash {
		return false
	}
	l.recorded[put.Key] = hash
	return true
}

// append passes entries to the journal, in the order in which the state changes. It returns at
// once; what it returns tells when they are written.
func (l *ledger) append(entries ...journal.Entry) *journal.Pending {
	return l.pass(l.log.Enqueue, entries...)
}

// stage is append for a caller that waits for the entries at once.
func (l *ledger) stage(entries ...journal.Entry) *journal.Pending {
	return l.pass(l.log.Stage, entries...)
}

// keep does the same for state that no record belongs to.
func (l *ledger) keep(state ...journal.Put) *journal.Pending {
	l.flush()
	l.tail = l.log.Keep(journal.Committed, state...)
	return l.tail
}

// hold keeps state that says how something ended, for which there is room on a full disk too.
func (l *ledger) hold(durability journal.Durability, state ...journal.Put) *journal.Pending {
	l.flush()
	l.tail = l.log.KeepTerminal(durability, state...)
	return l.tail
}

// entry makes a journal entry of an event, of use or of the session itself when use is nil.
func entry(use *pipeline.Use, event pipeline.Event, state ...journal.Put) journal.Entry {
	return wireEntry(use, convert.Event(use, event), state...)
}

func wireEntry(use *pipeline.Use, wire *tooldv1.ExecuteResponse, state ...journal.Put) journal.Entry {
	body, err := proto.Marshal(wire)
	kind := kindOf(wire)
	if err != nil || kind == 0 {
		panic(fmt.Sprintf("BUG: a %T that cannot be recorded: %v", wire.GetEvent(), err))
	}
	e := journal.Entry{Kind: kind, Turn: wire.GetTurn(), Body: body, State: state, Terminal: terminal(wire)}
	if use != nil {
		e.Call = use.Key
	}
	return e
}

// terminal reports whether an event ends something: that is recorded also when the disk is full.
func terminal(wire *tooldv1.ExecuteResponse) bool {
	return wire.GetToolResult() != nil || wire.GetTurnEnded() != nil || wire.GetQuestionWithdrawn() != nil || wire.GetSessionChanged().GetClosed()
}

// putState makes a change of the session's state.
func putState(key string, value any) journal.Put {
	return journal.Put{Key: key, Value: asState(value)}
}

// asState returns a value as the state keeps it, in JSON.
func asState(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG: a %T that cannot be marshalled: %v", value, err))
	}
	return text
}

// The kinds of records, as the journal keeps them. Their numbers are on disk and never change.
const (
	kindAccepted journal.Kind = iota + 1
	kindQuestion
	kindWithdrawn
	kindStarted
	kindResult
	kindTurnEnded
	kindNotice
	kindChanged
)

// kindOf returns the kind of record of an event; 0: it is not recorded.
func kindOf(wire *tooldv1.ExecuteResponse) journal.Kind {
	switch wire.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		return kindAccepted
	case *tooldv1.ExecuteResponse_Question:
		return kindQuestion
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		return kindWithdrawn
	case *tooldv1.ExecuteResponse_Started:
		return kindStarted
	case *tooldv1.ExecuteResponse_ToolResult:
		return kindResult
	case *tooldv1.ExecuteResponse_TurnEnded:
		return kindTurnEnded
	case *tooldv1.ExecuteResponse_Notice:
		return kindNotice
	case *tooldv1.ExecuteResponse_SessionChanged:
		return kindChanged
	}
	return 0
}

// oneofIn returns which field of the oneof of that name is set, as the contract calls it.
func oneofIn(message proto.Message, oneof protoreflect.Name) string {
	wire := message.ProtoReflect()
	return string(wire.WhichOneof(wire.Descriptor().Oneofs().ByName(oneof)).Name())
}

// change is what a concurrent call leaves behind in the session, until its batch has ended.
type change struct {
	use     *pipeline.Use
	changes tools.Changes
	given   []string // the environment that the call was given
}

// first reports whether what is mentioned for the first time since the session was made or
// restored.
func (rec *recorder) first(what string) bool {
	return view(rec.s, func(its *state) bool {
		said := its.shell.mentioned[what]
		its.shell.mentioned[what] = true
		return !said
	})
}

// outputName is what the output of a call is called, and its processes are marked with.
func outputName(session, key string) string { return session + "." + key }

// apply puts the changes of calls into the session's state. It returns the record of what changed,
// or nil.
func (rec *recorder) apply(its *state, changes []change) []journal.Entry {
	event := pipeline.Changed{}
	var state []journal.Put
	for _, c := range changes {
		if c.changes.Restart {
			c.changes.Dir = rec.s.meta.Roots[0]
			event.Unexported = append(event.Unexported, slices.Sorted(maps.Keys(its.shell.vars.exports.Set))...)
			its.shell.vars = its.shell.vars.withExports(exports{})
			state = append(state, putState(keyExports, exports{}))
		}
		if dir := c.changes.Dir; dir != "" && dir != its.shell.dir {
			rec.s.startHooks(hook.Input{Event: hook.CwdChanged, OldDir: its.shell.dir, NewDir: dir}, "")
			its.shell.dir, event.Dir = dir, dir
			state = append(state, putState(keyDir, dir))
		}
		if c.changes.Exports != nil {
			set, unset := rec.export(its, c.given, c.changes.Exports)
			event.Exported, event.Unexported = append(event.Exported, set...), append(event.Unexported, unset...)
			if len(set)+len(unset) > 0 {
				state = append(state, putState(keyExports, its.shell.vars.exports))
			}
		}
		if c.changes.Todos != nil && !slices.Equal(c.changes.Todos, its.shell.todos) {
			its.shell.todos, event.Todos, event.TodosReplaced = c.changes.Todos, c.changes.Todos, true
			state = append(state, putState(keyTodos, its.shell.todos))
		}
		if cursor := c.changes.Cursor; cursor != nil {
			its.shell.cursors = maps.Clone(its.shell.cursors) // a judge may look at the one of before
			its.shell.cursors[cursor.Task] = cursor.Offset
			state = append(state, putState(keyCursor+cursor.Task, cursor.Offset))
		}
		if fresh := rec.s.tools.activate(its, c.changes.Activated); len(fresh) > 0 {
			event.Activated = append(event.Activated, fresh...)
			state = append(state, putState(keyActive, its.toolset.dynamic.active))
		}
	}
	if len(state) == 0 {
		return nil
	}
	return []journal.Entry{entry(nil, event, state...)}
}

// export takes over what a call has changed in the exported environment that it was given, and
// names that.
func (rec *recorder) export(its *state, given []string, after map[string]string) (set, unset []string) {
	filter := sandbox.Filter{}
	if st := rec.s.judge.snapshot.Load(); st != nil {
		filter = st.confining.Filter
	}
	had := its.shell.vars.exports
	exports := exports{Set: maps.Clone(had.Set), Unset: slices.Clone(had.Unset)}
	if exports.Set == nil {
		exports.Set = map[string]string{}
	}
	before := map[string]string{}
	for _, pair := range given {
		name, value, _ := strings.Cut(pair, "=")
		before[name] = value
	}
	for name, value := range after {
		if old, had := before[name]; !had || old != value {
			exports.Set[name] = value
			exports.Unset = slices.DeleteFunc(exports.Unset, func(n string) bool { return n == name })
			set = append(set, name)
		}
	}
	for name := range before {
		if _, has := after[name]; !has && !filter.Withheld(name) { // a command never saw what was withheld from it
			delete(exports.Set, name)
			exports.Unset = append(exports.Unset, name)
			unset = append(unset, name)
		}
	}
	its.shell.vars = its.shell.vars.withExports(exports)
	slices.Sort(set)
	slices.Sort(unset)
	return set, unset
}
