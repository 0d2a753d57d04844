//go:build !no_mcp

// One session of the daemon for one MCP client: calls go out on its Execute stream, results come in, a lost stream is
// taken up again. One goroutine owns all of it; others hand it what is to be done. This file knows neither MCP's
// messages nor the pipe: mcp.go, mcp_result.go and mcp_ask.go do.

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/ellipsis"
)

// errBridgeEnded is what requests end with that are under way when the client goes away or a signal comes.
var errBridgeEnded = errors.New("the MCP server is ending")

// An mcpCall is one call. The channels are the only way from the bridge's goroutine to the one that serves the request.
type mcpCall struct {
	client   *mcp.ServerSession
	name     string
	input    string
	meter    meter
	sent     func()                   // called when it is on its way; nil: nobody waits for that
	progress chan *tooldv1.Progress   // one slot: the newest wins
	ended    chan *tooldv1.ToolResult // one slot, filled once

	id        string // filled in by begin, as all that follows
	number    int
	accepted  bool
	cancelled bool
}

func newMCPCall(client *mcp.ServerSession, params *mcp.CallToolParamsRaw) *mcpCall {
	return &mcpCall{
		client: client, name: params.Name, input: cmp.Or(string(params.Arguments), "{}"), meter: meter{token: params.GetProgressToken()},
		progress: make(chan *tooldv1.Progress, 1), ended: make(chan *tooldv1.ToolResult, 1),
	}
}

// A bridge is the session. Its fields are set before start, or belong to its goroutine until that has ended.
type bridge struct {
	app      *app
	attach   *tooldv1.Attach // of a new session
	askRoots bool            // the client names the roots
	changed  func()          // tells the client that the list of tools is another one
	prefix   string          // of ids: a session that stays sees many clients
	acts     chan func()
	ended    chan struct{} // closed when nothing more is done
	asks     sync.WaitGroup

	ctx     context.Context // of the goroutine
	client  *mcp.ServerSession
	link    *link         // nil: none
	stream  executeStream // nil: none
	hangUp  func()        // ends the stream
	events  <-chan received
	session string // empty: none yet
	last    uint64 // the newest record seen
	moved   bool   // the client has named other roots meanwhile
	numbers int
	calls   map[string]*mcpCall  // those without a result, by id
	elicits map[string]*elicited // by the question's id
}

func newBridge(s *app, l *link, attach *tooldv1.Attach) *bridge {
	return &bridge{
		app: s, link: l, attach: attach, prefix: "mcp-" + strings.ToLower(rand.Text()[:10]) + "-", acts: make(chan func()), ended: make(chan struct{}),
		calls: map[string]*mcpCall{}, elicits: map[string]*elicited{},
	}
}

// start begins the bridge's goroutine; end stops it, and what it has started, and waits for that.
func (b *bridge) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	b.ctx = ctx
	go func() {
		defer close(b.ended)
		b.run()
	}()
	return func() { cancel(); <-b.ended; b.asks.Wait() }
}

func (b *bridge) run() {
	for {
		select {
		case act := <-b.acts:
			act()
		case r := <-b.events:
			if r.err != nil {
				b.lost(r.err)
				continue
			}
			b.take(r.event)
		case <-b.ctx.Done():
			b.drop()
			return
		}
	}
}

// do has the bridge's goroutine act, and returns when it has. false: it did not, since either has ended.
func (b *bridge) do(ctx context.Context, act func()) bool {
	done := make(chan struct{})
	select {
	case b.acts <- func() { act(); close(done) }:
		<-done
		return true
	case <-ctx.Done():
	case <-b.ended:
	}
	return false
}

// begin sends a call. It is a turn of its own: calls of an MCP client have no siblings, so no failure stops another.
func (b *bridge) begin(c *mcpCall) {
	if err := b.attached(c.client); err != nil {
		c.ended <- lostResult(err)
		return
	}
	b.numbers++
	c.number, c.id = b.numbers, fmt.Sprintf("%s%d", b.prefix, b.numbers)
	b.calls[c.id] = c
	b.send(c)
}

func (b *bridge) send(c *mcpCall) {
	w := use{id: c.id, name: c.name, input: c.input}.wire(c.id)
	b.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: w}})
	b.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: c.id}}})
}

// say sends one message. That the stream has ended meanwhile is told by its events.
func (b *bridge) say(request *tooldv1.ExecuteRequest) {
	if b.stream != nil {
		_ = b.stream.Send(request)
	}
}

// cancel stops a call that nobody waits for any more. Its result still comes, and is dropped.
func (b *bridge) cancel(c *mcpCall) {
	if b.calls[c.id] != c {
		return
	}
	c.cancelled = true
	cancel := &tooldv1.Cancel{ToolUseId: c.id, Reason: "the MCP client cancelled it"}
	b.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: cancel}})
}

// pool lists the tools that the session has or can activate. When the daemon has gone meanwhile another one is asked, once.
func (b *bridge) pool(ctx context.Context, client *mcp.ServerSession) ([]*tooldv1.Tool, error) {
	for again := false; ; again = true {
		var l *link
		var session string
		err := errBridgeEnded
		b.do(ctx, func() {
			err = b.attached(client)
			l, session = b.link, b.session
		})
		if err != nil {
			return nil, err
		}
		list, err := l.tools.ListTools(ctx, &tooldv1.ListToolsRequest{SessionId: session, IncludeUnavailable: true}) // else what is deferred is not described
		if gone := status.Code(err) == codes.Unavailable; err == nil || again || !gone || ctx.Err() != nil {
			return slices.DeleteFunc(list.GetTools(), func(t *tooldv1.Tool) bool { return t.GetUnavailable() != "" }), err
		}
		b.do(ctx, func() {
			if b.link == l {
				b.lost(err)
			}
		})
	}
}

