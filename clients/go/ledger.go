package toold

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A ledger records what was sent and what the daemon has confirmed of it. The zero value is empty.
type ledger struct {
	mu    sync.Mutex
	last  uint64              // the newest record received, or older than all that are wanted
	tries int                 // of resuming since the last record
	kept  []message           // in the order sent: what the daemon may not have
	calls map[call]struct{}   // those that have no result
	turns map[string]struct{} // those that were not ended or discarded

	buffers   map[string]*tooldv1.ExecuteRequest // the newest text of each, by path, or that it was closed
	repeated  map[call]map[string]bool           // the calls that were sent again on this stream, and the kinds of records that have come
	texts     int                                // bytes of them
	forgotten bool                               // texts were dropped, since they were too many
}

// maxTexts is how many bytes of buffers are kept: as many as the daemon holds of a session, unless a setting says otherwise.
const maxTexts = 64 << 20

// A message is what was sent. id is that of a tool use.
type message struct {
	*tooldv1.ExecuteRequest
	id string
}

// A call is known by its turn and its id.
type call struct{ turn, id string }

// begin sets the record after which a session goes on that has just been attached for the first time.
func (l *ledger) begin(asked *tooldv1.Attach, attached *tooldv1.Attached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = attached.GetLastSeq()
	if asked.AfterSeq != nil {
		l.last = asked.GetAfterSeq()
	}
}

// add records a message that is about to be sent. It reports whether the message is kept until it is confirmed.
func (l *ledger) add(request *tooldv1.ExecuteRequest) (kept bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls, l.turns = map[call]struct{}{}, map[string]struct{}{}
	}
	var id string
	switch m := request.GetMessage().(type) {
	case *tooldv1.ExecuteRequest_ToolUse:
		if id = useID(m.ToolUse); id == "" { // it is refused, or another one each time
			return false
		}
		l.calls[call{m.ToolUse.GetTurnId(), id}] = struct{}{}
		l.turns[m.ToolUse.GetTurnId()] = struct{}{}
	case *tooldv1.ExecuteRequest_ModelEvent:
		l.turns[m.ModelEvent.GetTurnId()] = struct{}{}
	case *tooldv1.ExecuteRequest_ClientToolResult:
	case *tooldv1.ExecuteRequest_BufferChanged:
		l.setBuffer(m.BufferChanged.GetPath(), request)
		return true
	case *tooldv1.ExecuteRequest_BufferClosed:
		l.setBuffer(m.BufferClosed.GetPath(), request)
		return true
	case *tooldv1.ExecuteRequest_EndTurn:
		turn := m.EndTurn.GetTurnId()
		if !slices.ContainsFunc(l.kept, func(r message) bool {
			return r.GetModelEvent() != nil && r.GetModelEvent().GetTurnId() == turn
		}) {
			delete(l.turns, turn) // else its calls are known to the daemon alone
		}
	case *tooldv1.ExecuteRequest_DiscardTurn:
		delete(l.turns, m.DiscardTurn.GetTurnId())
	case *tooldv1.ExecuteRequest_Cancel:
		if id := m.Cancel.GetToolUseId(); id != "" && !l.isOpen(id) {
			return false
		}
	case *tooldv1.ExecuteRequest_Interrupt:
	default:
		return false
	}
	l.kept = append(l.kept, message{request, id})
	return true
}

// useID returns the id of a tool use, which a model's own item has in it.
func useID(use *tooldv1.ToolUse) string {
	if use.GetNativeJson() == "" {
		return use.GetId()
	}
	var item struct {
		ID     string `json:"id"`
		CallID string `json:"call_id"`
	}
	_ = json.Unmarshal([]byte(use.GetNativeJson()), &item) // one that cannot be read is refused
	return cmp.Or(item.CallID, item.ID)
}

// setBuffer keeps the newest text of a buffer, or that it was closed, in place of an older one. Of too many none is kept.
func (l *ledger) setBuffer(path string, text *tooldv1.ExecuteRequest) {
	l.texts += len(text.GetBufferChanged().GetContent()) - len(l.buffers[path].GetBufferChanged().GetContent())
	if l.buffers == nil {
		l.buffers = map[string]*tooldv1.ExecuteRequest{}
	}
	l.buffers[path] = text
	if l.texts > maxTexts {
		l.buffers, l.texts, l.forgotten = nil, 0, true
	}
}

// replaceBuffer keeps the text that an edit of the daemon's has made.
func (l *ledger) replaceBuffer(text *tooldv1.BufferChanged) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setBuffer(text.GetPath(), &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: text}})
}

// buffersForgotten reports whether texts of buffers were dropped since it was asked last.
func (l *ledger) buffersForgotten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.forgotten
	l.forgotten = false
	return was
}

// isWaitedFor reports whether a turn is open, or has a call that has no result.
func (l *ledger) isWaitedFor(turn string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, open := l.turns[turn]
	for c := range l.calls {
		open = open || c.turn == turn
	}
	return open
}

func (l *ledger) isOpen(id string) bool {
	for c := range l.calls {
		if c.id == id {
			return true
		}
	}
	return false
}

// drop forgets a message that could not be sent.
func (l *ledger) drop(request *tooldv1.ExecuteRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(kept message) bool { return kept.ExecuteRequest == request })
	if use := request.GetToolUse(); use != nil {
		delete(l.calls, call{use.GetTurnId(), useID(use)})
	}
}

