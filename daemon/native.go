// Calls that come in a model's own form: as items, or as the events of its stream; and their results in that form. A result is
// rendered when it is sent: the record has it as every result.

package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/dialect"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/media/image"
)

// An asking is how a model has asked for a call, which the answer to the model repeats, as Accepted has it. It is empty where the
// client asks in its own words.
type asking struct {
	Format tooldv1.ModelFormat `json:"format,omitempty"`
	Native string              `json:"native,omitempty"` // the type of the item
	Caller json.RawMessage     `json:"caller,omitempty"`
	Called string              `json:"native_name,omitempty"` // of a tool that the API defines; empty: the tool's own
}

// fromItem reads a tool use that is a model's own item. root is the session's first.
func fromItem(wire *tooldv1.ToolUse, root string) request {
	u, item, err := dialect.ReadItem([]byte(wire.GetNativeJson()))
	wanted := convert.ModelFormatIn(wire.GetFormat())
	format, fits := wanted.As(item)
	switch {
	case err != nil:
	case wire.GetId() != "" || wire.GetName() != "" || wire.GetArguments() != nil:
		err = errors.New("id, name and input are in it, and may not be sent beside it")
	case !fits:
		err = fmt.Errorf("it is %s and not %s", format, wanted)
	case u.ID == "":
		err = errors.New("it has no id")
	}
	r := fromUse(u, format, wire.GetTurnId(), root)
	r.use.Parent = wire.GetParentToolUseId()
	r.timedBy(wire.GetTimeout())
	if err != nil {
		r.wrong = fault.Invalidf("invalid_item", "The item cannot be read: %v.", err).At("/native_json")
		r.hash = hashOf("", json.RawMessage(wire.GetNativeJson()))
	}
	return r
}

// fromUse takes over what a model asks for. A call of a tool that the API defines becomes the one that it stands for.
func fromUse(u dialect.Use, format dialect.Format, turnID, root string) request {
	u, err := dialect.Canonical(format, u, root)
	r := parseUse(&tooldv1.ToolUse{Id: u.ID, Name: u.Name, TurnId: turnID, Arguments: &tooldv1.ToolUse_InputJson{InputJson: u.Input}})
	r.asking = asking{convert.ModelFormat(format), format.Type(u), u.Caller, u.Native}
	if r.listing = u.Directory; err != nil {
		r.wrong = fault.Invalidf("invalid_input", "Invalid input for %s: %v.", convert.Short(u.Name), err)
	}
	return r
}

// timedBy takes the limit of time that a client sends; nil: none.
func (r *request) timedBy(timeout *durationpb.Duration) {
	if timeout == nil {
		return
	}
	r.use.Timeout = timeout.AsDuration()
	if timeout.CheckValid() != nil || r.use.Timeout <= 0 {
		r.wrong = fault.Invalidf("invalid_input", "The timeout of the tool use is not a positive duration.").At("/timeout")
	}
}

// A modelMessage is the message of a model whose events come on the main stream.
type modelMessage struct {
	turnID  string
	first   [sha256.Size]byte // of the first event
	events  uint64            // that are held, from the first
	uses    int               // that it has had
	wanted  dialect.Format    // as the client calls it; Silent: it does not
	over    bool              // it has ended, or cannot be read any further
	message dialect.Message   // empty when it is over
}

// pastMessages is how many messages are remembered that were followed by another: an event of theirs that is sent again after a
// break changes nothing. As many turns may be under way. Ours.
const pastMessages = 64

// modelGap is the structured part of a notice about an event that came too early.
type modelGap struct {
	TurnID   string `json:"turn_id"`
	Index    uint64 `json:"index"`
	Expected uint64 `json:"expected_index"`
}

// event takes the next event of a model's message, and returns the keys of calls that it has asked for before.
func (in inlet) event(e *tooldv1.ModelEvent) (repeated []string, err error) {
	id := e.GetTurnId()
	if id == "" || len(id) > maxID {
		in.s.noticef("invalid_model_event", "", "An event of a model's message has no turn_id, or one of more than %d bytes; it changed nothing.", maxID)
		return nil, nil
	}
	m := in.messageOf(e)
	switch {
	case m == nil:
		in.missed(e, 0)
		return nil, nil
	case e.GetIndex() < m.events, m.over: // sent again, or after the end
		return nil, nil
	case e.GetIndex() > m.events:
		in.missed(e, m.events)
		return nil, nil
	}
	uses, wrong := m.message.Add([]byte(e.GetJson()))
	m.events++
	m.wanted = cmp.Or(convert.ModelFormatIn(e.GetFormat()), m.wanted)
	if misfit := in.misfit(m); wrong == nil && misfit != nil {
		uses, wrong = nil, misfit
	}
	repeated, err = in.useAll(m, uses)
	if err == nil && (wrong != nil || m.message.Ended()) {
		var more []string
		more, err = in.finish(m, wrong)
		repeated = append(repeated, more...)
	}
	if err != nil { // the client sends all of it again, when there is room
		in.model, m.events = nil, 0
	}
	in.s.update(func(its *state) {
		if t := its.ledger.turnNamed(id); t != nil {
			t.modelEvents = m.events
		}
	})
	return repeated, err
}

