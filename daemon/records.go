// What clients can read of a session's records, also of a closed one: which calls and questions are
// open, and which records are not there any more, so that no client takes what it gets for the
// whole. It changes nothing.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// A sessionRequest is a request about a session, which it names.
type sessionRequest interface{ GetSessionId() string }

// A sessionView is what can be read of a session.
type sessionView struct {
	daemon  *Daemon
	name    string
	meta    meta
	log     *journal.Log
	session *session // nil: it is closed
}

// view returns the session that a request names, if the client owns it.
func (x *sessionSet) view(ctx context.Context, request sessionRequest) (*sessionView, error) {
	who, name := principalOf(ctx), request.GetSessionId()
	if s := x.owned(who, name); s != nil {
		_ = s.written() // what could not be written is not shown
		return &sessionView{x.d, name, s.meta, s.log, s}, nil
	}
	log, err := x.d.journal.Log(name)
	about := x.keptMeta(name)
	if err != nil || about.owner() != who {
		return nil, unknownSession(name)
	}
	return &sessionView{x.d, name, about, log, nil}, nil
}

// owned returns the open session of that name if it belongs to the principal; nil otherwise.
func (x *sessionSet) owned(who access.Principal, name string) *session {
	if s, ok := x.find(name); ok && s.meta.owner() == who {
		return s
	}
	return nil
}

// callRows decodes what the journal keeps of a session's calls, by key.
func callRows(state map[string][]byte) (map[string]*callRow, error) {
	rows := map[string]*callRow{}
	for key, text := range state {
		if call, is := strings.CutPrefix(key, keyCall); is {
			row := &callRow{}
			if err := json.Unmarshal(text, row); err != nil {
				return nil, &journal.CorruptError{Path: key, Err: err}
			}
			rows[call] = row
		}
	}
	return rows, nil
}

// compare orders calls as they were accepted.
func (r *callRow) compare(other *callRow) int {
	return cmp.Or(cmp.Compare(r.Turn, other.Turn), cmp.Compare(r.Index, other.Index))
}

// roots returns the session's roots.
func (l *sessionView) roots() ([]string, error) {
	if len(l.meta.Roots) == 0 {
		return nil, apierror.New(codes.DataLoss, "journal_damaged", "The description of session %q cannot be read.", l.name)
	}
	return l.meta.Roots, nil
}

// outputs opens the folder with what the session's calls have printed.
func (l *sessionView) outputs() (*spool.Dir, error) {
	if l.session != nil {
		return l.session.outputs, nil
	}
	return l.daemon.sessions.outputs(l.name, l.meta.owner())
}

// key returns the key of the call that ledger.named finds.
func (l *sessionView) key(id string, turn *uint64) (key string, err error) {
	if l.session != nil {
		l.session.update(func(its *state) { key, err = its.ledger.named(l.name, id, turn) })
		return key, err
	}
	state, err := l.log.State(keyCall)
	if err != nil {
		return "", journalRefusal(err)
	}
	rows, err := callRows(state)
	if err != nil {
		return "", journalRefusal(err)
	}
	kept := ledger{calls: rows, byID: map[string]string{}}
	kept.findable()
	return kept.named(l.name, id, turn)
}

// named returns the key of the session's call with the client's id: of the turn with that number, or the newest if turn is nil.
func (l *ledger) named(session, id string, turn *uint64) (string, error) {
	key := l.byID[id]
	if key == "" {
		return "", unknownCall(session, id)
	}
	if turn == nil || l.calls[key].Turn == *turn {
		return key, nil
	}
	for key, row := range l.calls {
		if row.ID == id && row.Turn == *turn && !row.Free {
			return key, nil
		}
	}
	return "", otherTurn("turn", id, l.calls[key].Turn, *turn)
}

func unknownCall(session, id string) error {
	return apierror.NotFoundf("unknown_call", "tool_use_id", "Session %q has no call %q, or it is not kept any more.", convert.Short(session), convert.Short(id))
}

