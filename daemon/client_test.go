// A daemon on a real socket, and a client that talks to it as any client would.

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/memory"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/write"
)

// house is a running daemon with its folders.
type house struct {
	t        testing.TB
	root     string
	state    string
	socket   string
	settings string
	grace    time.Duration // 0: the daemon's own
	rest     time.Duration // likewise
	extra    []tools.Tool
	d        *daemon.Daemon
	conn     *grpc.ClientConn
	served   chan error
}

// startServers starts a daemon over an empty workspace and ends it with the test.
func serve(t testing.TB, extra ...tools.Tool) *house {
	t.Helper()
	h := prepare(t, extra...)
	h.start()
	return h
}

// prepare makes the folders of a daemon, and sees to its end.
func prepare(t testing.TB, extra ...tools.Tool) *house {
	t.Helper()
	dir, err := os.MkdirTemp("", "toold") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	h := &house{
		t: t, root: t.TempDir(), state: filepath.Join(dir, "state"), socket: filepath.Join(dir, "run", "toold.sock"),
		settings: filepath.Join(dir, "settings.json"), extra: extra,
	}
	t.Cleanup(h.stop)
	return h
}

// outside lets processes of a daemon that has not started run without a sandbox: their numbers are then those that the
// test sees.
func (h *house) outside() *house {
	h.t.Helper()
	if err := os.WriteFile(h.settings, []byte(`{"sandbox": {"enabled": false}}`), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return h
}

// limit writes the settings file of a daemon that has not started.
func (h *house) limit(limits string) {
	h.t.Helper()
	if err := os.WriteFile(h.settings, []byte(`{"limits": {`+limits+`}}`), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) start() {
	h.t.Helper()
	h.begin(h.config())
}

func toolset() []tools.Tool {
	return []tools.Tool{
		read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), glob.Tool(),
		bash.Tool(), bash.OutputTool(), bash.InputTool(), bash.KillTool(), bash.ShellTool(), edit.PatchTool(), todo.Tool(), grep.Tool(), ls.Tool(), memory.Tool(),
	}
}

func (h *house) config() daemon.Config {
	return daemon.Config{
		Tools: append(toolset(), h.extra...), StateDir: h.state, Root: h.root, Version: "test", UserSettings: h.settings,
		Log: zap.NewNop(),
	}
}

func (h *house) begin(config daemon.Config) {
	h.t.Helper()
	d, err := daemon.New(config)
	if err != nil {
		h.t.Fatal(err)
	}
	if h.grace > 0 {
		d.SetGrace(h.grace)
	}
	if h.rest > 0 {
		d.SetRest(h.rest)
	}
	listener, err := access.Listen(h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	h.d, h.served = d, make(chan error, 1)
	go func() { h.served <- d.Serve(listener) }()
	h.connect()
}

func (h *house) connect() {
	h.t.Helper()
	var err error
	h.conn, err = grpc.NewClient("unix:"+h.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
}

// stop ends the daemon and checks that nothing is left of it. It may be called twice.
func (h *house) stop() {
	if h.conn != nil {
		h.conn.Close()
	}
	if h.d == nil {
		return
	}
	h.d.Stop()
	h.left()
}

// left waits for the daemon's end.
func (h *house) left() {
	if err := <-h.served; err != nil {
		h.t.Errorf("serve: %v", err)
	}
	h.d = nil
}

// file writes a file below the root.
func (h *house) file(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) tools() tooldv1.ToolServiceClient { return tooldv1.NewToolServiceClient(h.conn) }

func (h *house) sessions() tooldv1.SessionServiceClient {
	return tooldv1.NewSessionServiceClient(h.conn)
}

func (h *house) daemon() tooldv1.DaemonServiceClient { return tooldv1.NewDaemonServiceClient(h.conn) }

// conversation is an Execute stream from the client's side.
type conversation struct {
	t      testing.TB
	stream grpc.BidiStreamingClient[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]
	cancel context.CancelFunc
	events []*tooldv1.ExecuteResponse
}

func (h *house) converse() *conversation {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := h.tools().Execute(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(cancel)
	return &conversation{t: h.t, stream: stream, cancel: cancel}
}

// join attaches to the session of that name, which is made if need be, as somebody who answers.
func (h *house) join(name string, options *tooldv1.Options) *conversation {
	h.t.Helper()
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: name, Roots: []string{h.root}, Options: options, Capabilities: &tooldv1.Capabilities{Answers: true}})
	return c
}

// free is a session whose calls ask nobody.
func free(more ...*tooldv1.Options) *tooldv1.Options {
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	for _, o := range more {
		proto.Merge(options, o)
	}
	return options
}

func (c *conversation) attach(a *tooldv1.Attach) *tooldv1.Attached {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}})
	return c.until("attached").GetAttached()
}

func (c *conversation) say(m *tooldv1.ExecuteRequest) {
	c.t.Helper()
	if err := c.stream.Send(m); err != nil {
		_, err = c.stream.Recv()
		c.t.Fatalf("send: %v, after %q", err, story(c.events))
	}
}

