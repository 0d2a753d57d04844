package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/text/ellipsis"
)

// errBridgeEnded is what requests end with that are under way when the client goes away or a signal comes.
var errBridgeEnded = errors.New("the MCP server is ending")

// A call is one call of the client, or one of the server's own. Its fields are set before begin, or belong to the bridge's goroutine.
type call struct {
	name   string
	input  string
	trace  string                    // a traceparent; empty: none
	answer func(*tooldv1.ToolResult) // is called once; it does not block

	ctx      context.Context                  // what the SDK needs to find the client's request; nil: a pipe has one client
	progress func()                           // newest was set; it does not block
	meter    meter                            // belongs to the goroutine that writes
	newest   atomic.Pointer[tooldv1.Progress] // what is to be written; nil: nothing

	id     string // filled in by begin
	silent bool   // the client has given it up
}

// A bridge is the session. Its fields are set before start, or belong to its goroutine until that has ended.
type bridge struct {
	Options
	dial    toold.Dial
	changed func() // notifies the client that the list of tools has changed
	prefix  string // of ids: a session that stays sees many clients
	client  *mcp.ServerSession
	ended   chan struct{} // closed when nothing more is done
	asks    sync.WaitGroup
	// attended is closed when the bridge has been started, over HTTP; nil: it serves a pipe, and calls do not come from the SDK.
	attended chan struct{}

	mu     sync.Mutex
	acts   []func()      // what the goroutine is to do
	filled chan struct{} // one slot

	ctx     context.Context // of the goroutine
	session *toold.Session  // nil: none
	events  <-chan toold.Event
	begun   bool // the stream's first Attached was received
	moved   bool // the client has named other roots meanwhile
	numbers int
	calls   map[string]*call     // those without a result, by id
	elicits map[string]*elicited // by the question's id
}

func newBridge(o Options, dial toold.Dial) *bridge {
	return &bridge{
		Options: o, dial: dial, prefix: "mcp-" + strings.ToLower(rand.Text()[:10]) + "-", filled: make(chan struct{}, 1), ended: make(chan struct{}),
		calls: map[string]*call{}, elicits: map[string]*elicited{},
	}
}

