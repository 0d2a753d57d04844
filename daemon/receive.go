// What a client says on its stream, and what is done about it. Nothing here waits for capacity,
// since cancels and answers share the wire with tool uses.

package daemon

import (
	"context"
	"errors"
	"io"
	"runtime/trace"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
)

// receive passes on what the client says, until a half-close (nil) or the stream breaks.
func (st *stream) receive(g tooldv1.ToolService_ExecuteServer, first *tooldv1.ExecuteRequest) error {
	if first.GetAttach() == nil {
		if err := st.said(first); err != nil {
			return err
		}
	}
	for {
		message, err := g.Recv()
		if errors.Is(err, io.EOF) {
			st.halfClose()
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-st.over: // what a displaced stream still had on the wire
			return nil
		default:
		}
		if message.GetAttach() != nil {
			return apierror.Invalidf("attach_not_first", "attach", "Attach may only be the first message of a stream.")
		}
		if err := st.hear(g.Context(), message); err != nil {
			return err
		}
	}
}

// hear is said, which a trace shows as the phase in which a call is accepted.
func (st *stream) hear(ctx context.Context, message *tooldv1.ExecuteRequest) error {
	defer trace.StartRegion(ctx, "accept").End()
	return st.said(message)
}

// halfClose ends the open turn, and the stream's power to answer.
func (st *stream) halfClose() {
	s := st.session
	s.intake.alone(func(in inlet) {
		var leads bool
		var open *turn
		s.update(func(its *state) {
			leads = its.clients.main == st
			open = its.ledger.open
			st.halfClosed = true
			if leads {
				its.questions.canAsk = false
			}
			s.asker.reviewQuestions(its)
		})
		if leads {
			if m := in.model; m != nil && !m.over {
				_, _ = in.finish(m, nil) // what cannot be recorded is not accepted
			}
			in.endTurn(open)
		}
		s.requests.awaitReconnect(st) // it can send no results any more
		s.recorder.wakeStreams()
	})
}

// said does what one message says. Its error ends the stream.
func (st *stream) said(message *tooldv1.ExecuteRequest) error {
	s := st.session
	st.unheard.Store(false)
	switch m := message.GetMessage().(type) {
	case *tooldv1.ExecuteRequest_ToolUse, *tooldv1.ExecuteRequest_ModelEvent, *tooldv1.ExecuteRequest_EndTurn, *tooldv1.ExecuteRequest_DiscardTurn:
		return st.mainSaid(message)
	case *tooldv1.ExecuteRequest_Answer:
		if refused := st.answered(m.Answer); refused != nil {
			s.notify(nil, pipeline.Noticed{Code: refused.Reason, Message: refused.Message, Details: refusedAnswer{convert.Short(m.Answer.GetQuestionId())}})
		}
	case *tooldv1.ExecuteRequest_Cancel:
		st.present(func() { s.intake.cancel(m.Cancel) })
	case *tooldv1.ExecuteRequest_Interrupt:
		st.present(func() { s.intake.interrupt(m.Interrupt.GetReason()) })
	case *tooldv1.ExecuteRequest_Ack:
		st.acknowledge(m.Ack.GetSeq())
	case *tooldv1.ExecuteRequest_ClientToolResult:
		st.carriedOut(m.ClientToolResult)
	case *tooldv1.ExecuteRequest_ClientToolProgress:
		st.advanced(m.ClientToolProgress)
	case *tooldv1.ExecuteRequest_BufferEdited:
		_ = st.answer(editBuffer, m.BufferEdited) // a late answer has no effect
	case *tooldv1.ExecuteRequest_BuffersSaved:
		_ = st.answer(saveBuffers, m.BuffersSaved)
	case *tooldv1.ExecuteRequest_BufferChanged:
		st.buffered(func() { st.changed(m.BufferChanged) })
	case *tooldv1.ExecuteRequest_BufferClosed:
		st.buffered(func() { st.closed(m.BufferClosed) })
	case nil:
		s.noticef("unknown_message", "", "A message with nothing in it, or with something that this daemon does not know, changed nothing.")
	default:
		s.noticef("not_served", "", "%s is not served by this daemon yet; the message changed nothing.", oneofIn(message, "message"))
	}
	return nil
}

// buffered does what a message says of a buffer, if the stream has offered its client's buffers.
func (st *stream) buffered(do func()) {
	if !st.buffers {
		st.session.noticef("no_buffers", "", "This stream did not say that it offers buffers; the message changed nothing. Attach with capabilities.buffers.")
		return
	}
	st.present(do)
}

// present does what a message says, unless its client has hung up or was displaced meanwhile: what
// that still had on the wire must not meet the calls of the one that came after it.
func (st *stream) present(do func()) {
	s := st.session
	s.intake.alone(func(inlet) { // so that no client attaches meanwhile
		var there bool
		s.update(func(its *state) {
			_, there = its.clients.streams[st]
			there = there && (st.companion || its.clients.main == st)
		})
		if there {
			do()
		}
	})
}

// refusedAnswer is the structured part of a notice about an answer that does not count.
type refusedAnswer struct {
	QuestionID string `json:"question_id"`
}

