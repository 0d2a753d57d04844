// A tool use on its way in: looked up, parsed, numbered, recorded, handed to the queue. It waits
// for the record's commit, so that nothing is accepted that a full disk could lose (unless the
// record is postponed, postpone.go), and for nothing else: cancels and answers share the wire.

package daemon

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/dialect"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/telemetry"
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

// An intake takes tool uses into turns, one after the other, so that the journal, the numbering and
// the queue see the same order. Calls that end do not go through it.
type intake struct {
	s     *session
	mu    sync.Mutex      // locked by alone only: before an update, never in one
	model *modelMessage   // whose events came last; nil: none is held
	past  []*modelMessage // that were followed by another
	gap   modelGap        // that a client was notified of last
	pause pause           // of the calls that it has taken
}

// An inlet is an intake that its holder has for itself.
type inlet struct{ *intake }

// alone runs f while nothing else goes through the intake: no message of a main stream, no Attach,
// no end of the session.
func (i *intake) alone(f func(in inlet)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f(inlet{i})
}

// request is a tool use, parsed as far as possible without the session's state.
type request struct {
	use     pipeline.Use
	hash    string
	asking  asking
	listing *dialect.Use // the call that is meant if its path is that of a directory; nil: the same
	part    *partOf      // nil: no call waits for it
	trace   string       // a traceparent, as the client sent it; empty: none
	own     tools.Tool   // of the daemon itself; nil: it is looked up by name
	wrong   *fault.Error // why it can only be refused; nil: it may become a call
}

// A wireUse is a ToolUse, or a RunToolRequest, which has the same fields.
type wireUse interface {
	GetId() string
	GetName() string
	GetInput() *structpb.Struct
	GetInputJson() string
	GetTimeout() *durationpb.Duration
}

// parseUse looks at a tool use without the session. The tool is looked up later, in the pool as it
// is then.
func parseUse(wire wireUse) request {
	r := request{use: pipeline.Use{ID: wire.GetId(), Name: wire.GetName()}}
	if placed, is := wire.(*tooldv1.ToolUse); is {
		r.use.TurnID, r.use.Parent = placed.GetTurnId(), placed.GetParentToolUseId()
		r.trace = placed.GetTraceContext()
	}
	if r.use.ID == "" {
		r.use.ID = newID("call-")
	}
	input := []byte(wire.GetInputJson())
	if object := wire.GetInput(); object != nil {
		var err error
		if input, err = object.MarshalJSON(); err != nil {
			r.wrong = fault.Invalidf("invalid_input", "The input is not a JSON object: %v.", err)
		}
	}
	r.use.Input = bytes.TrimSpace(input)
	if len(r.use.Input) == 0 {
		r.use.Input = json.RawMessage("{}")
	}
	r.hash = hashOf(r.use.Name, r.use.Input)
	if len(r.use.Input) > maxInput {
		r.wrong = fault.Invalidf("too_large", "The input has %d bytes, but at most %d are taken. Write large content to a file in parts.", len(r.use.Input), maxInput)
		r.use.Input = nil
	}
	r.timedBy(wire.GetTimeout())
	return r
}

// hashOf identifies the content of a tool use: its name and its input as canonical JSON.
func hashOf(name string, input json.RawMessage) string {
	sum := sha256.Sum256(slices.Concat([]byte(name), []byte{0}, canonicalOf(input)))
	return hex.EncodeToString(sum[:16])
}

// canonicalOf returns a JSON value in canonical form, and anything else as it is.
func canonicalOf(input json.RawMessage) []byte {
	if tools.IsCanonical(input) {
		return input
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return input
	}
	text, err := json.Marshal(value)
	if _, more := decoder.Token(); err != nil || !errors.Is(more, io.EOF) {
		return input
	}
	return text
}