// attached sees to it that there is a session with a stream. A client that has named other roots gets a new session as
// soon as nothing runs in the old one, since a session's roots are its own for life.
func (b *bridge) attached(client *mcp.ServerSession) error {
	if b.moved && len(b.calls) == 0 {
		b.leave()
	}
	if b.stream != nil {
		return nil
	}
	b.client = client
	if b.session == "" {
		b.introduce()
	}
	return b.open()
}

// introduce fills in what only the client can say.
func (b *bridge) introduce() {
	b.moved = false
	if b.askRoots {
		if roots := rootsOf(b.ctx, b.app, b.client); len(roots) > 0 {
			b.attach.Roots = roots
		}
	}
	b.attach.Capabilities = &tooldv1.Capabilities{Answers: canElicit(b.client)}
	if params := b.client.InitializeParams(); params != nil && params.ClientInfo != nil {
		b.attach.Client = &tooldv1.ClientInfo{Name: ellipsis.Bytes(params.ClientInfo.Name, 100) + " (MCP)", Version: ellipsis.Bytes(params.ClientInfo.Version, 100)}
	}
}

// open attaches to the session, again or for the first time. With an error there is no stream.
func (b *bridge) open() error {
	if b.link == nil {
		l, err := b.app.connect(b.ctx)
		if err != nil {
			return err
		}
		b.link = l
	}
	attach := b.attach
	if b.session != "" {
		attach = &tooldv1.Attach{
			SessionId: b.session, AfterSeq: proto.Uint64(b.last), Env: attach.GetEnv(), Client: attach.GetClient(), Capabilities: attach.GetCapabilities(),
		}
	}
	ctx, cancel := context.WithCancel(b.ctx)
	attached, stream, err := greet(ctx, b.link, attach)
	if err != nil {
		cancel()
		return err
	}
	events, done := make(chan received), make(chan struct{})
	go func() {
		defer close(done)
		receive(ctx, stream.Recv, events)
	}()
	b.stream, b.events, b.hangUp = stream, events, func() { cancel(); <-done }
	if b.session == "" {
		b.session, b.last = attached.GetSessionId(), attached.GetLastSeq()
		for _, warning := range attached.GetWarnings() {
			b.app.say("warning: %s", warning)
		}
		b.app.noted("session %s", b.session)
	}
	return nil
}

// greet attaches and gives what the daemon says first.
func greet(ctx context.Context, l *link, attach *tooldv1.Attach) (*tooldv1.Attached, executeStream, error) {
	stream, err := l.tools.Execute(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}}); err != nil {
		return nil, nil, err
	}
	first, err := stream.Recv()
	return first.GetAttached(), stream, err
}

// lost takes the session up again while calls are under way; else the next request does. What cannot be taken up ends
// the calls here: how they end there stands in the journal.
func (b *bridge) lost(err error) {
	b.drop()
	for tries := 0; tries < resumeTries && len(b.calls) > 0 && status.Code(err) == codes.Unavailable; tries++ {
		b.unlink()
		if err = b.open(); err == nil {
			b.resend()
			b.changed() // it may be another daemon
			return
		}
	}
	if status.Code(err) == codes.Unavailable {
		b.unlink()
	} else if reasonOf(status.Convert(err)) != "displaced" { // then it goes on elsewhere, and the next call takes it back
		b.session, b.last = "", 0
	}
	for _, c := range b.calls {
		c.ended <- lostResult(err)
	}
	clear(b.calls)
	b.withdraw(func(*elicited) bool { return true })
}

// resend says again what the daemon may not have heard. It runs no call twice.
func (b *bridge) resend() {
	for _, c := range slices.SortedFunc(maps.Values(b.calls), func(x, y *mcpCall) int { return cmp.Compare(x.number, y.number) }) {
		if !c.accepted {
			b.send(c)
		}
		if c.cancelled {
			b.cancel(c)
		}
	}
}

// drop ends the stream, if there is one.
func (b *bridge) drop() {
	if b.stream != nil {
		b.hangUp()
		b.stream, b.events = nil, nil
	}
	if b.ctx.Err() != nil {
		b.withdraw(func(*elicited) bool { return true })
	}
}

// unlink lets go of a daemon that is gone.
func (b *bridge) unlink() {
	if b.link != nil {
		b.link.close()
		b.link = nil
	}
}

// leave ends a session that another one takes the place of.
func (b *bridge) leave() {
	b.drop()
	if b.link != nil && b.session != "" {
		b.app.closeSession(&conversation{link: b.link, session: b.session})
	}
	b.session, b.last = "", 0
}

// giveUp cancels what is under way in a session that stays: nobody is left to whom a result could go.
func (b *bridge) giveUp() {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	for id := range b.calls {
		if b.link == nil {
			return
		}
		if _, err := b.link.sessions.CancelCall(ctx, &tooldv1.CancelCallRequest{SessionId: b.session, ToolUseId: id, Reason: "the MCP client went away"}); err != nil {
			b.app.noted("a call was not cancelled: %s", whatWentWrong(err))
		}
	}
}

// moveRoots notes that the client's roots are others now.
func (b *bridge) moveRoots() { b.moved = b.askRoots && b.attach.GetSessionId() == "" }