// messageOf returns the message that an event belongs to, which its first event begins; nil: its first event is missing.
func (in inlet) messageOf(e *tooldv1.ModelEvent) *modelMessage {
	var sum [sha256.Size]byte
	if e.GetIndex() == 0 {
		sum = sha256.Sum256([]byte(e.GetJson()))
	}
	is := func(m *modelMessage) bool { return m.turnID == e.GetTurnId() && (e.GetIndex() > 0 || m.first == sum) }
	if in.model != nil && is(in.model) {
		return in.model
	}
	if i := slices.IndexFunc(in.past, is); i >= 0 {
		return in.past[i]
	}
	if e.GetIndex() > 0 {
		return nil
	}
	if in.model != nil {
		in.model.over, in.model.message = true, dialect.Message{}
		in.past = append(in.past[max(0, len(in.past)-pastMessages+1):], in.model)
	}
	in.model = &modelMessage{turnID: e.GetTurnId(), first: sum}
	return in.model
}

// missed notifies the client, once for each gap, that events are missing in front of one.
func (in inlet) missed(e *tooldv1.ModelEvent, expected uint64) {
	gap := modelGap{TurnID: e.GetTurnId(), Expected: expected}
	if in.gap == gap {
		return
	}
	in.gap = gap
	gap.TurnID, gap.Index = convert.Short(gap.TurnID), e.GetIndex()
	in.s.notify(nil, pipeline.Noticed{
		Code: "model_event_gap", Details: gap,
		Message: fmt.Sprintf("Event %d of the model's message %q came, but %d is the next one; it changed nothing. Send from there on.", gap.Index, gap.TurnID, expected),
	})
}

// misfit returns why a message cannot go on: another format, or more input than the session may hold; nil: it can.
func (in inlet) misfit(m *modelMessage) error {
	format := m.message.Format()
	_, fits := m.wanted.As(format)
	open := view(in.s, func(its *state) int { return its.ledger.openSize })
	switch {
	case format == dialect.Lines:
		return errors.New("it is a tool use in toold's own form, which is sent as a tool_use")
	case format != dialect.Silent && !fits:
		return fmt.Errorf("it is %s and not %s", format, m.wanted)
	case open+m.message.Held() > maxOpenSize:
		return fmt.Errorf("its inputs and those of the open calls hold more than %d bytes", maxOpenSize)
	}
	return nil
}

// useAll accepts tool uses of the message. One without an id is named after its place, so that it is the same call when the message
// is sent again.
func (in inlet) useAll(m *modelMessage, uses []dialect.Use) (repeated []string, err error) {
	format, _ := m.wanted.As(m.message.Format())
	for _, u := range uses {
		if m.uses++; u.ID == "" {
			u.ID = fmt.Sprintf("call-%d", m.uses)
		}
		key, again, err := in.accept(fromUse(u, format, m.turnID, in.s.meta.Roots[0]), in.turnFor)
		if err != nil {
			return repeated, err
		}
		if again {
			repeated = append(repeated, key)
		}
	}
	return repeated, nil
}

// finish ends the message and its turn. A message that has asked for nothing has a turn too, so that its client receives the end. A
// message in whose place the model's API has reported an error is discarded.
func (in inlet) finish(m *modelMessage, wrong error) (repeated []string, err error) {
	uses, ending, err := m.message.End()
	failure, failed := errors.AsType[*dialect.Failure](wrong)
	wrong = cmp.Or(wrong, err)
	if wrong == nil {
		if repeated, err = in.useAll(m, uses); err != nil {
			return repeated, err
		}
	}
	m.over, m.message = true, dialect.Message{}
	switch {
	case failed:
		in.noticeOf(m, "model_failed", "The turn %q is discarded: %v.", convert.Short(m.turnID), failure)
		in.discard(in.turnOf(m))
		return nil, nil
	case wrong != nil:
		in.noticeOf(m, "invalid_model_event", "Event %d of the model's message %q cannot be read: %v. Nothing more of the message is taken.", m.events-1, convert.Short(m.turnID), wrong)
	case len(ending.CutOff) > 0:
		in.noticeOf(m, "model_cut_off", "The model's message %q was cut off in calls of %s, which were not run.", convert.Short(m.turnID), convert.Short(strings.Join(ending.CutOff, ", ")))
	}
	in.endTurn(in.turnOf(m))
	return repeated, nil
}

// turnOf returns the turn of a message: one that goes on, or a new one, if the message has asked for nothing yet.
func (in inlet) turnOf(m *modelMessage) *turn {
	if going := view(in.s, func(its *state) *turn { return its.ledger.turnNamed(m.turnID) }); going != nil {
		return going
	}
	return in.turnFor(m.turnID)
}