// otherTurn is the error for a request that names a call of a turn by an id which only calls of other turns have.
func otherTurn(field, id string, has, asked uint64) error {
	return apierror.Preconditionf("other_turn", field, "The call %q is one of turn %d, not of turn %d, so nothing was done.", convert.Short(id), has, asked)
}

// A story is what the records of a call come to.
type story struct {
	state             tooldv1.CallState
	accepted, started journal.Record   // without a number: there is none
	questions         []journal.Record // the open ones
}

func storyOf(records []journal.Record) story {
	s := story{state: tooldv1.CallState_CALL_STATE_ACCEPTED}
	for _, record := range records {
		switch record.Kind {
		case kindAccepted:
			s.accepted = record
		case kindQuestion:
			s.questions = append(s.questions, record)
		case kindWithdrawn:
			withdrawn := questionID(record)
			s.questions = slices.DeleteFunc(s.questions, func(asked journal.Record) bool { return questionID(asked) == withdrawn })
		case kindStarted:
			s.started, s.state = record, tooldv1.CallState_CALL_STATE_RUNNING
		case kindResult:
			s.state = tooldv1.CallState_CALL_STATE_ENDED
		}
	}
	return s
}

// questionID returns the id of the question that a record puts or withdraws; empty: it is damaged.
func questionID(record journal.Record) string {
	wire, err := wireOf(record)
	if err != nil {
		return ""
	}
	return cmp.Or(wire.GetQuestion().GetQuestionId(), wire.GetQuestionWithdrawn().GetQuestionId())
}

// wireOf reads a record.
func wireOf(record journal.Record) (*tooldv1.ExecuteResponse, error) {
	wire := &tooldv1.ExecuteResponse{}
	if err := proto.Unmarshal(record.Body, wire); err != nil {
		return nil, apierror.New(codes.DataLoss, "journal_damaged", "Record %d of this session cannot be read: %v.", record.Seq, err)
	}
	wire.Seq, wire.Time = record.Seq, timestamppb.New(record.Time)
	return wire, nil
}

// describeOpen describes the session with its open calls and questions.
func (s *session) describeOpen() (*tooldv1.GetSessionResponse, error) {
	response := &tooldv1.GetSessionResponse{Session: s.describe()}
	for _, key := range s.openKeys() {
		if err := s.addOpen(response, key); err != nil {
			return nil, err
		}
	}
	s.update(func(its *state) {
		for _, key := range slices.Sorted(maps.Keys(its.questions.asked)) {
			if a := its.questions.asked[key]; a.use == nil && !a.done { // it is about no call, such as whether a server may be started
				response.OpenQuestions = append(response.OpenQuestions, convert.Question(&pipeline.Use{}, a.question))
			}
		}
	})
	return response, nil
}

// openKeys returns the keys of the calls that have not ended, in order.
func (s *session) openKeys() (keys []string) {
	s.update(func(its *state) {
		for key, row := range its.ledger.calls {
			if row.Open {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b string) int { return its.ledger.calls[a].compare(its.ledger.calls[b]) })
	})
	return keys
}

// addOpen adds what a call's records say; nothing: it has ended meanwhile.
func (s *session) addOpen(response *tooldv1.GetSessionResponse, key string) error {
	records, err := s.log.Find(key)
	if err != nil {
		return journalRefusal(err)
	}
	told := storyOf(records)
	if told.state == tooldv1.CallState_CALL_STATE_ENDED {
		return nil
	}
	if told.accepted.Seq > 0 {
		wire, err := wireOf(told.accepted)
		if err != nil {
			return err
		}
		a := wire.GetAccepted()
		response.OpenCalls = append(response.OpenCalls, &tooldv1.OpenCall{
			ToolUseId: a.GetToolUseId(), Name: a.GetName(), Title: a.GetTitle(), Turn: wire.GetTurn(), TurnId: wire.GetTurnId(), State: told.state,
		})
	}
	for _, question := range told.questions {
		wire, err := wireOf(question)
		if err != nil {
			return err
		}
		response.OpenQuestions = append(response.OpenQuestions, wire.GetQuestion())
	}
	return nil
}

