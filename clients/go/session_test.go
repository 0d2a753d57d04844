package toold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Each script is what a daemon receives and does, line by line: "<" is a message that it must get, ">" an event that it
// sends, "cut" a stream that breaks off, "idle" that the client has noticed it. What the client sends is the case's own.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		send   []*tooldv1.ExecuteRequest
		script string
		events string // what the client receives
	}{
		"a replay counts with its result": {
			[]*tooldv1.ExecuteRequest{use("t", "a"), endTurn("t")},
			"< attach; > attached 9; < use t/a; < end t; > replayed 3 t/a; cut; < attach after 9; > attached 9; < use t/a; < end t; > result 4 t/a",
			"attached 9, accepted 3 t/a, attached 9, result 4 t/a",
		},
		"the end of a turn whose calls only the model has named is waited for": {
			[]*tooldv1.ExecuteRequest{modelEvent("t", 0), endTurn("t")},
			"< attach; > attached 0; < event t/0; < end t; > accepted 1 t/a; cut; < attach after 1; > attached 1; < event t/0; < end t; > ended 2 t/",
			"attached 0, accepted 1 t/a, attached 1, ended 2 t/",
		},
		"a model's own item has its id in it": {
			[]*tooldv1.ExecuteRequest{{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{TurnId: "t", NativeJson: `{"type":"function_call","id":"fc","call_id":"a"}`}}}, use("t", "b")},
			"< attach; > attached 0; < use t/; < use t/b; > accepted 1 t/a; cut; < attach after 1; > attached 1; < use t/b",
			"attached 0, accepted 1 t/a, attached 1",
		},
		"without a record in between it is tried three times": {
			[]*tooldv1.ExecuteRequest{use("t", "a")},
			"< attach; > attached 0; < use t/a; cut; < attach after 0; > attached 0; cut; < attach after 0; > attached 0; cut; < attach after 0; > attached 0; cut",
			"attached 0, attached 0, attached 0, attached 0, Unavailable",
		},
		"nothing is resumed while nothing is under way": {
			[]*tooldv1.ExecuteRequest{use("t", "a"), endTurn("t")},
			"< attach; > attached 0; < use t/a; < end t; > accepted 1 t/a; > result 2 t/a; > ended 3 t/; cut",
			"attached 0, accepted 1 t/a, result 2 t/a, ended 3 t/, Unavailable",
		},
		"it is attached once more if the daemon was about to end": {
			[]*tooldv1.ExecuteRequest{use("t", "a")},
			"< attach; cut; < attach; > attached 0; < use t/a; > result 1 t/a",
			"attached 0, result 1 t/a",
		},
		"another error than a lost connection ends it": {
			[]*tooldv1.ExecuteRequest{use("t", "a")},
			"< attach; > attached 0; < use t/a; abort",
			"attached 0, Aborted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newScripted(t, c.script)
			s, err := Open(t.Context(), d.dial, &tooldv1.Attach{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.send {
				if err := s.Send(m); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for range strings.Count(c.events, ", ") + 1 {
				e := <-s.Events()
				if got = append(got, described(e)); e.Err != nil {
					break
				}
			}
			if got := strings.Join(got, ", "); got != c.events {
				t.Errorf("events:\n%s\nwant:\n%s", got, c.events)
			}
			<-d.played
			s.Close()
		})
	}
}

// TestSendWhileResuming: Send does not wait for a daemon that takes its time to come back.
func TestSendWhileResuming(t *testing.T) {
	d := newScripted(t, "< attach; > attached 0; < use t/a; cut; < attach after 0; > attached 0; < use t/a; < cancel a; < answer q")
	again, reached := make(chan struct{}), make(chan struct{}, 1)
	dials := 0
	s, err := Open(t.Context(), func(ctx context.Context) (*Conn, error) {
		if dials++; dials == 2 {
			reached <- struct{}{}
			<-again
		}
		return d.dial(ctx)
	}, &tooldv1.Attach{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	send := func(m *tooldv1.ExecuteRequest) {
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	send(use("t", "a"))
	<-s.Events()
	<-reached
	send(cancelCall("a"))
	send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{QuestionId: "q"}}})
	if s.Conn() != nil || s.ID() != "s" {
		t.Errorf("connection %v of session %q while it is resumed", s.Conn(), s.ID())
	}
	close(again)
	<-s.Events()
	<-d.played
}