// accept takes a tool use into the turn that choose returns, and returns the key of its call once
// that is recorded; of the one that it repeats, if it does. An empty key: it was refused with a
// Notice. An error: it could not be recorded, so nothing has happened.
func (in inlet) accept(r request, choose func(turnID string) *turn) (key string, repeated bool, err error) {
	if max(len(r.use.ID), len(r.use.TurnID), len(r.use.Parent)) > maxID {
		in.s.noticef("invalid_id", "", "A tool use with an id, turn_id or parent_tool_use_id of more than %d bytes was not accepted.", maxID)
		return "", false, nil
	}
	var row *callRow
	in.s.update(func(its *state) {
		key = its.ledger.earlier(r.use.TurnID, r.use.ID)
		row = its.ledger.calls[key]
	})
	switch {
	case row != nil && (row.Hash == r.hash || row.Hash == ""): // of some the content is not known any more
		return key, true, nil
	case row != nil:
		in.s.noticef("duplicate_id", r.use.ID, "Another tool use already has the id %q with another content. This one was not accepted; send it under a new id, or name its turn with turn_id.", r.use.ID)
		return "", false, nil
	}
	p := in.place(&r, choose)
	err = in.admit(p)
	if errors.Is(err, errTurnOver) { // and so the call is not running any more that this one was part of
		p = in.place(&r, choose)
		err = in.admit(p)
	}
	if err != nil {
		in.forgetTurn(p.turn)
		return "", false, err
	}
	if p.call == nil {
		in.s.work.Go(func() { in.s.recorder.conclude(p.ending) })
		return p.use.Key, false, nil
	}
	in.s.queue.Add(p.call, p.parentKey)
	in.s.asker.askAhead(p.call)
	return p.use.Key, false, nil
}

// placed is a tool use that has its turn and its index, and is a call or how it ends at once.
type placed struct {
	ending
	turn      *turn
	row       *callRow
	parentKey string
	ahead     []string // keys of the calls that it waits for
	input     string   // as it is recorded
}

// place finds the turn and the tool of a tool use.
func (in inlet) place(r *request, choose func(turnID string) *turn) *placed {
	var parentKey string
	var t *turn
	var crowded *fault.Error
	in.s.update(func(its *state) {
		parentKey, t = its.ledger.parent(r.use.Parent)
		crowded = in.crowded(its, len(r.use.Input))
		r.trace = cmp.Or(telemetry.Traceparent(r.trace), its.tracedUnder(parentKey))
	})
	if t == nil {
		t = choose(r.use.TurnID)
	}
	row := &callRow{
		Turn: t.number, TurnID: cmp.Or(r.use.TurnID, t.id), ID: r.use.ID, Index: t.calls, Name: convert.Short(r.use.Name), Hash: r.hash,
		Open: true, Free: crowded != nil, asking: r.asking, part: r.part,
	}
	r.use.Turn, r.use.TurnID, r.use.Index, r.use.Key = t.number, t.id, t.calls, fmt.Sprintf("%d-%d", t.number, t.calls)
	p := &placed{ending: ending{use: &r.use}, turn: t, row: row, parentKey: parentKey, input: in.s.daemon.recorded(r.use.Input)}
	tool, wrong := r.own, cmp.Or(r.wrong, crowded)
	if tool == nil {
		tool = in.viewerOf(r, in.s.tools.lookUp(r.use.Name, t.options), t.options)
	}
	switch {
	case wrong != nil:
	case r.use.Parent != "" && parentKey == "":
		wrong = fault.Invalidf("unknown_parent", "The call %q is not running, so no call can be part of it. Leave parent_tool_use_id empty.", r.use.Parent)
	case tool == nil:
		wrong = in.s.tools.unknownTool(r.use.Name, t.options)
	}
	var refused *pipeline.Ended
	row.watched = in.s.daemon.watchCall(tool, r.trace)
	if wrong != nil {
		refused = new(pipeline.Refuse(wrong))
	} else {
		p.call, refused = pipeline.New(r.use, tool, in.s.forCalls())
	}
	if refused != nil {
		p.call, p.ended, r.use.Input = nil, *refused, nil
	} else {
		row.size, p.use = len(r.use.Input), &p.call.Use
		if convert.Ordering(t.options) == scheduler.Dependency {
			pipeline.Arrange(p.call)
			p.ahead = in.s.queue.Ahead(p.call, parentKey)
		}
	}
	return p
}

// parent finds the running call that a nested one names, and its turn: what is nested belongs
// there, also when that turn takes no more.
func (l *ledger) parent(id string) (key string, t *turn) {
	key = l.byID[id]
	if id == "" || l.live[key] == nil {
		return "", nil
	}
	t = l.turns[l.calls[key].Turn]
	if t == nil || t.over { // its last result is being recorded, with the end of the turn
		return "", nil
	}
	return key, t
}

// errTurnOver is the error for a call of which the turn has ended since it was given its place there.
var errTurnOver = errors.New("the turn is over")

