package toold

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Handlers are what a program does for its Agent. All are optional, and each call is on its own goroutine, but for Event.
type Handlers struct {
	// Event is called with each event, in their order; the Agent waits for it.
	Event func(*tooldv1.ExecuteResponse)
	// Question returns the answer to a question; id and digest are filled in. ctx is done when the answer does not matter any more.
	// nil, and an answer without a decision, are a no. Without the handler, calls that would have to ask are denied.
	Question func(ctx context.Context, question *tooldv1.Question) *tooldv1.Answer
	// Tools run the calls of the tools that Attach registers, by name. ctx is done when the call was cancelled.
	Tools map[string]func(ctx context.Context, inputJSON string) (text string, err error)
	// Edited is called with the new text of a buffer that a call has edited. Without it the Agent has no buffers.
	Edited func(path, text string)
	// Save writes the unsaved text of a buffer to its file, because a program of a call is about to read the disk. When it returns nil
	// the text is withdrawn, as by CloseBuffer. The call waits 2 s. Without Save nothing is saved, and the call's result says so.
	Save func(path, text string) error
	// Format is the form of what a model's API returns. It is found out, but for ANTHROPIC_NATIVE and AGENT_TOOLSET, where the model
	// has tools of its own.
	Format tooldv1.ModelFormat
}

// An Agent runs what a model asks for in a Session, whose events it receives. All methods are safe for concurrent use.
type Agent struct {
	*Session
	handlers Handlers
	unnamed  bool // it ends when it is closed
	work     sync.WaitGroup

	mu      sync.Mutex
	turns   map[string]*Turn           // those that have not ended
	asked   map[string]*tooldv1.Answer // by question; nil: not answered yet
	running map[call]*clientRun
	buffers map[string]*tooldv1.BufferChanged
}

// A clientRun is a call of one of the program's own tools, until the daemon has its result.
type clientRun struct {
	cancel context.CancelFunc
	result *tooldv1.ExecuteRequest // nil: it runs
}

// Join opens a Session as Open does, and returns an Agent for it. The caller closes it.
func Join(ctx context.Context, dial Dial, attach *tooldv1.Attach, handlers Handlers) (*Agent, error) {
	attach.Capabilities = &tooldv1.Capabilities{
		Answers: handlers.Question != nil, Buffers: handlers.Edited != nil, NativeResults: true, NoStructured: true,
	}
	unnamed := attach.GetSessionId() == ""
	session, err := Open(ctx, dial, attach)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		Session: session, handlers: handlers, unnamed: unnamed, turns: map[string]*Turn{}, asked: map[string]*tooldv1.Answer{},
		running: map[call]*clientRun{}, buffers: map[string]*tooldv1.BufferChanged{},
	}
	a.work.Go(a.receive)
	return a, nil
}

// Close closes the Session, and waits for the handlers, whose contexts are done. A session that Join has made without a name ends.
func (a *Agent) Close() {
	if conn := a.Conn(); a.unnamed && conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), breakPatience)
		defer cancel()
		_, _ = conn.Sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: a.ID()}) // it may be closed, or the daemon gone
	}
	a.Session.Close()
	a.work.Wait()
}

// Run runs the calls of a model's whole message, the JSON that its API has answered with, and returns the items to append. See Turn.End.
func (a *Agent) Run(ctx context.Context, message string) ([]json.RawMessage, error) {
	t := a.Turn()
	if err := t.Feed(message); err != nil {
		return nil, err
	}
	return t.End(ctx)
}

// Turn begins a turn that is fed with the events of a model's stream.
func (a *Agent) Turn() *Turn {
	return &Turn{ID: rand.Text(), agent: a, over: make(chan struct{})}
}

// begin sends the first message of a turn, whose events come from then on.
func (a *Agent) begin(t *Turn, first *tooldv1.ExecuteRequest) error {
	a.mu.Lock() // until it is sent: a stream that has ended before does not end the turn
	defer a.mu.Unlock()
	a.turns[t.ID] = t
	return a.Send(first)
}