// mainSaid does what only the main stream may say. What a displaced one still says is dropped.
func (st *stream) mainSaid(message *tooldv1.ExecuteRequest) (err error) {
	s := st.session
	s.intake.alone(func(in inlet) {
		var repeated []string
		if leads := view(s, func(its *state) bool { return its.clients.main == st && !its.stopping }); !leads {
			return
		}
		switch m := message.GetMessage().(type) {
		case *tooldv1.ExecuteRequest_ToolUse:
			err = st.use(in, m.ToolUse)
		case *tooldv1.ExecuteRequest_ModelEvent:
			repeated, err = in.event(m.ModelEvent)
		case *tooldv1.ExecuteRequest_EndTurn:
			repeated, err = in.close(m.EndTurn.GetTurnId())
		case *tooldv1.ExecuteRequest_DiscardTurn:
			in.drop(m.DiscardTurn.GetTurnId())
		}
		for _, key := range repeated {
			st.repeat(key)
		}
	})
	if st.companion {
		s.noticef("not_main", convert.Short(message.GetToolUse().GetId()), "A companion stream cannot send tool uses, nor end or discard turns; the message changed nothing.")
	}
	return err
}

// use takes a tool use into the turn that it belongs to.
func (st *stream) use(in inlet, wire *tooldv1.ToolUse) error {
	decoding := trace.StartRegion(context.Background(), "decode")
	var r request
	if wire.GetNativeJson() == "" {
		r = parseUse(wire)
	} else {
		r = fromItem(wire, in.s.meta.Roots[0])
	}
	decoding.End()
	key, repeated, err := in.accept(r, in.turnFor)
	if repeated {
		st.repeat(key)
	}
	return err
}

// turnFor returns the turn that a tool use with that turn_id belongs to; another one than the open
// turn's ends that turn.
func (in inlet) turnFor(id string) *turn {
	open := view(in.s, func(its *state) *turn { return its.ledger.open })
	if open != nil && (id == "" || open.id == id) {
		return open
	}
	in.endTurn(open)
	t := in.beginTurn(id)
	in.s.update(func(its *state) { its.ledger.open = t })
	return t
}

// namedTurn finds an open turn by the client's name, and notifies the client when it names none;
// empty: the one that takes tool uses, else the newest.
func (i *intake) namedTurn(id string) *turn {
	t := view(i.s, func(its *state) *turn { return its.ledger.turnNamed(id) })
	if t == nil && id != "" {
		i.s.noticef("unknown_turn", "", "No turn with the turn_id %q is open; the message changed nothing.", convert.Short(id))
	}
	return t
}

// cancelledBy is what calls end with that a client cancels.
func cancelledBy(reason string) *pipeline.Stop {
	return &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "a client cancelled it" + because(reason)}
}

// cancel stops one call or one turn. Clients are notified if there is none of that name.
func (i *intake) cancel(m *tooldv1.Cancel) {
	id, cause := m.GetToolUseId(), cancelledBy(m.GetReason())
	if id == "" {
		if t := i.namedTurn(m.GetTurnId()); t != nil {
			i.s.queue.StopTurn(t.number, cause, nil)
		}
		return
	}
	var key string
	var known bool
	i.s.update(func(its *state) {
		key, known = its.ledger.earlier(m.GetTurnId(), id), its.ledger.byID[id] != ""
		if t := its.ledger.turnNamed(m.GetTurnId()); key == "" && t != nil { // events of a call that is part of another have that one's turn
			key, _ = its.ledger.named(i.s.name, id, &t.number)
		}
	})
	switch {
	case key != "":
		i.cancelCall(key, cause)
	case known:
		i.s.noticef("other_turn", convert.Short(id), "The turn %q has no call %q; another turn has, and nothing was cancelled.", convert.Short(m.GetTurnId()), convert.Short(id))
	default:
		i.s.noticef("unknown_call", convert.Short(id), "This session has no call %q; nothing was cancelled.", convert.Short(id))
	}
}

// cancelCall stops the call with that key, and the background task that it has left.
func (i *intake) cancelCall(key string, cause *pipeline.Stop) {
	i.s.queue.Stop(key, cause)
	if task := i.s.tasks.taskOf(key); task != nil {
		task.Stop()
	}
}

// interrupt stops every open turn, but lets calls finish whose tool is not interruptible.
func (i *intake) interrupt(reason string) {
	i.s.queue.StopTurns(&pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the user interrupted" + because(reason)},
		func(t scheduler.Task) bool { return t.(*pipeline.Call).Interruptible() })
}

// discard throws a turn away: its ids are free again at once, also those of calls that have ended.
func (in inlet) discard(t *turn) {
	if t == nil {
		return
	}
	in.s.update(func(its *state) {
		var freed []journal.Put
		for key, row := range its.ledger.calls {
			if row.Turn == t.number && !row.Free {
				its.ledger.forget(key)
				freed = append(freed, putState(keyCall+key, row))
			}
		}
		its.ledger.findable()
		its.ledger.keep(freed...)
	})
	in.s.queue.StopTurn(t.number, &pipeline.Stop{Outcome: pipeline.Discarded, Reason: "its turn was discarded"}, nil)
	in.endTurn(t)
}

// maxReason is how many bytes of a client's reason stand in results.
const maxReason = 1 << 10

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + convert.Shortened(reason, maxReason)
}
