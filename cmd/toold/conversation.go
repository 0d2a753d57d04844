// One turn on one Execute stream, from the client's side: tool uses go out, events come in, questions are put to the
// person, an interrupt is passed on. This file does not know where the tool uses came from, nor how results are shown.

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// answerRefusals are the codes of notices after which an answered question is still open.
var answerRefusals = []string{"digest_mismatch", "invalid_decision", "invalid_rule", "not_trusted", "too_large"}

// errBroken says that the user wanted out at once.
var errBroken = &ending{code: exitSignal, text: "left at once"}

// A conversation is one turn. Its fields are set before run and read after it.
type conversation struct {
	link     *link
	attach   *tooldv1.Attach
	turn     *terminal.TurnState
	uses     []use
	feed     <-chan arrival     // brings more tool uses; nil: no more come
	soft     bool               // an interrupt lets calls finish whose tool is not interruptible
	renderer *terminal.Renderer // nil: nothing is drawn
	prompter *terminal.Prompter // nil: nobody can be asked
	// notify tells the user something; nil: nobody is told.
	notify func(string)
	// seen is called with each event, and its error ends the conversation; nil: nobody wants it.
	seen func(*tooldv1.ExecuteResponse) error

	session     string // filled in by run, as all that follows
	warnings    []*tooldv1.Warning
	last        uint64      // the newest record seen
	end         *messageEnd // how the message ended; nil: it has not, or was whole from the beginning
	interrupted bool
	overdue     <-chan time.Time // when what was stopped is not waited for any longer
	left        bool             // calls were left behind that had not ended
	closed      bool             // the client's side of the stream
}

// A received is an event or the stream's end.
type received struct {
	event *tooldv1.ExecuteResponse
	err   error
}

type executeStream = tooldv1.ToolService_ExecuteClient

// run sends the turn and returns when each of its calls has its result.
func (c *conversation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2) // two: the second interrupt must not be lost behind the first
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	stream, err := c.link.tools.Execute(ctx)
	if err != nil {
		return err
	}
	events := make(chan received)
	done := make(chan struct{})
	go func() {
		defer close(done)
		receive(ctx, stream.Recv, events)
	}()
	defer func() { cancel(); <-done }()
	if err := c.send(stream); err != nil {
		return err
	}
	return c.converse(ctx, stream, events, signals)
}

// receive passes on what next gives, until it gives an error or ctx ends.
func receive(ctx context.Context, next func() (*tooldv1.ExecuteResponse, error), events chan<- received) {
	for {
		event, err := next()
		select {
		case events <- received{event, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// send returns the daemon what there is of the turn and was not accepted on an earlier stream.
func (c *conversation) send(stream executeStream) error {
	if err := say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: c.attach}}); err != nil {
		return err
	}
	if err := c.sendUses(stream, c.uses); err != nil {
		return err
	}
	if c.interrupted {
		return c.stop(stream)
	}
	return c.sendEnd(stream)
}

func (c *conversation) sendUses(stream executeStream, uses []use) error {
	for _, u := range uses {
		if c.turn.ByID[u.id].State != terminal.Sent {
			continue
		}
		if err := say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: u.wire(c.turn.TurnID)}}); err != nil {
			return err
		}
	}
	return nil
}

// sendEnd ends the turn when no more tool uses come. One whose message the model's API took back is discarded.
func (c *conversation) sendEnd(stream executeStream) error {
	switch {
	case c.feed != nil:
		return nil
	case c.end.failure() != nil:
		return say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: c.turn.TurnID}}})
	}
	return say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: c.turn.TurnID}}})
}

// fed takes what has come of the message meanwhile.
func (c *conversation) fed(stream executeStream, a arrival) error {
	c.uses = append(c.uses, a.uses...)
	for _, u := range a.uses {
		c.turn.Add(u.id, u.name, u.input)
	}
	if err := c.sendUses(stream, a.uses); err != nil || a.end == nil {
		return err
	}
	c.end, c.feed = a.end, nil
	return c.sendEnd(stream)
}