// Start asks for one call, whose id is unique in the session or empty, as a turn of its own. See Turn.Result.
func (a *Agent) Start(use *tooldv1.ToolUse) (*Turn, error) {
	t := a.Turn()
	use.TurnId, use.Id = t.ID, cmp.Or(use.GetId(), t.ID)
	t.call = use.GetId()
	err := a.begin(t, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: use}})
	if err == nil {
		err = t.sendEnd()
	}
	return t, err
}

// Interrupt stops every open turn, but lets calls finish that cannot be interrupted. reason is for the model.
func (a *Agent) Interrupt(reason string) error {
	return a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{Reason: reason}}})
}

// Buffer offers the unsaved text of a file, in place of what is on the disk. It needs Handlers.Edited.
func (a *Agent) Buffer(path, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.setBuffer(path, text)
}

func (a *Agent) setBuffer(path, text string) error {
	buffer := &tooldv1.BufferChanged{Path: path, Version: a.buffers[path].GetVersion() + 1, Content: text}
	a.buffers[path] = buffer
	return a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: buffer}})
}

// CloseBuffer withdraws the text of a file.
func (a *Agent) CloseBuffer(path string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closeBuffer(path)
}

func (a *Agent) closeBuffer(path string) error {
	delete(a.buffers, path)
	return a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferClosed{BufferClosed: &tooldv1.BufferClosed{Path: path}}})
}

// receive takes the events of the session until it is closed.
func (a *Agent) receive() {
	for {
		select {
		case e := <-a.Events():
			if e.Err != nil {
				a.fail(e.Err)
				continue
			}
			a.take(e.ExecuteResponse)
		case <-a.ctx.Done():
			a.fail(status.Error(codes.Canceled, "the session was closed"))
			return
		}
	}
}

// fail ends all that waits for a stream that has ended: not what was sent since then.
func (a *Agent) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, t := range a.turns {
		if !a.sent.isWaitedFor(id) {
			delete(a.turns, id)
			t.finish(err)
		}
	}
	for key := range a.running {
		a.stop(key)
	}
}

// take passes an event on.
func (a *Agent) take(event *tooldv1.ExecuteResponse) {
	if a.handlers.Event != nil {
		a.handlers.Event(event)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Question:
		a.ask(e.Question)
	case *tooldv1.ExecuteResponse_ClientToolUse:
		a.run(call{event.GetTurnId(), e.ClientToolUse.GetToolUseId()}, e.ClientToolUse)
	case *tooldv1.ExecuteResponse_ClientToolCancel:
		a.stop(call{event.GetTurnId(), e.ClientToolCancel.GetToolUseId()})
	case *tooldv1.ExecuteResponse_ToolResult:
		a.stop(call{event.GetTurnId(), e.ToolResult.GetToolUseId()})
	case *tooldv1.ExecuteResponse_BufferEdit:
		a.edit(event.GetTurnId(), e.BufferEdit)
	case *tooldv1.ExecuteResponse_SaveBuffers:
		a.work.Go(func() {
			_ = a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BuffersSaved{BuffersSaved: &tooldv1.BuffersSaved{
				ToolUseId: e.SaveBuffers.GetToolUseId(), TurnId: event.GetTurnId(), Unsaved: a.save(e.SaveBuffers.GetPaths()),
			}}})
		})
	}
	id := event.GetTurnId()
	if notice := event.GetNotice(); notice != nil {
		id = cmp.Or(id, notice.GetDetails().GetFields()["turn_id"].GetStringValue())
	}
	if t := a.turns[id]; t != nil && t.take(event) {
		delete(a.turns, id)
	}
}