// admit records a tool use, and takes it into its turn and the session's books if that succeeds.
func (in inlet) admit(p *placed) error {
	if err := in.s.daemon.journal.Present(); err != nil {
		return journalRefusal(err)
	}
	accepted := pipeline.Accepted{Parent: p.use.Parent}
	var numbering scheduler.Numbering
	var pending *journal.Pending // nil: its record is postponed
	var over bool
	in.s.update(func(its *state) {
		if over = p.turn.over; over {
			return
		}
		numbering = p.turn.numbering[p.parentKey]
		if p.call != nil {
			accepted.Concurrent, accepted.Batch, accepted.Title = p.call.Concurrent(), numbering.Next(p.call), p.call.Title()
			accepted.WaitsFor = convert.Each(p.ahead, its.ledger.idOf)
		}
		e := in.book(its, p, accepted)
		if p.call == nil || len(e.Body) > postponeBytes || !in.s.mayPostpone(p.turn) {
			e.Note = asState(p.row)
			pending = its.ledger.stage(e)
			return
		}
		its.ledger.postpone(e, in.s.flushLater)
	})
	if over {
		return errTurnOver
	}
	var err error
	if pending != nil {
		_, err = pending.Wait()
	}
	return view(in.s, func(its *state) error {
		if err == nil {
			p.turn.numbering[p.parentKey] = numbering
			if p.parentKey == "" {
				p.turn.batches = max(p.turn.batches, accepted.Batch)
			}
			return nil
		}
		p.turn.calls--
		delete(p.turn.open, p.use.Key)
		its.ledger.forget(p.use.Key)
		delete(its.ledger.calls, p.use.Key)
		its.ledger.findable()
		its.ledger.openSize -= p.row.size
		return journalRefusal(err)
	})
}

// book takes a tool use into the session's books, and returns the record of it, without its note.
func (in inlet) book(its *state, p *placed, accepted pipeline.Accepted) journal.Entry {
	var state []journal.Put
	if p.use.Index == 0 {
		state = append(state, putState(turnKey(p.turn.number), turnRow{p.turn.number, p.turn.id}))
	}
	p.turn.calls++
	p.turn.open[p.use.Key] = p.use.ID
	its.ledger.calls[p.use.Key] = p.row
	its.ledger.remember(p.use.Key, p.row)
	its.ledger.openSize += p.row.size
	its.used = time.Now()
	wire := convert.Event(p.use, accepted)
	record, asked := wire.GetAccepted(), p.row.asking
	record.InputJson = p.input
	record.Format, record.NativeType, record.CallerJson, record.NativeName = asked.Format, asked.Native, string(asked.Caller), convert.Short(asked.Called)
	return wireEntry(p.use, wire, state...)
}

// earlier finds the call that has the client's names already. Without a turn_id it is the newest of
// that id in the session, whatever turn it is in.
func (l *ledger) earlier(turnID, id string) (key string) {
	if turnID == "" {
		return l.byID[id]
	}
	return l.uses[useKey{turnID, id}]
}

// idOf returns the client's id of a call; empty: the call is not kept.
func (l *ledger) idOf(key string) string {
	if row := l.calls[key]; row != nil {
		return row.ID
	}
	return ""
}

// remember makes the call findable by the client's names.
func (l *ledger) remember(key string, row *callRow) {
	if !row.Free {
		l.uses[useKey{row.TurnID, row.ID}] = key
		l.byID[row.ID] = key
	}
}

// forget makes the client's names free again. Older calls of the same id are found again after
// findable.
func (l *ledger) forget(key string) {
	row := l.calls[key]
	row.Free = true
	if use := (useKey{row.TurnID, row.ID}); l.uses[use] == key {
		delete(l.uses, use)
	}
	if l.byID[row.ID] == key {
		delete(l.byID, row.ID)
	}
}

// findable makes the newest call of each id that is not free the one that the id alone stands for.
func (l *ledger) findable() {
	for key, row := range l.calls {
		if newest := l.calls[l.byID[row.ID]]; !row.Free && (newest == nil || newest.compare(row) < 0) {
			l.byID[row.ID] = key
		}
	}
}

// crowded returns why the session has no room for another call; nil: it has.
func (i *intake) crowded(its *state, size int) *fault.Error {
	open := 0
	for _, t := range its.ledger.turns {
		open += len(t.open)
	}
	switch {
	case open >= i.s.daemon.limits.OpenCalls:
		return fault.Invalidf("too_many_calls", "%d calls of this session have not ended, which is the limit. Send it again, under the same id if you like, when some have.", open)
	case its.ledger.openSize+size > maxOpenSize:
		return fault.Invalidf("too_large", "The open calls of this session already hold %d bytes of input, and with this one it would be more than %d. Send it again when some have ended.", its.ledger.openSize, maxOpenSize)
	}
	return nil
}