// TestCallAgain: a unary call that finds the daemon gone is made once more, with a new connection.
func TestCallAgain(t *testing.T) {
	d := newScripted(t, "< attach; > attached 1; < end t; cut; < attach after 1; > attached 1")
	s, err := Open(t.Context(), d.dial, &tooldv1.Attach{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		for {
			select {
			case <-s.Events():
			case <-t.Context().Done():
				return
			}
		}
	}()
	calls := 0
	if err := s.Call(t.Context(), func(*Conn) error {
		if calls++; calls > 1 {
			return nil
		}
		if err := s.Send(endTurn("t")); err != nil { // upon which the stream is cut
			return err
		}
		return status.Error(codes.Unavailable, "gone")
	}); err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// A scripted daemon plays a script, whose steps it takes one by one from however many streams.
type scripted struct {
	tooldv1.UnimplementedToolServiceServer
	t        *testing.T
	listener *bufconn.Listener
	steps    []string
	played   chan struct{} // closed after the last step
}

func newScripted(t *testing.T, script string) *scripted {
	d := &scripted{t: t, listener: bufconn.Listen(1 << 16), steps: strings.Split(script, "; "), played: make(chan struct{})}
	server := grpc.NewServer()
	tooldv1.RegisterToolServiceServer(server, d)
	served := make(chan error)
	go func() { served <- server.Serve(d.listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *scripted) dial(context.Context) (*Conn, error) {
	cc, err := grpc.NewClient("passthrough:///scripted", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.listener.DialContext(ctx) }))
	if err != nil {
		return nil, err
	}
	return NewConn(cc), nil
}

// Execute plays on. One stream plays at a time, since a client opens the next one when it has lost the last.
func (d *scripted) Execute(stream grpc.BidiStreamingServer[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]) error {
	for len(d.steps) > 0 {
		verb, rest, _ := strings.Cut(d.steps[0], " ")
		d.steps = d.steps[1:]
		last := len(d.steps) == 0
		switch verb {
		case "<":
			m, err := stream.Recv()
			if err != nil || said(m) != rest {
				d.t.Errorf("the daemon got %q, %v; want %q", said(m), err, rest)
				d.steps = nil
				close(d.played)
				return status.Error(codes.Aborted, "not as in the script")
			}
		case ">":
			if err := stream.Send(event(rest)); err != nil {
				d.t.Error(err)
			}
		}
		if last {
			close(d.played)
		}
		switch verb {
		case "cut":
			return status.Error(codes.Unavailable, "cut")
		case "abort":
			return status.Error(codes.Aborted, "abort")
		}
	}
	<-stream.Context().Done()
	return nil
}

// said describes a message as scripts do.
func said(m *tooldv1.ExecuteRequest) string {
	switch m := m.GetMessage().(type) {
	case *tooldv1.ExecuteRequest_Attach:
		if m.Attach.AfterSeq != nil {
			return fmt.Sprintf("attach after %d", m.Attach.GetAfterSeq())
		}
		return "attach"
	case *tooldv1.ExecuteRequest_ToolUse:
		return "use " + m.ToolUse.GetTurnId() + "/" + m.ToolUse.GetId()
	case *tooldv1.ExecuteRequest_EndTurn:
		return "end " + m.EndTurn.GetTurnId()
	case *tooldv1.ExecuteRequest_Cancel:
		return "cancel " + m.Cancel.GetToolUseId()
	case *tooldv1.ExecuteRequest_ModelEvent:
		return fmt.Sprintf("event %s/%d", m.ModelEvent.GetTurnId(), m.ModelEvent.GetIndex())
	case *tooldv1.ExecuteRequest_ClientToolResult:
		return "did " + m.ClientToolResult.GetToolUseId()
	case *tooldv1.ExecuteRequest_BufferChanged:
		return "text " + m.BufferChanged.GetPath() + " " + m.BufferChanged.GetContent()
	case *tooldv1.ExecuteRequest_BufferClosed:
		return "close " + m.BufferClosed.GetPath()
	case *tooldv1.ExecuteRequest_Answer:
		return "answer " + m.Answer.GetQuestionId()
	}
	return fmt.Sprint(m)
}

// event makes the event that a script describes: its kind, its number, and TURN/CALL.
func event(text string) *tooldv1.ExecuteResponse {
	var kind, name string
	var seq uint64
	_, _ = fmt.Sscan(text, &kind, &seq, &name)
	turn, id, _ := strings.Cut(name, "/")
	e := &tooldv1.ExecuteResponse{Seq: seq, TurnId: turn}
	switch kind {
	case "attached":
		e.Seq, e.Event = 0, &tooldv1.ExecuteResponse_Attached{Attached: &tooldv1.Attached{SessionId: "s", LastSeq: seq}}
	case "accepted", "replayed":
		e.Event = &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{ToolUseId: id, Replayed: kind == "replayed"}}
	case "started":
		e.Event = &tooldv1.ExecuteResponse_Started{Started: &tooldv1.Started{ToolUseId: id}}
	case "result":
		e.Event = &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{ToolUseId: id}}
	case "ended":
		e.Event = &tooldv1.ExecuteResponse_TurnEnded{TurnEnded: &tooldv1.TurnEnded{}}
	default:
		panic("no such event: " + text)
	}
	return e
}

