package daemon

// A tool use on its way in: looked up, parsed, numbered, recorded, handed to the queue. Nothing here waits for
// capacity, since cancels and answers share the wire.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

const (
	maxID       = 256      // bytes of a client's id; ids are kept for every call
	maxInput    = 10 << 20 // bytes of one input
	maxOpenSize = 64 << 20 // bytes of input in a session's open calls
)

// request is a tool use, parsed as far as that goes without the session's state.
type request struct {
	use    pipeline.Use
	hash   string
	parent string
	wrong  error // why it can only be refused; nil: it may become a call
}

// parse looks at a tool use without the session. The tool is looked up later, in the pool as it is then.
func parseUse(wire *tooldv1.ToolUse) request {
	r := request{
		use:    pipeline.Use{ID: wire.GetId(), Name: wire.GetName(), TurnID: wire.GetTurnId()},
		parent: wire.GetParentToolUseId(),
	}
	if r.use.ID == "" {
		r.use.ID = newID("call-")
	}
	input, err := inputOf(wire.GetInput(), wire.GetInputJson())
	if err != nil {
		r.wrong = fault.Invalidf("invalid_input", "The input is not a JSON object: %v.", err)
	}
	r.use.Input = bytes.TrimSpace(input)
	if len(r.use.Input) == 0 {
		r.use.Input = json.RawMessage("{}")
	}
	if len(r.use.Input) > maxInput {
		r.wrong = fault.Invalidf("too_large", "The input has %d bytes, but at most %d are taken. Write large content to a file in parts.", len(r.use.Input), maxInput)
		r.use.Input = r.use.Input[:0]
	}
	if wire.GetTimeout() != nil {
		if err := wire.GetTimeout().CheckValid(); err != nil || wire.GetTimeout().AsDuration() <= 0 {
			r.wrong = fault.Invalidf("invalid_input", "The timeout of the tool use is not a positive duration.").At("/timeout")
		}
		r.use.Limit = wire.GetTimeout().AsDuration()
	}
	r.hash = hashOf(r.use.Name, r.use.Input)
	return r
}

// hashOf identifies the content of a tool use: its name and its input as canonical JSON.
func hashOf(name string, input json.RawMessage) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	canonical := []byte(input)
	if decoder.Decode(&value) == nil {
		if text, err := json.Marshal(value); err == nil {
			canonical = text
		}
	}
	sum := sha256.Sum256(slices.Concat([]byte(name), []byte{0}, canonical))
	return hex.EncodeToString(sum[:16])
}

// accept takes a tool use into the turn that choose gives, and returns the key of its call; of the one that it
// repeats, if it does. An empty key: it was refused with a Notice. choose is called with intake held.
func (s *session) accept(r request, choose func(turnID string) *turn) (key string, repeated bool) {
	s.intake.Lock()
	defer s.intake.Unlock()
	if len(r.use.ID) > maxID || len(r.use.TurnID) > maxID {
		s.notice(pipeline.Noticed{Code: "invalid_id", Message: fmt.Sprintf("A tool use with an id or turn_id of more than %d bytes was not accepted.", maxID)})
		return "", false
	}
	s.mu.Lock()
	known, found := s.uses[useKey{r.use.TurnID, r.use.ID}]
	same := found && s.calls[known].Hash == r.hash
	s.mu.Unlock()
	if found && !same {
		s.notice(pipeline.Noticed{Code: "duplicate_id", CallID: r.use.ID, Message: fmt.Sprintf(
			"Another tool use of this turn already has the id %q with another content. This one was not accepted; send it under a new id.", clean(r.use.ID))})
		return "", false
	}
	if found {
		return known, true
	}
	call := s.admit(&r, choose(r.use.TurnID))
	if call == nil {
		return r.use.Key, false
	}
	s.queue.Add(call, s.parentKey(r.parent))
	s.mu.Lock()
	others := len(s.live) + len(s.asked)
	for _, t := range s.turns {
		others += len(t.open)
	}
	s.mu.Unlock()
	if others > 1 && !call.ReadOnly() {
		s.work.Go(func() { call.AskAhead(s.ctx) })
	}
	return call.Key, false
}

