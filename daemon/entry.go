// Events as entries of the journal.

package daemon

import (
	"encoding/json"
	"fmt"

	"github.com/toold/toold/daemon/convert"
	"google.golang.org/protobuf/reflect/protoreflect"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// entry makes a journal entry of an event, of use or of the session itself when use is nil.
func entry(use *pipeline.Use, event pipeline.Event, state ...journal.Put) journal.Entry {
	return wireEntry(use, convert.Event(use, event), state...)
}

func wireEntry(use *pipeline.Use, wire *tooldv1.ExecuteResponse, state ...journal.Put) journal.Entry {
	body, err := proto.Marshal(wire)
	if err != nil {
		panic("BUG: an event that cannot be marshalled: " + err.Error())
	}
	e := journal.Entry{Kind: kinds[oneofIn(wire, "event")], Turn: wire.GetTurn(), Body: body, State: state, Terminal: terminal(wire)}
	if use != nil {
		e.Call = use.Key
	}
	return e
}

// terminal reports whether an event ends something: that is recorded also when the disk is full.
func terminal(wire *tooldv1.ExecuteResponse) bool {
	return wire.GetToolResult() != nil || wire.GetTurnEnded() != nil || wire.GetQuestionWithdrawn() != nil || wire.GetSessionChanged().GetClosed()
}

// putState makes a change of the session's state. A value is kept as JSON.
func putState(key string, value any) journal.Put {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG: state %s cannot be marshalled: %v", key, err))
	}
	return journal.Put{Key: key, Value: text}
}

// noticef notifies clients of something about the session, or about the call of that id when callID is not empty.
func (nt *notifier) noticef(code, callID, format string, args ...any) {
	nt.notify(nil, pipeline.Noticed{Code: code, CallID: callID, Message: fmt.Sprintf(format, args...)})
}

// notify records something that clients should know of a use, or of the session itself when use is nil. A full disk loses
// it, since nothing depends on it. It must not be called inside an update.
func (nt *notifier) notify(use *pipeline.Use, n pipeline.Noticed) {
	if n.Code == "hook_failed" {
		nt.s.daemon.Log.Warn("a hook failed", zap.String("session", nt.s.name), zap.String("what", n.Message))
	}
	nt.s.update(func(its *state) { its.ledger.append(entry(use, n)) })
}

// The kinds of records, as the journal keeps them. Their numbers are on disk and never change.
const (
	kindAccepted journal.Kind = iota + 1
	kindQuestion
	kindWithdrawn
	kindStarted
	kindResult
	kindTurnEnded
	kindNotice
	kindChanged
)

// kinds are those of the events that are recorded, by what the contract calls them.
var kinds = map[string]journal.Kind{
	"accepted": kindAccepted, "question": kindQuestion, "question_withdrawn": kindWithdrawn, "started": kindStarted,
	"tool_result": kindResult, "turn_ended": kindTurnEnded, "notice": kindNotice, "session_changed": kindChanged,
}

// oneofIn returns which field of the oneof of that name is set, as the contract calls it.
func oneofIn(message proto.Message, oneof protoreflect.Name) string {
	wire := message.ProtoReflect()
	return string(wire.WhichOneof(wire.Descriptor().Oneofs().ByName(oneof)).Name())
}
