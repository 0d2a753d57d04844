package daemon

// The unary and half-streaming methods of ToolService.

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/spool"
)

// RunTool runs one call as a turn of its own and streams its events.
func (t *toolServer) RunTool(request *tooldv1.RunToolRequest, g tooldv1.ToolService_RunToolServer) error {
	if err := t.daemon.takesNew(); err != nil {
		return err
	}
	t.daemon.countStream(1)
	defer t.daemon.countStream(-1)
	s, err := t.sessionOf(request)
	if err != nil {
		return err
	}
	if err := s.setOptions(request.GetOptions(), nil); err != nil {
		return err
	}
	wire := &tooldv1.ToolUse{Id: request.GetId(), Name: request.GetName(), Timeout: request.GetTimeout()}
	switch input := request.GetArguments().(type) {
	case *tooldv1.RunToolRequest_Input:
		wire.Arguments = &tooldv1.ToolUse_Input{Input: input.Input}
	case *tooldv1.RunToolRequest_InputJson:
		wire.Arguments = &tooldv1.ToolUse_InputJson{InputJson: input.InputJson}
	}
	after := s.log.Last()
	var own *turn
	key, repeated := s.accept(parseUse(wire), func(id string) *turn {
		own = s.beginTurn(id)
		return own
	})
	s.endTurn(own)
	if key == "" {
		return refuse(codes.AlreadyExists, "duplicate_id", "The id %q is taken by another call of this session, or is too long. Use another one.", clean(request.GetId())).at("id")
	}
	if repeated {
		after = 0
	}
	st := s.join(after, func(event *tooldv1.ExecuteResponse) error {
		return g.Send(&tooldv1.RunToolResponse{Event: event})
	})
	st.only = key
	st.bytes = s.outputAsBytes()
	s.watch(st)
	err = s.serve(g.Context(), st)
	s.detach(st)
	return err
}

// sessionOf gives the session that the request names, or an anonymous one.
func (t *toolServer) sessionOf(request *tooldv1.RunToolRequest) (*session, error) {
	if request.GetSessionId() == "" {
		return t.daemon.newSession("", request.GetRoots(), true)
	}
	return t.daemon.find(request.GetSessionId(), request.GetRoots())
}