// admit records a tool use as a call of t, and gives the call unless it has ended with that. intake is held.
func (s *session) admit(r *request, t *turn) *pipeline.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := &r.use
	use.Turn, use.Index, use.Key = t.number, t.calls, fmt.Sprintf("%d-%d", t.number, t.calls)
	t.calls++
	s.used = time.Now()
	crowded := s.crowded(len(use.Input))
	if r.wrong == nil {
		r.wrong = crowded
	}
	if r.wrong == nil {
		r.wrong = s.lookUp(use, t)
	}
	if r.wrong == nil && r.parent != "" && s.live[s.byID[r.parent]] == nil {
		r.wrong = fault.Invalidf("unknown_parent", "The call %q is not running, so no call can be part of it. Leave parent_tool_use_id empty.", clean(r.parent))
	}
	row := &callRow{Turn: t.number, TurnID: use.TurnID, ID: use.ID, Index: use.Index, Name: use.Name, Hash: r.hash, Open: r.wrong == nil}
	if crowded == nil {
		s.remember(use.Key, row)
	}
	state := []journal.Put{put(keyCall+use.Key, row)}
	if use.Index == 0 {
		state = append(state, put(turnKey(t.number), turnRow{t.number, t.id}))
	}
	if r.wrong != nil {
		ended := pipeline.Refuse(r.wrong)
		t.outcomes[ended.Outcome]++
		accepted := s.entry(use, pipeline.Accepted{Parent: r.parent}, state...)
		s.enqueue(append([]journal.Entry{accepted}, t.ordered.add(use.Index, s.entry(use, ended))...)...)
		return nil
	}
	call := pipeline.New(*use, s)
	batch := t.numberOf(r.parent, call)
	t.batches = max(t.batches, batch)
	t.open[use.Key] = call
	s.openSize += len(use.Input)
	s.enqueue(s.entry(use, pipeline.Accepted{Batch: batch, Concurrent: call.Concurrent(), Parent: r.parent}, state...))
	return call
}

// numberOf gives the batch of a call among those of its parent.
func (t *turn) numberOf(parent string, call *pipeline.Call) int {
	if t.numbers[parent] == nil {
		t.numbers[parent] = &scheduler.Numbering{}
	}
	return t.numbers[parent].Next(call)
}

// remember makes the call findable by the client's names. mu is held.
func (s *session) remember(key string, row *callRow) {
	s.calls[key] = row
	s.uses[useKey{row.TurnID, row.ID}] = key
	s.byID[row.ID] = key
}

// forget makes the client's names free again. mu is held.
func (s *session) forget(key string) {
	row := s.calls[key]
	if row == nil {
		return
	}
	delete(s.uses, useKey{row.TurnID, row.ID})
	if s.byID[row.ID] == key {
		delete(s.byID, row.ID)
	}
}

// crowded says whether the session has no room for another call. mu is held.
func (s *session) crowded(size int) error {
	open := 0
	for _, t := range s.turns {
		open += len(t.open)
	}
	switch {
	case open >= s.daemon.limits.OpenCalls:
		return fault.Invalidf("too_many_calls", "%d calls of this session have not ended, which is the limit. Send it again, under the same id if you like, when some have.", open)
	case s.openSize+size > maxOpenSize:
		return fault.Invalidf("too_large", "The open calls of this session already hold %d bytes of input, and with this one it would be more than %d. Send it again when some have ended.", s.openSize, maxOpenSize)
	}
	return nil
}

// lookUp finds the tool and parses the input, under a recover: a tool that panics must not take the daemon with it.
func (s *session) lookUp(use *pipeline.Use, t *turn) (err error) {
	tool := s.offered(use.Name, t.options)
	if tool == nil {
		return fault.Invalidf("unknown_tool", "There is no tool %q. The nearest are %s. ListTools gives all.",
			clean(use.Name), strings.Join(s.daemon.nearest(use.Name), ", "))
	}
	defer func() {
		if broken := recover(); broken != nil {
			s.daemon.Log.Error("a tool panicked while it parsed its input", panicFields(use.Name, broken)...)
			err = fault.Failedf("internal", "The tool %s broke down while it read this input. This is a mistake in toold; the call had no effect.", use.Name)
		}
	}()
	use.Tool = tool
	use.Digest = pipeline.DigestOf(string(use.Input))
	if use.Action, err = tool.Parse(use.Input); err != nil {
		return err
	}
	use.Limit, use.Note = limit(tool.Spec(), use.Limit, use.Action.TimeLimit())
	return nil
}

// limit is the time limit of a call: what the client asks for, else what the input asks for, else the tool's own; at
// most the tool's most. The note says what was cut off.
func limit(spec tools.Spec, client, input time.Duration) (limit time.Duration, note string) {
	most := max(spec.TimeLimit, spec.MaxTime)
	wanted := spec.TimeLimit
	for _, asked := range []time.Duration{input, client} {
		if asked > 0 {
			wanted = asked
		}
	}
	if most > 0 && wanted > most {
		return most, fmt.Sprintf("The time limit of %s was cut to %s, the most that %s may have.", wanted, most, spec.Name)
	}
	return wanted, ""
}

func (s *session) parentKey(id string) string {
	if id == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// enqueue hands entries to the journal in the order of the session's state. mu is held.
func (s *session) enqueue(entries ...journal.Entry) *journal.Pending {
	s.tail = s.log.Enqueue(entries...)
	return s.tail
}
