// The state of a session, in parts with one subject each.

package daemon

import (
	"time"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/pool"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
)

// A state is everything about a session that changes. A pointer to it is proof of the session's lock.
type state struct {
	ledger    ledger
	questions questions
	clients   clients
	toolset   toolset
	shell     shell

	options  *tooldv1.Options
	used     time.Time // when a client last used the session
	stopping bool      // takes nothing more
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
	acked    uint64              // the client has stored the records up to this number
}

// questions are those that are asked or wait to be asked, and what answers have left behind.
type questions struct {
	asked      map[string]*asked // by call
	ahead      []*pipeline.Call  // that are still to ask ahead; the first is at it
	remembered []remembered
	proposed   map[string]bool // MCP servers that users have refused or were notified of
	canAsk     bool            // the last main stream could answer
}

// clients are the streams, and what the clients behind them have, want and left.
type clients struct {
	streams  map[*stream]struct{}
	main     *stream
	owner    access.Owner // of the last main stream
	detached time.Time    // since when no main stream is attached
	deadline time.Time    // when to handle what a client left behind; zero: nothing was left
	info     *tooldv1.ClientInfo
	peer     pipeline.Peer               // who used the session last, as recorded
	met      bool                        // a client has used it since the daemon started
	requests map[*clientRequest]struct{} // that are not answered
	editors  map[string]*stream          // who has a buffer, by its file's real path
	watching *fileWatch                  // nil: no client wants to know
}

// A toolset is what changes of a session's tools.
type toolset struct {
	clientTools map[string][]*clientTool // tools that clients run, by name, the newest last
	dynamic     *dynamicTools
	announced   *pool.Pool // what clients were told of its tools last; nil: nothing yet
	serving     bool       // MCP servers are started
}

// A shell is what one call leaves to the next, as in a terminal.
type shell struct {
	dir       string
	env       map[string]string // the client's; not kept
	exports   exports
	given     map[string][]string // the environment of the calls that have begun, by key
	todos     []tools.Todo
	mentioned map[string]bool // what is said once, by calls
	cursors   map[string]int64
}

func newState(log *journal.Log) state {
	now := time.Now()
	return state{
		options: &tooldv1.Options{}, used: now,
		ledger: ledger{
			log:   log,
			turns: map[uint64]*turn{}, calls: map[string]*callRow{}, uses: map[useKey]string{}, byID: map[string]string{},
			live: map[string]*live{}, news: make(chan struct{}),
		},
		questions: questions{asked: map[string]*asked{}, proposed: map[string]bool{}},
		clients:   clients{streams: map[*stream]struct{}{}, requests: map[*clientRequest]struct{}{}, editors: map[string]*stream{}, detached: now},
		toolset:   toolset{clientTools: map[string][]*clientTool{}, dynamic: &dynamicTools{}},
		shell:     shell{given: map[string][]string{}, cursors: map[string]int64{}, mentioned: map[string]bool{}},
	}
}

// append passes entries to the journal, in the order in which the state changes. It returns at once; what it returns tells when
// they are written.
func (l *ledger) append(entries ...journal.Entry) *journal.Pending {
	l.tail = l.log.Enqueue(entries...)
	return l.tail
}

// keep does the same for state that no record belongs to.
func (l *ledger) keep(state ...journal.Put) *journal.Pending {
	l.tail = l.log.Keep(journal.Committed, state...)
	return l.tail
}

// hold keeps state that says how something ended, for which there is room on a full disk too.
func (l *ledger) hold(durability journal.Durability, state ...journal.Put) *journal.Pending {
	l.tail = l.log.KeepTerminal(durability, state...)
	return l.tail
}
