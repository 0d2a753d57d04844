// Client requests: what a running call asks of a client. A request is sent to one stream, once the
// stream has been told that the call has started, and is answered by a message on that stream. It
// is not a record: the sender of a stream looks for open requests as it looks for records.

package daemon

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fs/workspace"
)

// A requester has clients do something: run a tool of theirs, save a buffer, change it.
type requester struct {
	s       *session
	buffers *workspace.Buffers // of clients' editors
}

// A requestKind is what kind of thing a client is to do.
type requestKind uint8

// The kinds of client requests. A tool can be run by another stream that offers the same one; a
// buffer is one editor's.
const (
	runTool requestKind = iota
	editBuffer
	saveBuffers
)

// A clientRequest is something that a client was asked to do and has not answered. Used in the
// session's update alone, but for answered.
type clientRequest struct {
	key   string // of the call
	use   *pipeline.Use
	kind  requestKind
	shape string // of the tool
	wire  *tooldv1.ExecuteResponse
	to    *stream
	sent  bool // to that stream
	// over withdraws the request from the client; it is set when the client request is off, and
	// sent if the client request was.
	over *tooldv1.ExecuteResponse
	// answered has one slot, so that who answers does not wait. nil: there will be no answer, and
	// the call goes on.
	answered chan proto.Message
}

func newClientRequest(what requestKind, key string, use *pipeline.Use, to *stream, wire *tooldv1.ExecuteResponse) *clientRequest {
	return &clientRequest{key: key, use: use, kind: what, to: to, wire: wire, answered: make(chan proto.Message, 1)}
}

// commit sends the request to its stream.
func (c *clients) commit(e *clientRequest) {
	c.requests[e] = struct{}{}
	e.to.wakeUp()
}

// wakeUp wakes the sender: there may be something new beside the journal.
func (st *stream) wakeUp() {
	signal(st.poked)
}

// sendRequests sends what its client is to do, and what it need no longer do. Each request is taken
// just before it is sent: while another is sent it may be reassigned, or its call may end.
func (st *stream) sendRequests() error {
	for {
		due := view(st.session, func(its *state) *tooldv1.ExecuteResponse { return its.clients.nextRequest(st) })
		if due == nil {
			return nil
		}
		if err := st.out.event(due); err != nil {
			return err
		}
	}
}

// nextRequest returns what a stream is to be sent next, and marks it as sent; nil: nothing.
func (c *clients) nextRequest(st *stream) *tooldv1.ExecuteResponse {
	for _, e := range c.requestsOf(st) {
		wire := e.wire
		if e.over != nil {
			wire = e.over
			delete(c.requests, e)
		} else if e.sent || st.running[e.key] == nil { // its start comes first
			continue
		}
		e.sent = true
		wire = proto.CloneOf(wire)
		wire.Time, wire.Turn, wire.TurnId = timestamppb.Now(), e.use.Turn, e.use.TurnID
		return wire
	}
	return nil
}

// requestsOf returns the client requests of a stream, those of the oldest call first.
func (c *clients) requestsOf(st *stream) (found []*clientRequest) {
	for e := range c.requests {
		if e.to == st {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *clientRequest) int {
		return cmp.Or(cmp.Compare(a.use.Turn, b.use.Turn), cmp.Compare(a.use.Index, b.use.Index))
	})
	return found
}

// await waits for the answer. When ctx ends first the client request is off, and the client that
// has it is told so by over, unless that is nil.
func (r *requester) await(ctx context.Context, e *clientRequest, over *tooldv1.ExecuteResponse) (answer proto.Message, err error) {
	select {
	case answer = <-e.answered:
		return answer, nil
	case <-ctx.Done():
	}
	r.s.update(func(its *state) {
		select {
		case answer = <-e.answered: // it came at the same moment
			return
		default:
		}
		_, there := its.clients.streams[e.to]
		if e.over = over; over == nil || !e.sent || !there {
			delete(its.clients.requests, e)
		} else {
			e.to.wakeUp()
		}
		err = context.Cause(ctx)
	})
	return answer, err
}

// A callMessage is about a call, which it names as the client does.
type callMessage interface {
	proto.Message
	GetToolUseId() string
	GetTurnId() string
}

// requestFor finds the client request that a client speaks of: of several calls with the id, where
// it does not name the turn, the oldest; nil: there is none.
func (st *stream) requestFor(its *state, what requestKind, said callMessage) *clientRequest {
	for _, e := range its.clients.requestsOf(st) {
		if e.kind == what && e.sent && e.over == nil && e.use.ID == said.GetToolUseId() && (said.GetTurnId() == "" || said.GetTurnId() == e.use.TurnID) {
			return e
		}
	}
	return nil
}

// answer passes what a stream says about a call to the request of that kind; false: it has none.
func (st *stream) answer(what requestKind, said callMessage) bool {
	s := st.session
	return view(s, func(its *state) bool {
		e := st.requestFor(its, what, said)
		if e == nil {
			return false
		}
		delete(its.clients.requests, e)
		e.answered <- said
		return true
	})
}

// awaitReconnect waits whether the client of a stream that can say no more comes back, and
// otherwise takes away what it has offered: its tools, its buffers, and its client requests.
func (r *requester) awaitReconnect(st *stream) {
	var waits bool
	r.s.update(func(its *state) {
		waits = (len(st.tools) > 0 || st.buffers) && !st.missed && r.s.ctx.Err() == nil
		st.missed = st.missed || waits
		for _, e := range its.clients.requestsOf(st) {
			if e.over == nil {
				r.reassign(its, e) // to one that has come already
			}
		}
	})
	if !waits {
		return
	}
	r.s.goUnlessStopping(func(ctx context.Context) {
		if sleep(ctx, r.s.daemon.grace) == nil {
			r.dropClient(st)
		}
	})
}

// dropClient forgets what a client had that did not come back: calls whose tool no other client
// offers are stopped, and those that only wanted something saved go on.
func (r *requester) dropClient(st *stream) {
	var left []string
	r.s.update(func(its *state) {
		r.dropTools(its, st)
		r.dropBuffers(its, st)
		for _, e := range its.clients.requestsOf(st) {
			switch {
			case e.over != nil:
				delete(its.clients.requests, e)
			case e.kind == saveBuffers:
				delete(its.clients.requests, e)
				e.answered <- nil
			case !r.reassign(its, e):
				delete(its.clients.requests, e)
				left = append(left, e.key)
			}
		}
	})
	for _, key := range left {
		r.s.queue.Stop(key, errClientGone)
	}
	r.s.tools.announceTools()
}

// reaches reports whether the stream's client can still speak.
func (c *clients) reaches(st *stream) bool {
	_, there := c.streams[st]
	return there && !st.halfClosed && st.why == nil
}

// errClientGone is what ends the calls of a client that does not come back.
var errClientGone = &pipeline.Stop{Outcome: pipeline.Cancelled, Code: "client_gone", Reason: "the client that was to carry it out has gone away"}