// start begins the bridge's goroutine; end stops it, and what it has started, and waits for that.
func (b *bridge) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	b.ctx = ctx
	go func() {
		defer close(b.ended)
		defer b.withdraw(func(*elicited) bool { return true })
		for {
			select {
			case <-b.filled:
				for _, act := range b.posted() {
					act()
				}
			case e := <-b.events:
				if e.Err != nil {
					b.lost(e.Err)
				} else {
					b.take(e.ExecuteResponse)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-b.ended; b.asks.Wait() }
}

// post has the bridge's goroutine act, in the order of posts, and does not wait for that.
func (b *bridge) post(act func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acts = append(b.acts, act)
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *bridge) posted() (acts []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	acts, b.acts = b.acts, nil
	return acts
}

// do has the bridge's goroutine act, and returns when it has, or when either has ended before.
func (b *bridge) do(ctx context.Context, act func()) {
	done := make(chan struct{})
	b.post(func() {
		defer close(done)
		if ctx.Err() == nil {
			act()
		}
	})
	select {
	case <-done:
	case <-b.ended:
	}
}

func (b *bridge) called(c *call) { b.post(func() { b.begin(c) }) }

func (b *bridge) cancelled(c *call) { b.post(func() { b.cancel(c) }) }

func (b *bridge) rootsChanged() {
	b.post(func() { b.moved = b.AskRoots && b.Attach.GetSessionId() == "" })
}

// begin sends a call. It is a turn of its own: calls of an MCP client have no siblings, so no failure stops another.
func (b *bridge) begin(c *call) {
	b.numbers++
	c.id = b.prefix + strconv.Itoa(b.numbers)
	if err := b.attached(); err != nil {
		c.answer(lostResult(err))
		return
	}
	b.calls[c.id] = c
	use := turn.Use{ID: c.id, Name: c.name, Input: c.input}
	request := use.Request(c.id)
	request.GetToolUse().TraceContext = turn.ValidText(c.trace)
	if err := errors.Join(b.session.Send(request), b.session.Send(turn.EndRequest(c.id))); err != nil {
		b.lost(err)
	}
}

// cancel stops a call that the client has given up. Its result still comes, and is dropped.
func (b *bridge) cancel(c *call) {
	c.silent = true
	if b.calls[c.id] == c {
		if err := b.session.Send(turn.CancelRequest(c.id, c.id, "the MCP client cancelled it")); err != nil {
			b.Console.Noted("a call was not cancelled: %s", cli.Describe(err))
		}
	}
}

// pool lists the tools that the session has or can activate.
func (b *bridge) pool(ctx context.Context) ([]*tooldv1.Tool, error) {
	var session *toold.Session
	err := errBridgeEnded
	b.do(ctx, func() {
		err = b.attached()
		session = b.session
	})
	if err != nil {
		return nil, err
	}
	var list *tooldv1.ListToolsResponse
	err = session.Call(ctx, func(conn *toold.Conn) (err error) {
		list, err = conn.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{SessionId: session.ID(), IncludeUnavailable: true}) // else what is deferred is not described
		return err
	})
	return slices.DeleteFunc(list.GetTools(), func(t *tooldv1.Tool) bool { return t.GetUnavailable() != "" }), err
}

// attached makes sure that there is a session. A client that has named other roots gets a new session as
// soon as nothing runs in the old one, since the roots of a session never change.
func (b *bridge) attached() error {
	if b.moved && len(b.calls) == 0 {
		b.leave()
	}
	if b.session != nil {
		return nil
	}
	b.introduce()
	session, err := toold.Open(b.ctx, b.dial, b.Attach)
	if err != nil {
		return err
	}
	b.session, b.events, b.begun = session, session.Events(), false
	b.Console.Noted("session %s", session.ID())
	return nil
}

// introduce fills in what only the client has.
func (b *bridge) introduce() {
	b.moved = false
	if b.AskRoots {
		if roots := rootsOf(b.ctx, b.Console, b.client); len(roots) > 0 {
			b.Attach.Roots = roots
		}
	}
	b.Attach.Capabilities = &tooldv1.Capabilities{Answers: canElicit(b.client)}
	if params := b.client.InitializeParams(); params != nil && params.ClientInfo != nil {
		b.Attach.Client = &tooldv1.ClientInfo{Name: ellipsis.Bytes(params.ClientInfo.Name, 100) + " (MCP)", Version: ellipsis.Bytes(params.ClientInfo.Version, 100)}
	}
}

// lost ends the calls that are under way: how they end stands in the journal. Where the daemon has refused the session, the next
// call gets a new one; otherwise that call attaches to it again, and takes it back from a client that has displaced this one.
func (b *bridge) lost(err error) {
	if reason := toold.Reason(err); reason != "" && reason != "displaced" && status.Code(err) != codes.Unavailable {
		b.close()
	}
	for _, c := range b.calls {
		c.answer(lostResult(err))
	}
	clear(b.calls)
	b.withdraw(func(*elicited) bool { return true })
}

// close ends the stream, and with it an anonymous session.
func (b *bridge) close() {
	if b.session != nil {
		b.session.Close()
	}
	b.session, b.events = nil, nil
}

// leave ends a session that another one takes the place of.
func (b *bridge) leave() {
	turn.CloseSession(b.Console, b.session)
	b.close()
}

// giveUp cancels what is under way in a session that stays, since no client is left to receive a result.
func (b *bridge) giveUp() {
	ctx, cancel := context.WithTimeout(context.Background(), turn.ClosePatience)
	defer cancel()
	for id := range b.calls {
		conn := b.session.Conn()
		if conn == nil {
			return
		}
		if _, err := conn.Sessions.CancelCall(ctx, &tooldv1.CancelCallRequest{SessionId: b.session.ID(), ToolUseId: id, Reason: "the MCP client went away"}); err != nil {
			b.Console.Noted("a call was not cancelled: %s", cli.Describe(err))
		}
	}
}
