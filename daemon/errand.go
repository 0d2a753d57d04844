package daemon

// Errands: what a call in its midst wants of a client, to run a tool or to change a buffer. One goes to one stream and is
// answered by a message on it. It is no record: when the stream breaks, the client's next one is sent it again. What is
// wanted, and what an answer is worth, is not known here.

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// An errand is one such wish that is not fulfilled. Guarded by the session's mu, but for answered.
type errand struct {
	key  string // of the call
	use  *pipeline.Use
	tool string                   // the client's tool; empty: it is about buffers, which no other stream takes over
	wire *tooldv1.ExecuteResponse // as it is sent
	to   *stream                  // nil: whoever registers the tool next
	// answered has one slot, so that who answers does not wait.
	answered chan proto.Message
}

func newErrand(key string, use *pipeline.Use, to *stream) *errand {
	return &errand{key: key, use: use, to: to, answered: make(chan proto.Message, 1)}
}

// send hands the errand to its stream. mu is held.
func (s *session) send(e *errand) {
	s.errands[e] = struct{}{}
	if e.to != nil {
		e.to.post(e.use, e.wire)
	}
}

// post has the stream send something that is no record. The session's mu is held.
func (st *stream) post(use *pipeline.Use, wire *tooldv1.ExecuteResponse) {
	wire = proto.CloneOf(wire)
	wire.Time, wire.Turn, wire.TurnId = timestamppb.Now(), use.Turn, use.TurnID
	st.posted = append(st.posted, wire)
	select {
	case st.poked <- struct{}{}:
	default:
	}
}

// sendPosted sends what was posted.
func (st *stream) sendPosted() error {
	st.session.mu.Lock()
	posted := st.posted
	st.posted = nil
	st.session.mu.Unlock()
	for _, wire := range posted {
		if err := st.send(wire); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the answer. When ctx ends first the errand is off, and whoever has it is told so by over, unless that is
// nil.
func (s *session) await(ctx context.Context, e *errand, over *tooldv1.ExecuteResponse) (answer proto.Message, err error) {
	select {
	case answer = <-e.answered:
		return answer, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case answer = <-e.answered: // it came at the same moment
		return answer, nil
	default:
	}
	delete(s.errands, e)
	if e.to != nil && over != nil {
		e.to.post(e.use, over)
	}
	return nil, context.Cause(ctx)
}

// answer hands what a stream says about a call to the errand of that kind; false: it has none.
func (st *stream) answer(id string, kind func(*tooldv1.ExecuteResponse) bool, answer proto.Message) bool {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.errands {
		if e.to == st && e.use.ID == id && kind(e.wire) {
			delete(s.errands, e)
			e.answered <- answer
			return true
		}
	}
	return false
}

// busyWith finds the key of the call that a stream has an errand of that kind for.
func (st *stream) busyWith(id string, kind func(*tooldv1.ExecuteResponse) bool) (key string, ok bool) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.errands {
		if e.to == st && e.use.ID == id && kind(e.wire) {
			return e.key, true
		}
	}
	return "", false
}

func runsTool(wire *tooldv1.ExecuteResponse) bool     { return wire.GetClientToolUse() != nil }
func editsBuffer(wire *tooldv1.ExecuteResponse) bool  { return wire.GetBufferEdit() != nil }
func savesBuffers(wire *tooldv1.ExecuteResponse) bool { return wire.GetSaveBuffers() != nil }

// awaitReturn waits whether the client of a stream comes back, and otherwise takes away what it has offered: its tools, its
// buffers, and its errands, whose calls are stopped.
func (s *session) awaitReturn(st *stream) {
	s.mu.Lock()
	offered := len(st.offers) > 0 || st.buffers
	s.mu.Unlock()
	if !offered || s.ctx.Err() != nil {
		return
	}
	s.Later(func(ctx context.Context) {
		timer := time.NewTimer(s.daemon.grace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		s.forsake(st)
	})
}

// forsake does what awaitReturn waits with.
func (s *session) forsake(st *stream) {
	s.mu.Lock()
	var left []string
	for e := range s.errands {
		if e.to == st {
			e.to = nil // nobody reads there any more
			left = append(left, e.key)
		}
	}
	s.dropClientTools(st)
	s.dropBuffers(st)
	s.mu.Unlock()
	for _, key := range left {
		s.queue.Stop(key, errClientGone)
	}
	s.reviewPool()
}

// errClientGone is what ends the calls of a client that does not come back.
var errClientGone = &pipeline.Stop{Outcome: pipeline.Cancelled, Code: "client_gone", Reason: "the client that was to carry it out has gone away"}