func (c *conversation) use(id, name, input string) {
	c.t.Helper()
	c.ask(&tooldv1.ToolUse{Id: id, Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input}})
}

func (c *conversation) ask(use *tooldv1.ToolUse) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: use}})
}

func (c *conversation) endTurn() {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
}

func (c *conversation) cancelCall(id string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: id}}})
}

func (c *conversation) discard() {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{}}})
}

// reply answers a question.
func (c *conversation) reply(q *tooldv1.Question, decision tooldv1.Decision, change ...func(*tooldv1.Answer)) {
	c.t.Helper()
	answer := &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: decision}
	for _, f := range change {
		f(answer)
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: answer}})
}

// until receives up to the first event whose story begins so, and keeps all that it saw.
func (c *conversation) until(told string) *tooldv1.ExecuteResponse {
	c.t.Helper()
	for {
		event, err := c.stream.Recv()
		if err != nil {
			c.t.Fatalf("receive: %v, waiting for %q after %q", err, told, story(c.events))
		}
		c.events = append(c.events, event)
		if strings.HasPrefix(tell(event), told) {
			return event
		}
		if id, _, _ := strings.Cut(told, " "); id != "" && event.GetToolResult().GetToolUseId() == id {
			c.t.Fatalf("%s ended as %s, waiting for %q: %v", id, tell(event), told, event.GetToolResult().GetContent())
		}
	}
}

// results receives up to the end of the next turn and gives its results by id.
func (c *conversation) results() map[string]*tooldv1.ToolResult {
	c.t.Helper()
	from := len(c.events)
	c.until("turn ")
	return resultsOf(c.events[from:])
}

func resultsOf(events []*tooldv1.ExecuteResponse) map[string]*tooldv1.ToolResult {
	results := map[string]*tooldv1.ToolResult{}
	for _, event := range events {
		if result := event.GetToolResult(); result != nil {
			results[result.GetToolUseId()] = result
		}
	}
	return results
}

// closed receives everything to the end of the stream and gives the status.
func (c *conversation) closed() error {
	events, err := drain(c.stream.Recv)
	c.events = append(c.events, events...)
	return err
}

// rest half-closes and receives everything to the end.
func (c *conversation) rest() error {
	c.t.Helper()
	if err := c.stream.CloseSend(); err != nil {
		c.t.Fatal(err)
	}
	return c.closed()
}

// story returns a few words for each event, without progress and changes of the session.
func story(events []*tooldv1.ExecuteResponse) (told []string) {
	for _, e := range events {
		if words := tell(e); words != "" && words != "notice host_wait" { // which a busy machine makes necessary
			told = append(told, words)
		}
	}
	return told
}

// tell returns a few words for one event.
func tell(e *tooldv1.ExecuteResponse) string {
	switch m := e.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		return "attached"
	case *tooldv1.ExecuteResponse_Accepted:
		return fmt.Sprintf("%s accepted %d/%d", m.Accepted.GetToolUseId(), m.Accepted.GetIndex(), m.Accepted.GetBatch())
	case *tooldv1.ExecuteResponse_Question:
		return m.Question.GetToolUseId() + " asks"
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		return m.QuestionWithdrawn.GetToolUseId() + " withdrawn: " + m.QuestionWithdrawn.GetReason()
	case *tooldv1.ExecuteResponse_Started:
		return m.Started.GetToolUseId() + " started"
	case *tooldv1.ExecuteResponse_ToolResult:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", m.ToolResult.GetToolUseId(), m.ToolResult.GetOutcome().String()[len("OUTCOME_"):], m.ToolResult.GetError().GetCode()))
	case *tooldv1.ExecuteResponse_TurnEnded:
		return fmt.Sprintf("turn %d ended %d/%d", e.GetTurn(), m.TurnEnded.GetCalls(), m.TurnEnded.GetBatches())
	case *tooldv1.ExecuteResponse_Notice:
		return "notice " + m.Notice.GetCode()
	case *tooldv1.ExecuteResponse_SessionChanged:
		if m.SessionChanged.GetClosed() {
			return "closed"
		}
	}
	return ""
}

// outcomes returns a few words for each result, by id.
func outcomes(results map[string]*tooldv1.ToolResult) map[string]string {
	told := map[string]string{}
	for id, result := range results {
		told[id] = strings.TrimSpace(result.GetOutcome().String()[len("OUTCOME_"):] + " " + result.GetError().GetCode())
	}
	return told
}

// want compares what is told with what should be.
func want[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// refused checks a status and the reason that it carries.
func refused(t testing.TB, err error, code codes.Code, reason string) {
	t.Helper()
	if got := status.Code(err); got != code || reasonOf(err) != reason {
		t.Errorf("status %s %s (%v), want %s %s", got, reasonOf(err), err, code, reason)
	}
}

// reasonOf returns the reason of the ErrorInfo in a status; empty: it has none of this daemon's.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "toold" {
			return info.GetReason()
		}
	}
	return ""
}

// drain receives to the end of a stream.
func drain(receive func() (*tooldv1.ExecuteResponse, error)) (events []*tooldv1.ExecuteResponse, err error) {
	for {
		event, err := receive()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}