// confirm takes note of an event: what it confirms is not sent again. It reports whether the event is new.
func (l *ledger) confirm(event *tooldv1.ExecuteResponse) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasCome(event) {
		return false
	}
	if event.GetSeq() > 0 { // a record, not what concerns the stream only
		l.tries = 0
	}
	l.last = max(l.last, event.GetSeq())
	if id := ended(event); id != "" {
		maps.DeleteFunc(l.calls, func(c call, _ struct{}) bool { return c.id == id && inTurn(event, c.turn) })
	}
	if l.isLost(event) {
		return true
	}
	if event.GetTurnEnded() != nil {
		delete(l.turns, event.GetTurnId())
	}
	l.kept = slices.DeleteFunc(l.kept, func(kept message) bool { return confirms(event, kept) })
	return true
}

// hasCome reports whether an event is about a call that was sent again, and has come before: the daemon may send its records once as
// those that the client has missed, and once for the call that it knows.
func (l *ledger) hasCome(event *tooldv1.ExecuteResponse) bool {
	if len(l.repeated) == 0 {
		return false
	}
	for kind, id := range map[string]string{
		"accepted": event.GetAccepted().GetToolUseId(), "started": event.GetStarted().GetToolUseId(), "result": event.GetToolResult().GetToolUseId(),
	} {
		if come := l.repeated[call{event.GetTurnId(), id}]; id != "" && come != nil {
			was := come[kind]
			come[kind] = true
			return was
		}
	}
	return false
}

// isLost reports whether an event ends the turn of a model's message that the daemon has lost: its events run in another turn of
// the name.
func (l *ledger) isLost(event *tooldv1.ExecuteResponse) bool {
	return event.GetTurnEnded().GetInterrupted() && slices.ContainsFunc(l.kept, func(kept message) bool {
		return kept.GetModelEvent() != nil && kept.GetModelEvent().GetTurnId() == event.GetTurnId()
	})
}

// ended returns the id of the tool use of which nothing more comes after an event: it has its result, or was refused and so did not
// become a call. Empty: there is none.
func ended(event *tooldv1.ExecuteResponse) string {
	if event.GetNotice().GetCode() == "duplicate_id" {
		return event.GetNotice().GetToolUseId()
	}
	return event.GetToolResult().GetToolUseId()
}

// inTurn reports whether an event is about the turn, as far as it names one: a notice does not.
func inTurn(event *tooldv1.ExecuteResponse, turn string) bool {
	return event.GetTurnId() == turn || event.GetNotice() != nil
}

// confirms reports whether an event shows that the daemon has a message and will not lose it.
func confirms(event *tooldv1.ExecuteResponse, request message) bool {
	turnEnds := func(turn string) bool {
		return event.GetTurnEnded() != nil && (turn == "" || event.GetTurnId() == turn)
	}
	switch m := request.GetMessage().(type) {
	case *tooldv1.ExecuteRequest_ToolUse:
		id, accepted := request.id, event.GetAccepted()
		isAccepted := accepted.GetToolUseId() == id && !accepted.GetReplayed() // a replay's result is older than what a new stream would begin with
		return inTurn(event, m.ToolUse.GetTurnId()) && (isAccepted || ended(event) == id)
	case *tooldv1.ExecuteRequest_Cancel:
		if id := m.Cancel.GetToolUseId(); id != "" {
			turn := m.Cancel.GetTurnId()
			return event.GetToolResult().GetToolUseId() == id && (turn == "" || event.GetTurnId() == turn)
		}
		return turnEnds(m.Cancel.GetTurnId())
	case *tooldv1.ExecuteRequest_EndTurn:
		return turnEnds(m.EndTurn.GetTurnId())
	case *tooldv1.ExecuteRequest_DiscardTurn:
		return turnEnds(m.DiscardTurn.GetTurnId())
	case *tooldv1.ExecuteRequest_Interrupt:
		return turnEnds("")
	case *tooldv1.ExecuteRequest_ModelEvent:
		return turnEnds(m.ModelEvent.GetTurnId())
	case *tooldv1.ExecuteRequest_ClientToolResult:
		return event.GetToolResult().GetToolUseId() == m.ClientToolResult.GetToolUseId()
	}
	return false
}

// unconfirmed returns what is to be sent again.
func (l *ledger) unconfirmed() []*tooldv1.ExecuteRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Collect(maps.Values(l.buffers))
	l.repeated = map[call]map[string]bool{}
	for _, kept := range l.kept {
		if use := kept.GetToolUse(); use != nil {
			l.repeated[call{use.GetTurnId(), kept.id}] = map[string]bool{}
		}
		list = append(list, kept.ExecuteRequest)
	}
	return list
}

// restart begins with the first record again, because they have other numbers now. It reports whether that changes anything.
func (l *ledger) restart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.last
	l.last = 0
	return was > 0
}

func (l *ledger) lastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// resumable reports whether calls are under way, or a turn is open, for which a lost stream is resumed once more.
func (l *ledger) resumable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	return l.tries <= resumeTries && len(l.calls)+len(l.turns) > 0
}

// forget drops what was sent: nothing of it will be waited for.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.calls, l.turns, l.tries = nil, nil, nil, 0
}