// missingRecords is what a Notice "records_missing" carries for programs.
type missingRecords struct {
	First   uint64 `json:"first_seq"`
	Last    uint64 `json:"last_seq"`
	Damaged bool   `json:"damaged"` // not dropped, but lost
}

// sendMissing sends the client the numbers that it does not get before the record next. Who asked
// for everything that is kept is not told of what was dropped before.
func (st *stream) sendMissing(next uint64) error {
	from := st.sent + 1
	if kept := st.session.log.First(); st.sent == 0 && kept <= next {
		from = kept
	}
	if from >= next || st.only != "" {
		return nil
	}
	details := missingRecords{First: from, Last: next - 1}
	why := "were dropped before they could be sent: the limits.journal_... settings say how much is kept"
	for _, gap := range st.session.log.Gaps() {
		if gap.First < next && from <= gap.Last {
			details.Damaged = true
			why = "are lost: the journal was damaged"
		}
	}
	notice := convert.Event(nil, pipeline.Noticed{
		Code: "records_missing", Message: fmt.Sprintf("The records %d to %d of this session %s.", from, next-1, why), Details: details,
	})
	notice.Time = timestamppb.Now()
	return st.out.event(notice)
}

// missed warns a client that attaches behind the record after of what it will not get.
func (at *attachments) missed(after uint64) (warnings []settings.Warning) {
	if first := at.s.log.First(); after > 0 && after+1 < first {
		warnings = append(warnings, inDaemon(fmt.Sprintf("The records %d to %d of this session are not kept any more.", after+1, first-1)))
	}
	for _, gap := range at.s.log.Gaps() {
		if gap.Last < at.s.log.First() { // dropped by now, as the sentence above says
			continue
		}
		warnings = append(warnings, inDaemon(fmt.Sprintf("The records %d to %d of this session are lost: the journal was damaged.", gap.First, gap.Last)))
	}
	return warnings
}

// unseen returns a warning for each open turn, for a client that has not asked for the records that there are.
func (its *state) unseen() (warnings []settings.Warning) {
	for _, t := range its.ledger.openTurns() {
		what := "A turn"
		if t.id != "" {
			what = fmt.Sprintf("The turn %q", t.id)
		}
		warnings = append(warnings, inDaemon(what+" is open, and what there is of it so far is not sent: attach with after_seq to receive it."))
	}
	return warnings
}

// sendEnd answers for a call whose records are all gone: that it was accepted before, and how it
// ended. It is not run again. None of that has a number.
func (st *stream) sendEnd(key string) error {
	s := st.session
	var row *callRow
	var open bool
	s.update(func(its *state) {
		row = its.ledger.calls[key]
		open = row == nil || row.Open
	})
	if open { // its records are still to come
		return nil
	}
	use := &pipeline.Use{ID: row.ID, Key: key, Turn: row.Turn, TurnID: row.TurnID, Index: row.Index, Name: row.Name}
	accepted := convert.Event(use, pipeline.Accepted{})
	accepted.GetAccepted().Replayed = true
	st.done = st.only != ""
	for _, event := range []*tooldv1.ExecuteResponse{accepted, convert.Event(use, forgotten(row))} {
		event.Time = timestamppb.Now()
		if err := st.out.event(event); err != nil {
			return err
		}
	}
	return nil
}

// forgotten is the end of a call of which nothing but its outcome is known.
func forgotten(row *callRow) pipeline.Ended {
	if row.Outcome < 0 || row.Outcome > int(pipeline.Discarded) {
		row.Outcome = 0
	}
	outcome := pipeline.Outcome(row.Outcome)
	text := fmt.Sprintf("This call has ended before, with the outcome %q. It was not run again. Its result is not kept any more; look at the present state instead.", outcome)
	if row.Outcome == 0 {
		outcome = pipeline.Interrupted
		text = "This call was accepted before and may have had effects. It was not run again. Neither its result nor its outcome is kept any more; look at the present state instead."
	}
	ended := pipeline.Ended{Outcome: outcome, Content: []tools.Block{{Text: text}}}
	if outcome != pipeline.OK {
		ended.Fault = fault.Failedf("result_dropped", "%s", text)
	}
	return ended
}
