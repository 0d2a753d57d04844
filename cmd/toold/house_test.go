package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/turn"

	toold "github.com/toold/toold/clients/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	// A real daemon over real folders, and clients that talk to it as any client would.

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A house is a daemon with a home, and with an administrator's and a user's settings of its own.
type house struct {
	environ []string
	dir     string // everything is below it
	link    *toold.Conn
}

// newHouse starts a daemon and ends it with the test. files are written before it starts, by their names below the
// house's folder: managed/settings.json is the administrator's, config/toold/settings.json the user's.
func newHouse(t *testing.T, files map[string]string) *house {
	t.Helper()
	environ, ws := home(t)
	h := &house{dir: filepath.Dir(ws)}
	h.environ = append(environ, "HOME="+filepath.Join(h.dir, "home"), "CLAUDE_CONFIG_DIR=")
	for name, content := range files {
		put(t, filepath.Join(h.dir, name), content)
	}
	h.start(t, ws)
	return h
}

// start runs the daemon, and returns when it listens and the house is connected to it.
func (h *house) start(t *testing.T, root string) {
	t.Helper()
	h.begin(t, self(t, context.Background(), h.environ, h.dir, "serve", "--managed-settings", "managed", "--root", root))
}

// begin does so with a command of its own.
func (h *house) begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(h.logFile())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGINT) // no drain
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v; its log:\n%s", err, content(t, h.logFile()))
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("the daemon says %q (%v); its log:\n%s", line, err, content(t, h.logFile()))
	}
	if h.link, err = connect.Dial(filepath.Join(h.dir, "run", "toold", "toold.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.link.Close)
}

func (h *house) logFile() string { return filepath.Join(h.dir, "daemon.log") }

// user is the user's settings file.
func (h *house) user() string { return filepath.Join(h.dir, "config", "toold", "settings.json") }

// room makes a workspace of that name, with files in it.
func (h *house) room(t *testing.T, name string, files map[string]string) (root string) {
	t.Helper()
	root = filepath.Join(h.dir, "rooms", name)
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		put(t, filepath.Join(root, name), content)
	}
	return root
}

// trust runs the command of that name.
func (h *house) trust(t *testing.T, root string) {
	t.Helper()
	if out, err := self(t, t.Context(), h.environ, root, "trust").CombinedOutput(); err != nil {
		t.Fatalf("toold trust: %v\n%s", err, out)
	}
}

// put writes a file, and the folders that it needs, in one step: who reads it finds it whole.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// content is a file's; empty if there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// A talk is one stream from the client's side: Execute, or Watch if it was made by watch.
type talk struct {
	t        *testing.T
	house    *house
	stream   grpc.BidiStreamingClient[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]
	receive  func() (*tooldv1.ExecuteResponse, error)
	attached *tooldv1.Attached
	heard    []*tooldv1.ExecuteResponse
}

// trusted are the options of a session that trusts its workspace.
func trusted() *tooldv1.Options { return &tooldv1.Options{Trusted: proto.Bool(true)} }

// in is what a client attaches with that answers questions, in a new session over root.
func in(root string, options *tooldv1.Options) *tooldv1.Attach {
	return &tooldv1.Attach{Roots: []string{root}, Options: options, Capabilities: &tooldv1.Capabilities{Answers: true}}
}

// attach opens a stream. The session of an Attach without a name is named after the folder that it works in.
func (h *house) attach(t *testing.T, a *tooldv1.Attach) *talk {
	t.Helper()
	c := h.open(t)
	if a.SessionId == "" && len(a.GetRoots()) > 0 {
		a.SessionId = filepath.Base(a.GetRoots()[0])
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}})
	c.attached = c.until("attached").GetAttached()
	return c
}

func (h *house) open(t *testing.T) *talk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	t.Cleanup(cancel)
	stream, err := h.link.Tools.Execute(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, house: h, stream: stream, receive: stream.Recv}
}

// refused attaches in vain, and returns the status with the code of its reason.
func (h *house) refused(t *testing.T, a *tooldv1.Attach) string {
	t.Helper()
	c := h.open(t)
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}})
	event, err := c.receive()
	if err == nil {
		t.Fatalf("it was attached: %v", event)
	}
	return refusal(err)
}

// refusal returns a status in a few words.
func refusal(err error) string {
	if err == nil {
		return "OK"
	}
	s := status.Convert(err)
	return fmt.Sprintf("%s %s: %s", s.Code(), toold.Reason(err), s.Message())
}

// watch follows a session from beside, as a client that answers, from its first record.
func (h *house) watch(t *testing.T, session string) *talk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	t.Cleanup(cancel)
	stream, err := h.link.Sessions.Watch(ctx, &tooldv1.WatchRequest{SessionId: session, AfterSeq: proto.Uint64(0), Answers: true})
	if err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, house: h, receive: func() (*tooldv1.ExecuteResponse, error) {
		response, err := stream.Recv()
		return response.GetEvent(), err
	}}
}

