// Package turn runs a model's message as one turn. It reads tool uses as they come (feed.go), sends them, draws the live
// view, asks the user and passes an interrupt on. It returns the results in the form that a model API takes (reply.go).
// On a terminal it runs in the session of the directory and that terminal (place.go). It does not know how the daemon is
// found, nor which command it runs for.
package turn

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// AnswerRefusals are the codes of notices after which an answered question is still open.
var AnswerRefusals = []string{"digest_mismatch", "invalid_decision", "invalid_rule", "not_trusted", "too_large"}

// ErrBroken means that the user interrupted a second time and does not wait for results.
var ErrBroken = &cli.Error{Code: cli.ExitSignal, Text: "left at once"}

// A Turn is one turn of a session. The caller sets its fields, calls Run, and reads what it has filled in.
type Turn struct {
	Console  *cli.Console
	Dial     toold.Dial
	Attach   *tooldv1.Attach
	State    *terminal.TurnState
	First    Arrival           // the beginning of the message, or all of it
	Feed     <-chan Arrival    // brings the rest
	Soft     bool              // an interrupt lets calls finish whose tool is not interruptible
	Renderer terminal.Renderer // draws on a live terminal only
	Prompter *terminal.Prompter
	// Seen is called with each event, and its error ends the turn; nil: it is not called.
	Seen func(*tooldv1.ExecuteResponse) error

	Session     *toold.Session // filled in by Run, as all that follows; nil: not attached
	Uses        []Use
	Warnings    []*tooldv1.Warning
	End         *MessageEnd // how the message ended; nil: it has not
	interrupted bool
	overdue     <-chan time.Time // when what was stopped is not waited for any longer
	Left        bool             // calls were left behind that had not ended
	closed      bool             // the client's side of the stream
}

// Run sends the turn and returns when each of its calls has its result. The session stays attached until Close.
func (t *Turn) Run(ctx context.Context) error {
	var err error
	if t.Session, err = toold.Open(ctx, t.Dial, t.Attach); err != nil {
		return err
	}
	signals := make(chan os.Signal, 2) // two: the second interrupt must not be lost behind the first
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := t.fed(t.First); err != nil {
		return err
	}
	return t.converse(ctx, signals)
}

// Close ends the stream and the connection.
func (t *Turn) Close() {
	if t.Session != nil {
		t.Session.Close()
	}
}

// sendEnd ends the turn when no more tool uses come. One whose message the model's API took back is discarded.
func (t *Turn) sendEnd() error {
	switch {
	case t.Feed != nil:
		return nil
	case t.End.Failure() != nil:
		return t.Session.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: t.State.TurnID}}})
	default:
		return t.Session.Send(EndRequest(t.State.TurnID))
	}
}

// fed takes what has come of the message meanwhile.
func (t *Turn) fed(a Arrival) error {
	t.Uses = append(t.Uses, a.Uses...)
	for _, u := range a.Uses {
		t.State.Add(u.ID, u.Name, u.Input)
		if err := t.Session.Send(u.Request(t.State.TurnID)); err != nil {
			return err
		}
	}
	if a.End == nil {
		return nil
	}
	t.End, t.Feed = a.End, nil
	return t.sendEnd()
}

// converse is the client's one loop: everything that happens in a turn happens here.
func (t *Turn) converse(ctx context.Context, signals <-chan os.Signal) error {
	var redraw <-chan time.Time
	if t.Renderer.Page.Live() {
		ticker := time.NewTicker(terminal.DrawEvery)
		defer ticker.Stop()
		redraw = ticker.C
	}
	defer t.Prompter.Forget()
	for {
		var err error
		select {
		case e := <-t.Session.Events():
			if e.Err != nil {
				return t.over(e.Err)
			}
			err = t.take(ctx, e.ExecuteResponse)
		case a := <-t.Feed:
			err = t.fed(a)
		case answer := <-t.Prompter.Answers():
			err = t.Session.Send(AnswerRequest(answer))
			t.Prompter.Answered(ctx)
		case <-signals:
			err = t.breakIn()
		case <-t.overdue:
			return t.leaveBehind(ctx)
		case <-redraw:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		t.draw()
		if err == nil {
			err = t.hangUp()
		}
		if err != nil {
			return err
		}
	}
}

// breakIn stops the turn at the first interrupt; the second ends the client.
func (t *Turn) breakIn() error {
	if t.interrupted {
		return ErrBroken
	}
	t.interrupted, t.Feed = true, nil
	t.Renderer.Release()
	t.Console.Say("Stopping. Press Ctrl-C again to quit now.")
	return t.stop()
}

// StopReason is the reason for the model that an interrupt carries.
const StopReason = "the user pressed Ctrl-C"

// stop ends the turn early. The calls are cancelled one by one, since others may share the session, and the last first,
// so that none begins because one before it has ended.
func (t *Turn) stop() error {
	if t.Soft {
		interrupt := &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{Reason: StopReason}}
		return errors.Join(t.Session.Send(&tooldv1.ExecuteRequest{Message: interrupt}), t.sendEnd())
	}
	if t.overdue == nil {
		t.overdue = time.After(stopPatience)
	}
	for _, call := range slices.Backward(t.State.Calls) {
		if call.Over() {
			continue
		}
		if err := t.Session.Send(CancelRequest(t.State.TurnID, call.ID, StopReason)); err != nil {
			return err
		}
	}
	return t.sendEnd()
}

