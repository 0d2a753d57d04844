// Records that are not there any more: dropped by retention, or lost to damage. What clients are told of them, so
// that none takes what it gets for the whole.

package daemon

import (
	"fmt"

	"github.com/toold/toold/daemon/convert"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// missingRecords is what a Notice "records_missing" carries for programs.
type missingRecords struct {
	First   uint64 `json:"first_seq"`
	Last    uint64 `json:"last_seq"`
	Damaged bool   `json:"damaged"` // not dropped, but lost
}

// sendMissing sends the client the numbers that it does not get before the record next. Who asked for everything that is
// kept is not told of what was dropped before.
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
	return st.send(notice)
}

// missed warns a client that attaches behind the record after of what it will not get.
func (at *attachments) missed(after uint64) (warnings []settings.Warning) {
	if first := at.s.log.First(); after > 0 && after+1 < first {
		warnings = append(warnings, inDaemon(fmt.Sprintf("The records %d to %d of this session are not kept any more.", after+1, first-1)))
	}
	for _, gap := range at.s.log.Gaps() {
		warnings = append(warnings, inDaemon(fmt.Sprintf("The records %d to %d of this session are lost: the journal was damaged.", gap.First, gap.Last)))
	}
	return warnings
}

// sendEnd answers for a call whose records are all gone: that it was accepted before, and how it ended. It is not run
// again. None of that has a number.
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
		if err := st.send(event); err != nil {
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