func (c *talk) say(m *tooldv1.ExecuteRequest) {
	c.t.Helper()
	if err := c.stream.Send(m); err != nil && !errors.Is(err, io.EOF) { // then receiving has the reason
		c.t.Fatalf("send: %v, after %q", err, story(c.heard))
	}
}

// use asks for one call.
func (c *talk) use(id, name, input string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
		Id: id, Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input},
	}}})
}

// bash asks for one command.
func (c *talk) bash(id, command string) {
	c.t.Helper()
	c.use(id, "Bash", fmt.Sprintf(`{"command":%q}`, command))
}

func (c *talk) endTurn() {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
}

const (
	yes = tooldv1.Decision_DECISION_ALLOW
	no  = tooldv1.Decision_DECISION_DENY
)

// answer makes an answer to a question.
func answer(q *tooldv1.Question, decision tooldv1.Decision, remember ...*tooldv1.Remember) *tooldv1.Answer {
	return &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: decision, Remember: remember}
}

func (c *talk) answer(a *tooldv1.Answer) {
	c.t.Helper()
	c.say(turn.AnswerRequest(a))
}

// until receives up to the first event whose story begins so, and keeps all that it heard.
func (c *talk) until(told string) *tooldv1.ExecuteResponse {
	c.t.Helper()
	for {
		event, err := c.receive()
		if err != nil {
			c.t.Fatalf("receive: %v, waiting for %q after %q; the daemon's log:\n%s", err, told, story(c.heard), content(c.t, c.house.logFile()))
		}
		c.heard = append(c.heard, event)
		if strings.HasPrefix(tell(event), told) {
			return event
		}
	}
}

// question waits for the call's question.
func (c *talk) question(id string) *tooldv1.Question {
	c.t.Helper()
	return c.until(id + " asks").GetQuestion()
}

// run runs one command in a turn of its own and returns its result. A question is answered with yes.
func (c *talk) run(id, command string) *tooldv1.ToolResult {
	c.t.Helper()
	c.bash(id, command)
	return c.finish(id, yes)
}

// finish ends the turn, and returns the result of a call when the turn is over. Questions are answered so, but those about
// hosts with no: no test reaches for the world.
func (c *talk) finish(id string, decision tooldv1.Decision) (result *tooldv1.ToolResult) {
	c.t.Helper()
	c.endTurn()
	for {
		event := c.until("")
		if q := event.GetQuestion(); q.GetConnection() != nil {
			c.answer(answer(q, no))
		} else if q != nil {
			c.answer(answer(q, decision))
		}
		if r := event.GetToolResult(); r.GetToolUseId() == id {
			result = r
		}
		if event.GetTurnEnded() != nil {
			return result
		}
	}
}

// notices returns what was noticed with a code, as text.
func (c *talk) notices(code string) (texts []string) {
	for _, event := range c.heard {
		if n := event.GetNotice(); n.GetCode() == code {
			texts = append(texts, n.GetMessage())
		}
	}
	return texts
}

// outcome returns a result in a few words.
func outcome(r *tooldv1.ToolResult) string {
	return strings.TrimSpace(strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_") + " " + r.GetError().GetCode())
}

// textIn is what a model reads of a result.
func textIn(r *tooldv1.ToolResult) string {
	var texts []string
	for _, block := range r.GetContent() {
		texts = append(texts, block.GetText())
	}
	return strings.Join(texts, "\n")
}

// story returns a few words for each event, without what is not about calls and turns, and without the waits that the machine
// makes necessary.
func story(events []*tooldv1.ExecuteResponse) (told []string) {
	for _, e := range events {
		if words := tell(e); words != "" && words != "notice host_wait" {
			told = append(told, words)
		}
	}
	return told
}

// tell returns one event as stories write it; empty: it is one of those that they leave out.
func tell(e *tooldv1.ExecuteResponse) string {
	switch m := e.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		return "attached"
	case *tooldv1.ExecuteResponse_Accepted:
		return m.Accepted.GetToolUseId() + " accepted"
	case *tooldv1.ExecuteResponse_Question:
		return m.Question.GetToolUseId() + " asks"
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		return m.QuestionWithdrawn.GetToolUseId() + " withdrawn: " + m.QuestionWithdrawn.GetReason()
	case *tooldv1.ExecuteResponse_Started:
		return m.Started.GetToolUseId() + " started"
	case *tooldv1.ExecuteResponse_ToolResult:
		return m.ToolResult.GetToolUseId() + " " + outcome(m.ToolResult)
	case *tooldv1.ExecuteResponse_TurnEnded:
		return "turn ended"
	case *tooldv1.ExecuteResponse_Notice:
		return "notice " + m.Notice.GetCode()
	case *tooldv1.ExecuteResponse_SessionChanged:
		if m.SessionChanged.GetClosed() {
			return "closed"
		}
	}
	return ""
}

// same checks that two lists are the same.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// holds checks that a text has each of some parts in it.
func holds(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q in it:\n%s", what, part, text)
		}
	}
}