// described is the inverse of event.
func described(e Event) string {
	switch {
	case errors.Is(e.Err, io.EOF):
		return "EOF"
	case e.Err != nil:
		return status.Code(e.Err).String()
	}
	name := func(kind, id string) string { return fmt.Sprintf("%s %d %s/%s", kind, e.GetSeq(), e.GetTurnId(), id) }
	switch m := e.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		return fmt.Sprintf("attached %d", m.Attached.GetLastSeq())
	case *tooldv1.ExecuteResponse_Accepted:
		return name("accepted", m.Accepted.GetToolUseId())
	case *tooldv1.ExecuteResponse_Started:
		return name("started", m.Started.GetToolUseId())
	case *tooldv1.ExecuteResponse_ToolResult:
		return name("result", m.ToolResult.GetToolUseId())
	case *tooldv1.ExecuteResponse_TurnEnded:
		return name("ended", "")
	}
	return fmt.Sprint(e.ExecuteResponse)
}

func use(turn, id string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{TurnId: turn, Id: id}}}
}

func endTurn(turn string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: turn}}}
}

func cancelCall(id string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: id}}}
}

func modelEvent(turn string, index uint64) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ModelEvent{ModelEvent: &tooldv1.ModelEvent{TurnId: turn, Index: index}}}
}

func buffer(path, text string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: &tooldv1.BufferChanged{Path: path, Content: text}}}
}

func closeBuffer(path string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferClosed{BufferClosed: &tooldv1.BufferClosed{Path: path}}}
}

// TestTooManyTexts: of more texts than are kept none is, and the caller is told once.
func TestTooManyTexts(t *testing.T) {
	var l ledger
	large := strings.Repeat("x", maxTexts/2)
	l.add(buffer("/a", large))
	l.add(buffer("/b", large))
	l.add(buffer("/b", large))
	if len(l.unconfirmed()) != 2 || l.buffersForgotten() {
		t.Errorf("%d texts are kept, want 2", len(l.unconfirmed()))
	}
	l.add(buffer("/c", "x"))
	if len(l.unconfirmed()) != 0 || !l.buffersForgotten() || l.buffersForgotten() {
		t.Errorf("%d texts are kept", len(l.unconfirmed()))
	}
	l.add(buffer("/a", "x"))
	l.add(closeBuffer("/a"))
	if len(l.unconfirmed()) != 1 || l.texts != 0 {
		t.Errorf("%d texts of %d bytes are kept", len(l.unconfirmed()), l.texts)
	}
}