// converse is the client's one loop: everything that happens in a turn happens here.
func (c *conversation) converse(ctx context.Context, stream executeStream, events <-chan received, signals <-chan os.Signal) error {
	redraw, stopRedraw := c.ticks()
	defer stopRedraw()
	defer c.prompter.Forget()
	for {
		var err error
		select {
		case r := <-events:
			if r.err != nil {
				return c.over(r.err)
			}
			err = c.take(ctx, r.event)
		case a := <-c.feed:
			err = c.fed(stream, a)
		case answer := <-c.prompter.Answers():
			err = say(stream, answerRequest(answer))
			c.prompter.Answered(ctx)
		case <-signals:
			err = c.breakIn(stream)
		case <-c.overdue:
			return c.leaveBehind(ctx)
		case <-redraw:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c.draw()
		if err == nil {
			err = c.hangUp(stream)
		}
		if err != nil {
			return err
		}
	}
}

// breakIn stops the turn at the first interrupt; the second ends the client.
func (c *conversation) breakIn(stream executeStream) error {
	if c.interrupted {
		return errBroken
	}
	c.interrupted, c.feed = true, nil
	if c.renderer != nil {
		c.renderer.Release()
	}
	if c.notify != nil {
		c.notify("Stopping. Press Ctrl-C again to quit now.")
	}
	return c.stop(stream)
}

// stopReason is what the model reads of an interrupt.
const stopReason = "the user pressed Ctrl-C"

// stop ends the turn early. The calls are cancelled one by one, since others may share the session, and the last first,
// so that none begins because one before it has ended.
func (c *conversation) stop(stream executeStream) error {
	if c.soft {
		return errors.Join(say(stream, interruptRequest()), c.sendEnd(stream))
	}
	if c.overdue == nil {
		c.overdue = time.After(stopPatience)
	}
	for _, call := range slices.Backward(c.turn.Calls) {
		if call.State == terminal.Ended || call.State == terminal.Refused {
			continue
		}
		cancel := &tooldv1.Cancel{ToolUseId: call.ID, Reason: stopReason}
		if err := say(stream, &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: cancel}}); err != nil {
			return err
		}
	}
	return c.sendEnd(stream)
}

// hangUp closes the client's side when nothing is left to say. Until then answers and interrupts may be needed.
func (c *conversation) hangUp(stream executeStream) error {
	if c.closed || c.feed != nil || !c.turn.Settled() {
		return nil
	}
	c.closed = true
	return stream.CloseSend()
}

func (c *conversation) take(ctx context.Context, event *tooldv1.ExecuteResponse) error {
	c.last = max(c.last, event.GetSeq())
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		c.session, c.warnings = e.Attached.GetSessionId(), warningsIn(e.Attached.GetWarnings(), e.Attached.GetWarningDetails())
		c.last = max(c.last, c.attach.GetAfterSeq())
	case *tooldv1.ExecuteResponse_Question:
		c.makeRoom()
		c.prompter.Ask(ctx, e.Question)
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		c.prompter.Withdraw(ctx, e.QuestionWithdrawn.GetQuestionId(), e.QuestionWithdrawn.GetReason())
	case *tooldv1.ExecuteResponse_ToolResult:
		c.prompter.WithdrawCall(ctx, e.ToolResult.GetToolUseId())
	case *tooldv1.ExecuteResponse_Notice:
		if slices.Contains(answerRefusals, e.Notice.GetCode()) && c.prompter.Refused(ctx, e.Notice.GetMessage()) {
			return nil // it has been told
		}
	}
	c.turn.Apply(event, time.Now())
	if c.seen == nil {
		return nil
	}
	return c.seen(event)
}

// over judges the end of a stream.
func (c *conversation) over(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if !c.turn.Settled() {
		return errors.New("the daemon ended the stream before every call had its result: \"toold attach\" watches the session, \"toold log\" shows its records")
	}
	return nil
}

// say sends one message. When the stream has ended meanwhile, its reason is what Recv tells.
func say(stream executeStream, request *tooldv1.ExecuteRequest) error {
	if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func answerRequest(answer *tooldv1.Answer) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: answer}}
}

func interruptRequest() *tooldv1.ExecuteRequest {
	interrupt := &tooldv1.Interrupt{Reason: stopReason}
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: interrupt}}
}

// ticks returns the beat of the live view; none when nothing is drawn.
func (c *conversation) ticks() (<-chan time.Time, func()) {
	if c.renderer == nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(terminal.DrawEvery)
	return ticker.C, ticker.Stop
}

// leastHeight is the height in rows from which a question leaves room for the live view. Ours.
const leastHeight = 16

// makeRoom keeps up to a third of the terminal for the live view while a question stands.
func (c *conversation) makeRoom() {
	if c.renderer == nil || c.prompter == nil {
		return
	}
	c.prompter.Top = 0
	if _, height := c.renderer.Page.Size(); height >= leastHeight {
		c.prompter.Top = min(len(c.turn.Calls), height/3)
	}
}

// draw shows the board; while a question stands on the terminal, at its top.
func (c *conversation) draw() {
	if c.renderer == nil {
		return
	}
	if c.prompter.Busy() {
		c.renderer.Release()
		width, _ := c.renderer.Page.Size()
		c.prompter.Draw(terminal.TurnLines(c.turn, c.renderer.Page.Ink, width-1, c.prompter.Top, time.Now()))
		return
	}
	c.renderer.Draw(c.turn, time.Now())
}
