// The unary and half-streaming methods of ToolService. They know of a call what Execute knows, and
// of tools their specifications alone.

package daemon

import (
	"context"
	"errors"
	"io"
	"math"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/exec/spool"
)

type toolServer struct {
	tooldv1.UnimplementedToolServiceServer
	daemon *Daemon
}

// RunTool runs one call as a turn of its own and streams its events.
func (t *toolServer) RunTool(request *tooldv1.RunToolRequest, g tooldv1.ToolService_RunToolServer) error {
	if err := t.daemon.life.upgrade.pass(g.Context()); err != nil {
		return err
	}
	t.daemon.life.countStream(1)
	defer t.daemon.life.countStream(-1)
	if err := t.daemon.checkOptions(request.GetOptions(), nil); err != nil {
		return err
	}
	var st *stream
	err := awake(func() (*session, error) { return t.sessionOf(principalOf(g.Context()), request) }, func(s *session) (err error) {
		st, err = s.runTool(request, g)
		return err
	})
	if err != nil {
		return err
	}
	return st.serve(g.Context(), nil)
}

// runTool takes the call of a RunTool, and returns the stream of its events.
func (s *session) runTool(request *tooldv1.RunToolRequest, g tooldv1.ToolService_RunToolServer) (*stream, error) {
	if err := s.setOptions(request.GetOptions()); err != nil {
		return nil, err
	}
	s.update(func(its *state) {
		s.attachments.recordClient(g.Context(), its, nil)
		if s.meta.Anonymous {
			its.clients.owner = access.OwnerOf(g.Context())
		}
	})
	r := parseUse(request)
	r.trace = traceOf(g.Context())
	st, err := s.intake.runAlone(r, request.GetSessionId() == "", eventSender{g.SendMsg, func(event *tooldv1.ExecuteResponse) any {
		return &tooldv1.RunToolResponse{Event: event}
	}})
	if err != nil && s.meta.Anonymous {
		_ = s.close("its call was not accepted") // it never rests
	}
	return st, err
}

// runAlone takes a call as a turn of its own, and returns the stream of its events. main: the
// session ends with the stream.
func (i *intake) runAlone(r request, main bool, out eventSender) (st *stream, err error) {
	i.alone(func(in inlet) { st, err = in.run(r, main, out) })
	return st, err
}

