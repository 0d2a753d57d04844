package daemon_test

// A daemon on a real socket, and a client that talks to it as any client would. Knows nothing of the daemon's inside.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"go.uber.org/zap/zaptest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/toold/toold/daemon"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/write"
)

// house is a running daemon with its folders.
type house struct {
	t      *testing.T
	root   string
	state  string
	socket string
	extra  []tools.Tool
	d      *daemon.Daemon
	conn   *grpc.ClientConn
	served chan error
}

// serve starts a daemon over an empty workspace and ends it with the test.
func serve(t *testing.T, extra ...tools.Tool) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, root: t.TempDir(), state: filepath.Join(dir, "state"), socket: filepath.Join(dir, "run", "toold.sock"), extra: extra}
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *house) start() {
	h.t.Helper()
	d, err := daemon.New(daemon.Config{
		Tools:    append([]tools.Tool{read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), glob.Tool()}, h.extra...),
		StateDir: h.state, Root: h.root, Version: "test", Log: zaptest.NewLogger(h.t),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	listener, err := daemon.Listen(h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	h.d, h.served = d, make(chan error, 1)
	go func() { h.served <- d.Serve(listener) }()
	h.conn, err = grpc.NewClient("unix:"+h.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) stop() {
	h.conn.Close()
	h.d.Stop()
	if err := <-h.served; err != nil {
		h.t.Errorf("serve: %v", err)
	}
}

func (h *house) tools() tooldv1.ToolServiceClient { return tooldv1.NewToolServiceClient(h.conn) }

func (h *house) sessions() tooldv1.SessionServiceClient {
	return tooldv1.NewSessionServiceClient(h.conn)
}

// conversation is an Execute stream from the client's side.
type conversation struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]
	cancel context.CancelFunc
	events []*tooldv1.ExecuteResponse
}

func (h *house) converse() *conversation {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	stream, err := h.tools().Execute(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(cancel)
	return &conversation{t: h.t, stream: stream, cancel: cancel}
}

func (c *conversation) attach(a *tooldv1.Attach) *tooldv1.Attached {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}})
	return c.until(func(e *tooldv1.ExecuteResponse) bool { return e.GetAttached() != nil }).GetAttached()
}

func (c *conversation) say(m *tooldv1.ExecuteRequest) {
	c.t.Helper()
	if err := c.stream.Send(m); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *conversation) use(id, name, input string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
		Id: id, Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input},
	}}})
}

func (c *conversation) endTurn() {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
}

// until receives up to the first event that match wants, and keeps all that it saw.
func (c *conversation) until(match func(*tooldv1.ExecuteResponse) bool) *tooldv1.ExecuteResponse {
	c.t.Helper()
	for {
		event, err := c.stream.Recv()
		if err != nil {
			c.t.Fatalf("receive: %v, after %s", err, story(c.events))
		}
		c.events = append(c.events, event)
		if match(event) {
			return event
		}
	}
}

// turn receives up to the end of a turn and gives its results by id.
func (c *conversation) turn() map[string]*tooldv1.ToolResult {
	c.t.Helper()
	results := map[string]*tooldv1.ToolResult{}
	c.until(func(e *tooldv1.ExecuteResponse) bool {
		if result := e.GetToolResult(); result != nil {
			results[result.GetToolUseId()] = result
		}
		return e.GetTurnEnded() != nil
	})
	return results
}

// rest half-closes and receives everything to the end.
func (c *conversation) rest() error {
	c.t.Helper()
	if err := c.stream.CloseSend(); err != nil {
		c.t.Fatal(err)
	}
	for {
		event, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.events = append(c.events, event)
	}
}

// story tells events in a few words each, without progress.
func story(events []*tooldv1.ExecuteResponse) (told []string) {
	for _, e := range events {
		switch {
		case e.GetAttached() != nil:
			told = append(told, "attached")
		case e.GetAccepted() != nil:
			a := e.GetAccepted()
			told = append(told, fmt.Sprintf("%s accepted %d/%d", a.GetToolUseId(), a.GetIndex(), a.GetBatch()))
		case e.GetQuestion() != nil:
			told = append(told, e.GetQuestion().GetToolUseId()+" asks")
		case e.GetQuestionWithdrawn() != nil:
			told = append(told, e.GetQuestionWithdrawn().GetToolUseId()+" "+e.GetQuestionWithdrawn().GetReason())
		case e.GetStarted() != nil:
			told = append(told, e.GetStarted().GetToolUseId()+" started")
		case e.GetToolResult() != nil:
			r := e.GetToolResult()
			told = append(told, fmt.Sprintf("%s %s %s", r.GetToolUseId(), pipelineName(r.GetOutcome()), r.GetError().GetCode()))
		case e.GetTurnEnded() != nil:
			told = append(told, fmt.Sprintf("turn %d ended %d/%d", e.GetTurn(), e.GetTurnEnded().GetCalls(), e.GetTurnEnded().GetBatches()))
		case e.GetNotice() != nil:
			told = append(told, "notice "+e.GetNotice().GetCode())
		case e.GetSessionChanged() != nil:
			told = append(told, "changed")
		}
	}
	return told
}

func pipelineName(o tooldv1.Outcome) string { return o.String()[len("OUTCOME_"):] }