// ask has a question answered once, and answers it each time that the daemon asks, as it does again on a new stream.
func (a *Agent) ask(question *tooldv1.Question) {
	id := question.GetQuestionId()
	answer, known := a.asked[id]
	if a.handlers.Question == nil || known && answer == nil {
		return
	}
	a.asked[id] = answer
	a.work.Go(func() {
		if !known {
			if answer = a.handlers.Question(a.ctx, question); answer.GetDecision() == tooldv1.Decision_DECISION_UNSPECIFIED {
				answer = &tooldv1.Answer{Decision: tooldv1.Decision_DECISION_DENY, Message: "The client could not ask: it gave no answer."}
			}
			answer.QuestionId, answer.InputDigest = id, question.GetInputDigest()
			a.mu.Lock()
			a.asked[id] = answer
			a.mu.Unlock()
		}
		_ = a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: answer}})
	})
}

// run runs a call of the program's own tools, once, though the daemon may ask for it again on a new stream.
func (a *Agent) run(key call, use *tooldv1.ClientToolUse) {
	if run := a.running[key]; run != nil {
		if run.result != nil {
			a.work.Go(func() { _ = a.Send(run.result) })
		}
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	run := &clientRun{cancel: cancel}
	a.running[key] = run
	a.work.Go(func() {
		text, err := "", fmt.Errorf("this client has no tool %s", use.GetName())
		if tool := a.handlers.Tools[use.GetName()]; tool != nil {
			text, err = tool(ctx, use.GetInputJson())
		}
		if ctx.Err() != nil {
			return
		}
		result := &tooldv1.ClientToolResult{ToolUseId: key.id, TurnId: key.turn, IsError: err != nil}
		if err != nil {
			text = err.Error()
		}
		result.Content = []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: text}}}
		a.mu.Lock()
		run.result = &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ClientToolResult{ClientToolResult: result}}
		a.mu.Unlock()
		_ = a.Send(run.result)
	})
}

func (a *Agent) stop(key call) {
	if run := a.running[key]; run != nil {
		delete(a.running, key)
		run.cancel()
	}
}

// edit makes a call's edits in a buffer, and confirms them.
func (a *Agent) edit(turn string, edit *tooldv1.BufferEdit) {
	buffer, done := a.buffers[edit.GetPath()], &tooldv1.BufferEdited{ToolUseId: edit.GetToolUseId(), TurnId: turn}
	text, fits := []byte(buffer.GetContent()), true
	for _, e := range edit.GetEdits() {
		end := e.GetOffset() + e.GetLength()
		if fits = fits && e.GetOffset() <= end && end <= uint64(len(text)); fits {
			text = slices.Replace(text, int(e.GetOffset()), int(end), []byte(e.GetText())...)
		}
	}
	switch {
	case buffer.GetVersion() != edit.GetVersion():
		done.Error = "the text has changed meanwhile"
	case !fits:
		done.Error = "the edit reaches behind the end of the text"
	default:
		buffer = &tooldv1.BufferChanged{Path: edit.GetPath(), Version: buffer.GetVersion() + 1, Content: string(text)}
		a.buffers[edit.GetPath()], done.Version = buffer, buffer.GetVersion()
		a.sent.replaceBuffer(buffer)
		a.work.Go(func() { a.handlers.Edited(edit.GetPath(), string(text)) })
	}
	a.work.Go(func() {
		_ = a.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferEdited{BufferEdited: done}})
	})
}

// save has the program save buffers, withdraws those that it has saved, and returns the paths of the others.
func (a *Agent) save(paths []string) (unsaved []string) {
	for _, path := range paths {
		a.mu.Lock()
		buffer := a.buffers[path]
		a.mu.Unlock()
		if buffer == nil {
			continue
		}
		if a.handlers.Save == nil || a.handlers.Save(path, buffer.GetContent()) != nil {
			unsaved = append(unsaved, path)
			continue
		}
		a.mu.Lock()
		if a.buffers[path] == buffer { // not changed since
			_ = a.closeBuffer(path)
		}
		a.mu.Unlock()
	}
	return unsaved
}