func (in inlet) run(r request, main bool, out eventSender) (*stream, error) {
	err := view(in.s, func(its *state) error {
		if its.stopping {
			return in.s.attachments.closed(its)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after := in.s.log.Last()
	var own *turn
	key, repeated, err := in.accept(r, func(id string) *turn {
		own = in.beginTurn(id)
		return own
	})
	in.endTurn(own)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, apierror.New(codes.AlreadyExists, "duplicate_id", "The id %q is taken by another call of this session, or is too long. Use another one.", convert.Short(r.use.ID)).At("id")
	}
	var again []string
	if repeated {
		after, again = in.s.log.Last(), []string{key}
	}
	st := newStream(in.s, after, out)
	st.only, st.again = key, again
	if err := in.s.attachments.watch(st); err != nil {
		return nil, err
	}
	if main {
		in.s.update(func(its *state) { its.clients.main = st })
	}
	return st, nil
}

// sessionOf returns the session of who's that the request names, or an anonymous one.
func (t *toolServer) sessionOf(who access.Principal, request *tooldv1.RunToolRequest) (*session, error) {
	if request.GetSessionId() == "" {
		return t.daemon.sessions.newSession(who, "", request.GetRoots(), request.GetOptions(), anonymous)
	}
	s, _, err := t.daemon.find(who, request.GetSessionId(), request.GetRoots(), request.GetOptions())
	return s, err
}

// ReadOutput streams what a call has printed.
func (t *toolServer) ReadOutput(request *tooldv1.ReadOutputRequest, g tooldv1.ToolService_ReadOutputServer) error {
	look, err := t.daemon.sessions.view(g.Context(), request)
	if err != nil {
		return err
	}
	key, err := look.key(request.GetToolUseId(), request.Turn)
	if err != nil {
		return err
	}
	if request.GetChannel() < 0 || request.GetChannel() > tooldv1.Channel_CHANNEL_STDERR {
		return apierror.Invalidf("invalid_channel", "channel", "channel has the value %d, which this daemon does not know.", request.GetChannel())
	}
	if max(request.GetOffset(), request.GetLimit(), request.GetLast()) > math.MaxInt64 {
		return apierror.Invalidf("invalid_offset", "offset", "offset, limit and last are at most %d.", int64(math.MaxInt64))
	}
	outputs, err := look.outputs()
	if err != nil {
		return err
	}
	reader := outputReader{look.session, outputs, outputName(look.name, key), key, request, g.Send}
	return reader.run(g.Context())
}

// outputReader is one ReadOutput under way.
type outputReader struct {
	session *session // nil: it is closed
	outputs *spool.Dir
	name    string // of the output
	key     string // of the call
	request *tooldv1.ReadOutputRequest
	send    func(*tooldv1.ReadOutputResponse) error
}

func (r *outputReader) run(ctx context.Context) error {
	offset, left := r.begin(), int64(r.request.GetLimit())
	if left == 0 {
		left = math.MaxInt64
	}
	buffer := make([]byte, chunkBytes)
	for left > 0 {
		out, changed, ended := r.output()
		data, err := r.next(out, offset, buffer[:min(chunkBytes, left)])
		if err != nil {
			return err
		}
		switch {
		case len(data) > 0:
			if err := r.send(&tooldv1.ReadOutputResponse{Offset: uint64(offset), Data: data}); err != nil {
				return err
			}
			offset, left = offset+int64(len(data)), left-int64(len(data))
			continue
		case ended || !r.request.GetFollow():
			return r.send(&tooldv1.ReadOutputResponse{Offset: uint64(offset), End: ended})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// begin returns the offset of the first byte that is to be sent.
func (r *outputReader) begin() int64 {
	offset, last := int64(r.request.GetOffset()), int64(r.request.GetLast())
	out, _, _ := r.output()
	if out == nil || last == 0 {
		return offset
	}
	size := out.Total()
	switch r.request.GetChannel() {
	case tooldv1.Channel_CHANNEL_STDOUT:
		size = out.Size(spool.Stdout)
	case tooldv1.Channel_CHANNEL_STDERR:
		size = out.Size(spool.Stderr)
	}
	return max(offset, size-last)
}

// next reads what is there from offset on; nothing when there is no output or no more of it.
func (r *outputReader) next(out *spool.Output, offset int64, buffer []byte) ([]byte, error) {
	if out == nil {
		return nil, nil
	}
	var run spool.Run
	var err error
	switch r.request.GetChannel() {
	case tooldv1.Channel_CHANNEL_STDOUT:
		run, err = out.NextOf(spool.Stdout, offset, buffer)
	case tooldv1.Channel_CHANNEL_STDERR:
		run, err = out.NextOf(spool.Stderr, offset, buffer)
	default:
		run, err = out.Next(offset, buffer)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, apierror.New(codes.Internal, "output_failed", "The output cannot be read: %v.", err)
	}
	return run.Data, nil
}

// output finds the call's output; changed is signalled when there may be more, ended means that
// there will not.
func (r *outputReader) output() (out *spool.Output, changed <-chan struct{}, ended bool) {
	if r.session != nil {
		if out, changed, running := r.session.following(r.key); running {
			return out, changed, false
		}
	}
	out, err := r.outputs.Find(r.name)
	if err != nil { // it never had a byte, or is not kept any more
		return nil, nil, true
	}
	return out, nil, true
}

// following returns the output of a call, what is signalled when there is more, and whether there may be more.
func (s *session) following(key string) (out *spool.Output, changed <-chan struct{}, running bool) {
	s.update(func(its *state) {
		if task := s.tasks.taskOf(key); task != nil {
			out = task.Output
		} else if l := its.ledger.live[key]; l != nil { // also for a moment after its result was sent
			out = l.out
		}
		if out != nil {
			changed, running = out.Changed(), !out.Ended()
			return
		}
		row := its.ledger.calls[key]
		changed, running = its.ledger.news, row != nil && row.Open
	})
	return out, changed, running
}

// GetCall returns a call's records.
func (t *toolServer) GetCall(ctx context.Context, request *tooldv1.GetCallRequest) (*tooldv1.GetCallResponse, error) {
	look, err := t.daemon.sessions.view(ctx, request)
	if err != nil {
		return nil, err
	}
	key, err := look.key(request.GetToolUseId(), request.Turn)
	if err != nil {
		return nil, err
	}
	held, err := look.log.State(keyEnding + key) // before the records: it goes when the result comes
	if err != nil {
		return nil, journalRefusal(err)
	}
	records, err := look.log.Find(key)
	if err != nil {
		return nil, journalRefusal(err)
	}
	if len(records) == 0 {
		return nil, unknownCall(look.name, request.GetToolUseId())
	}
	response := &tooldv1.GetCallResponse{State: storyOf(records).state}
	if _, completed := held[keyEnding+key]; completed && response.State != tooldv1.CallState_CALL_STATE_ENDED {
		response.State = tooldv1.CallState_CALL_STATE_COMPLETED
	}
	for _, record := range records {
		wire, err := wireOf(record)
		if err != nil {
			return nil, err
		}
		if accepted := wire.GetAccepted(); accepted != nil {
			response.InputJson, accepted.InputJson = accepted.GetInputJson(), ""
		}
		response.Records = append(response.Records, wire)
	}
	return response, nil
}