// hangUp closes the client's side when nothing is left to send. Until then answers and interrupts may be needed.
func (t *Turn) hangUp() error {
	if t.closed || t.Feed != nil || !t.State.Settled() {
		return nil
	}
	t.closed = true
	return t.Session.CloseSend()
}

func (t *Turn) take(ctx context.Context, event *tooldv1.ExecuteResponse) error {
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		t.Warnings = Warnings(e.Attached.GetWarnings(), e.Attached.GetWarningDetails())
	case *tooldv1.ExecuteResponse_Question:
		t.makeRoom()
	case *tooldv1.ExecuteResponse_Notice:
		if slices.Contains(AnswerRefusals, e.Notice.GetCode()) && t.Prompter.Refused(ctx, e.Notice.GetMessage()) {
			return nil // it has been told
		}
	}
	t.Prompter.Take(ctx, event)
	t.State.Apply(event, time.Now())
	if t.Seen == nil {
		return nil
	}
	return t.Seen(event)
}

// over judges the end of a stream.
func (t *Turn) over(err error) error {
	switch {
	case status.Code(err) == codes.Unavailable && t.State.Settled(): // only the turn's end was not reported
		return nil
	case !errors.Is(err, io.EOF):
		return err
	case !t.State.Settled():
		return errors.New("the daemon ended the stream before every call had its result: \"toold attach\" watches the session, \"toold log\" shows its records")
	}
	return nil
}

// AnswerRequest returns an answer as a message of the stream.
func AnswerRequest(answer *tooldv1.Answer) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: answer}}
}

// EndRequest returns the end of a turn as a message of the stream.
func EndRequest(turnID string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: turnID}}}
}

// CancelRequest returns what stops a call as a message of the stream.
func CancelRequest(turnID, id, reason string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{TurnId: turnID, ToolUseId: id, Reason: reason}}}
}

// leastHeight is the height in rows from which a question leaves room for the live view. Ours.
const leastHeight = 16

// makeRoom keeps up to a third of the terminal for the live view while a question stands.
func (t *Turn) makeRoom() {
	t.Prompter.Top = 0
	if _, height := t.Renderer.Page.Size(); t.Renderer.Page.Live() && height >= leastHeight {
		t.Prompter.Top = min(len(t.State.Calls), height/3)
	}
}

// draw shows the board; while a question stands on the terminal, at its top.
func (t *Turn) draw() {
	switch {
	case !t.Renderer.Page.Live():
	case t.Prompter.Busy():
		t.Renderer.Release()
		width, _ := t.Renderer.Page.Size()
		t.Prompter.Draw(terminal.TurnLines(t.State, t.Renderer.Page.Ink, width-1, t.Prompter.Top, time.Now()))
	default:
		t.Renderer.Draw(t.State, time.Now())
	}
}

// Warnings returns the warnings of a message. An older daemon sends only their texts.
func Warnings(texts []string, details []*tooldv1.Warning) []*tooldv1.Warning {
	if len(details) == len(texts) {
		return details
	}
	list := make([]*tooldv1.Warning, len(texts))
	for i, text := range texts {
		list[i] = &tooldv1.Warning{Text: text}
	}
	return list
}

// Input returns the input of the tool use with an id, and whether there is one.
func (t *Turn) Input(id string) (string, bool) {
	if i := slices.IndexFunc(t.Uses, func(u Use) bool { return u.ID == id }); i >= 0 {
		return t.Uses[i].Input, true
	}
	return "", false
}

// ClosePatience is how long the client waits for the end of what its session still runs. Ours.
const ClosePatience = 5 * time.Second

// CloseSession ends a session that was made for one client, and what still runs of it. Its records are kept.
func CloseSession(console *cli.Console, session *toold.Session) {
	if session == nil || session.Conn() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ClosePatience) // also after an interrupt
	defer cancel()
	if _, err := session.Conn().Sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: session.ID()}); err != nil {
		console.Noted("session %s was not closed: %s", session.ID(), cli.Describe(err))
	}
}