// ofModel is the structured part of a notice about a model's message.
type ofModel struct {
	TurnID string `json:"turn_id"`
}

func (in inlet) noticeOf(m *modelMessage, code, format string, args ...any) {
	in.s.notify(nil, pipeline.Noticed{Code: code, Message: fmt.Sprintf(format, args...), Details: ofModel{convert.Short(m.turnID)}})
}

// held returns the message of a model that has come in the turn of that name, or last when id is empty; nil: there is none.
func (in inlet) held(id string) *modelMessage {
	if in.model == nil || id != "" && in.model.turnID != id {
		return nil
	}
	return in.model
}

// close ends a turn, and with it a model's message that is still coming there. The message is remembered, since a client may send
// all of it again after a break.
func (in inlet) close(id string) (repeated []string, err error) {
	switch m := in.held(id); {
	case m != nil && !m.over:
		repeated, err = in.finish(m, nil)
	case m == nil || id == "": // else the turn has ended with its message
		in.endTurn(in.namedTurn(id))
	}
	return repeated, err
}

// drop discards a turn, and what has come of a model's message in it.
func (in inlet) drop(id string) {
	m := in.held(id)
	if m == nil || m.over {
		in.discard(in.namedTurn(id))
		return
	}
	m.over, m.message = true, dialect.Message{}
	in.discard(in.turnOf(m))
}

const (
	// maxItem is how many bytes a result in the model's form may have, with what stands around it: a message stays below the 4 MiB
	// that gRPC takes unless told otherwise.
	maxItem = 4<<20 - 64<<10
	// itemBlobs is how many bytes images and documents of an item may have together, which base64 makes a third more.
	itemBlobs = 2_500_000
)

// nativeResult returns a result in the form in which the model has asked for the call; nil: the client has asked.
func (st *stream) nativeResult(record journal.Record) (*tooldv1.ExecuteResponse, error) {
	asked := view(st.session, func(its *state) *callRow { return its.ledger.calls[record.Call] })
	if asked == nil || asked.Format == tooldv1.ModelFormat_MODEL_FORMAT_UNSPECIFIED {
		return nil, nil
	}
	event, err := wireOf(record)
	if err != nil {
		return nil, err
	}
	result := event.GetToolResult()
	output := convert.ForModel(result)
	if result.Content = nil; st.plain {
		result.Structured = nil
	}
	u := dialect.Use{
		ID: result.GetToolUseId(), Custom: strings.HasPrefix(asked.Native, "custom"), Caller: asked.Caller, Event: strings.HasPrefix(asked.Native, "agent."),
		Item:   dialect.OwnItem(asked.Native),
		Native: asked.Called,
	}
	output.Blocks = fitBlobs(output.Blocks)
	most := maxItem - proto.Size(event)
	item, err := dialect.Answer(convert.ModelFormatIn(asked.Format), u, output)
	if err == nil && len(item) > most {
		for i := range output.Blocks {
			output.Blocks[i] = shortBlock(output.Blocks[i], most/2/len(output.Blocks))
		}
		item, err = dialect.Answer(convert.ModelFormatIn(asked.Format), u, output)
	}
	result.NativeJson = string(item)
	return event, err
}

// shortBlock returns a block that has at most so many bytes in JSON, which writes a byte of text as up to six.
func shortBlock(b tools.Block, most int) tools.Block {
	switch {
	case b.Image != nil && len(b.Image.Data)*4/3 > most, b.Document != nil && len(b.Document.Data)*4/3 > most:
		return tools.Block{Text: dialect.TextOf(b)}
	case b.Image == nil && b.Document == nil:
		b.Text = convert.Shortened(b.Text, max(most/6, 1<<10))
	}
	return b
}

// fitBlobs makes images smaller, and leaves documents out, where all of them are more than an item can have.
func fitBlobs(blocks []tools.Block) []tools.Block {
	total, images := 0, 0
	for _, b := range blocks {
		switch {
		case b.Image != nil:
			total, images = total+len(b.Image.Data), images+1
		case b.Document != nil:
			total += len(b.Document.Data)
		}
	}
	if total <= itemBlobs {
		return blocks
	}
	left := itemBlobs
	for i, b := range blocks {
		switch {
		case b.Image != nil:
			picture, err := image.Fit(context.Background(), b.Image.MediaType, b.Image.Data, left/images)
			if images--; err != nil {
				blocks[i] = tools.Block{Text: dialect.TextOf(b)}
				continue
			}
			blocks[i] = tools.Block{Image: &tools.Blob{MediaType: picture.MediaType, Data: picture.Data}}
			left -= len(picture.Data)
		case b.Document != nil && len(b.Document.Data) > left:
			blocks[i] = tools.Block{Text: dialect.TextOf(b)}
		case b.Document != nil:
			left -= len(b.Document.Data)
		}
	}
	return blocks
}