// serve runs a stream that only sends, without waiting for a Send to a client that does not read.
func (s *session) serve(ctx context.Context, st *stream) error {
	sent := make(chan error, 1) // so that the sender can leave when nobody waits for it any more
	go func() { sent <- st.run(ctx) }()
	select {
	case err := <-sent:
		return err
	case <-st.over:
		return st.why
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ListTools gives the tools that a session sees.
func (t *toolServer) ListTools(_ context.Context, request *tooldv1.ListToolsRequest) (*tooldv1.ListToolsResponse, error) {
	options := &tooldv1.Options{}
	if name := request.GetSessionId(); name != "" {
		s, ok := t.daemon.session(name)
		if !ok {
			return nil, refuse(codes.NotFound, "unknown_session", "There is no open session %q.", clean(name)).at("session_id")
		}
		s.mu.Lock()
		options = s.options
		s.mu.Unlock()
	}
	if request.GetFormat() < 0 || request.GetFormat() > tooldv1.ToolFormat_TOOL_FORMAT_MCP {
		return nil, refuse(codes.InvalidArgument, "invalid_format", "format has the value %d, which this daemon does not know.", request.GetFormat()).at("format")
	}
	pool := t.daemon.pool(options, request.GetIncludeUnavailable())
	text, err := definitions(pool, request.GetFormat())
	if err != nil {
		return nil, err
	}
	return &tooldv1.ListToolsResponse{Tools: pool, DefinitionsJson: text, Revision: revision(pool)}, nil
}

// ReadOutput streams what a call has printed.
func (t *toolServer) ReadOutput(request *tooldv1.ReadOutputRequest, g tooldv1.ToolService_ReadOutputServer) error {
	look, err := t.daemon.look(request.GetSessionId())
	if err != nil {
		return err
	}
	key, ok := look.key(request.GetToolUseId())
	if !ok {
		return unknownCall(request.GetSessionId(), request.GetToolUseId())
	}
	if request.GetChannel() < 0 || request.GetChannel() > tooldv1.Channel_CHANNEL_STDERR {
		return refuse(codes.InvalidArgument, "invalid_channel", "channel has the value %d, which this daemon does not know.", request.GetChannel()).at("channel")
	}
	reader := outputReader{look: look, key: key, request: request, send: g.Send}
	return reader.run(g.Context())
}

func unknownCall(session, id string) error {
	return refuse(codes.NotFound, "unknown_call", "Session %q has no call %q, or it is not kept any more.", clean(session), clean(id)).at("tool_use_id")
}

// outputReader is one ReadOutput under way.
type outputReader struct {
	look    *look
	key     string
	request *tooldv1.ReadOutputRequest
	send    func(*tooldv1.ReadOutputResponse) error
}

func (r *outputReader) run(ctx context.Context) error {
	offset, left := int64(r.request.GetOffset()), int64(r.request.GetLimit())
	unlimited := left == 0
	buffer := make([]byte, chunkBytes)
	for {
		out, changed, ended := r.output()
		var data []byte
		if out != nil {
			size := int64(len(buffer))
			if !unlimited {
				size = min(size, left)
			}
			run, err := r.next(out, offset, buffer[:size])
			if err != nil && !errors.Is(err, io.EOF) {
				return refuse(codes.Internal, "output_failed", "The output cannot be read: %v.", err)
			}
			data = run.Data
		}
		if len(data) > 0 {
			if err := r.send(&tooldv1.ReadOutputResponse{Offset: uint64(offset), Data: data}); err != nil {
				return err
			}
			offset, left = offset+int64(len(data)), left-int64(len(data))
			if !unlimited && left == 0 {
				return nil
			}
			continue
		}
		if ended || !r.request.GetFollow() {
			return r.send(&tooldv1.ReadOutputResponse{Offset: uint64(offset), End: ended})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.look.daemon.flush:
			return refuse(codes.Unavailable, "shutting_down", "The daemon has shut down. Connect again: it starts anew.")
		}
	}
}

func (r *outputReader) next(out *spool.Output, offset int64, buffer []byte) (spool.Run, error) {
	switch r.request.GetChannel() {
	case tooldv1.Channel_CHANNEL_STDOUT:
		return out.NextOf(spool.Stdout, offset, buffer)
	case tooldv1.Channel_CHANNEL_STDERR:
		return out.NextOf(spool.Stderr, offset, buffer)
	}
	return out.Next(offset, buffer)
}

// output finds the call's output; changed is signalled when there may be more, ended says that there will not.
func (r *outputReader) output() (out *spool.Output, changed <-chan struct{}, ended bool) {
	if s := r.look.session; s != nil {
		if out, changed, running := s.following(r.key); running {
			return out, changed, false
		}
	}
	out, err := r.look.outputs.Find(r.look.name + "." + r.key)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil, nil, true
	}
	return out, nil, true
}

// following gives the output of a call that has not ended, and what tells that there is more.
func (s *session) following(key string) (out *spool.Output, changed <-chan struct{}, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out := s.taskOutput(key); out != nil {
		return out, out.Changed(), !out.Ended()
	}
	l := s.live[key]
	if l != nil && l.out != nil {
		return l.out, l.out.Changed(), true
	}
	row := s.calls[key]
	return nil, s.news, row != nil && row.Open
}

// GetCall gives a call's records.
func (t *toolServer) GetCall(_ context.Context, request *tooldv1.GetCallRequest) (*tooldv1.GetCallResponse, error) {
	look, err := t.daemon.look(request.GetSessionId())
	if err != nil {
		return nil, err
	}
	key, ok := look.key(request.GetToolUseId())
	if !ok {
		return nil, unknownCall(request.GetSessionId(), request.GetToolUseId())
	}
	records, err := look.log.Find(key)
	if err != nil {
		return nil, journalRefusal(err)
	}
	response := &tooldv1.GetCallResponse{State: tooldv1.CallState_CALL_STATE_ACCEPTED}
	for _, record := range records {
		wire, err := wireOf(record)
		if err != nil {
			return nil, err
		}
		switch record.Kind {
		case kindStarted:
			response.State = tooldv1.CallState_CALL_STATE_RUNNING
		case kindResult:
			response.State = tooldv1.CallState_CALL_STATE_ENDED
		}
		response.Records = append(response.Records, wire)
	}
	return response, nil
}
