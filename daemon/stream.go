// The sending side of a stream: a cursor over the session's journal, with the newest progress in
// between. Live delivery is replay that has caught up; there is no queue per client.

package daemon

import (
	"context"
	"errors"
	"runtime/trace"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// stream is one client's view of a session.
type stream struct {
	session *session
	cursor  *journal.Cursor
	out     eventSender
	poked   chan struct{}     // one slot: there may be something new beside the journal
	over    chan struct{}     // closed when the stream is to end at once
	closing chan struct{}     // closed when it is to end after everything that is in the journal
	hello   *tooldv1.Attached // what it begins with; nil: nothing
	bytes   bool              // output chunks as bytes instead of text
	inputs  bool              // accepted records come with their input
	native  bool              // results of calls in a model's own form come in that form
	plain   bool              // results come without what is structured
	only    string            // the key of the one call that is sent; empty: everything
	follow  bool              // goes on when it has caught up
	upTo    uint64            // without follow: the last record that is sent
	// companion: it may not send tool uses, nor end turns.
	companion bool
	pid       int    // of its client; 0: not known
	trace     string // that its calls belong to, as a traceparent; empty: none
	arrival   uint64 // among all streams of the daemon: of two main ones the later stays, whichever is heard first

	// unheard: its client did not save when it was asked, and has said nothing since; it is not
	// waited for again.
	unheard atomic.Bool

	presence // used in the session's update alone

	// The sender's own.
	sent    uint64 // the newest record sent
	done    bool   // the result of the only call has been sent
	running map[string]*followed
	chunk   []byte // the buffer for output, while calls run: what is sent is encoded before Send returns
}

// A presence is what the session knows of a stream, and what the stream's client has brought.
type presence struct {
	answers     bool
	fileChanges bool // its client wants to be told of files that change
	halfClosed  bool
	why         error         // why it is over or closing
	again       []string      // keys of calls whose records are to be sent again
	tools       []*clientTool // tools that its client runs itself
	buffers     bool          // its client sends the unsaved text of files
	missed      bool          // it is waited for whether the client comes back
}

// newStream makes a stream of s that stands behind the record after. The caller sets what it needs,
// then has it served.
func newStream(s *session, after uint64, out eventSender) *stream {
	return &stream{
		session: s, cursor: s.log.Follow(after), out: out, sent: after, follow: true, poked: make(chan struct{}, 1),
		over: make(chan struct{}), closing: make(chan struct{}), running: map[string]*followed{},
	}
}

// end ends the stream at once.
func (st *stream) end(err error) { st.leave(st.over, err) }

// finish ends the stream when everything that is in the journal has been sent.
func (st *stream) finish(err error) {
	st.session.update(func(*state) { st.leave(st.closing, err) })
}

// leave closes by, unless the stream has been told to leave before.
func (st *stream) leave(by chan struct{}, err error) {
	if st.why == nil {
		st.why = err
		close(by)
	}
}

// run sends until the stream is over, ctx ends, or there is nothing more to send. It owns out.
func (st *stream) run(ctx context.Context) error {
	defer st.cursor.Close()
	if err := st.begin(); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := st.sendAgain(); err != nil {
			return err
		}
		finishing, why := st.finishing() // after sendAgain, since a stream that has something to repeat does not finish
		caughtUp, err := st.sendRecords()
		if err != nil {
			return err
		}
		if st.done || caughtUp && finishing {
			return why
		}
		if !caughtUp {
			continue
		}
		if err := st.sendRequests(); err != nil {
			return err
		}
		due, err := st.sendProgress(time.Now())
		if err != nil {
			return err
		}
		var progress <-chan time.Time
		if len(st.running) > 0 { // the runtime has to keep a timer in order while it is waited for
			timer.Reset(due)
			progress = timer.C
		}
		select {
		case <-st.cursor.Wake():
		case <-st.poked:
		case <-progress:
		case <-st.closing:
		case <-st.over:
			return st.why // its method may see this first
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin sends what a stream begins with: where it is, and what is open there.
func (st *stream) begin() error {
	if st.hello != nil {
		if err := st.out.event(&tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_Attached{Attached: st.hello}}); err != nil {
			return err
		}
	}
	if !st.follow {
		return nil
	}
	for _, key := range st.session.openCalls() {
		if st.only != "" && key != st.only {
			continue
		}
		if err := st.resume(key); err != nil {
			return err
		}
	}
	return nil
}

// resume goes on with a call that is open: a question from before the place where the stream begins
// is asked again, and a call that was started before it is followed.
func (st *stream) resume(key string) error {
	records, err := st.session.log.Find(key)
	if err != nil {
		return journalRefusal(err)
	}
	told := storyOf(records)
	if told.state == tooldv1.CallState_CALL_STATE_RUNNING && told.started.Seq <= st.sent {
		st.running[key] = st.followCall(key)
	}
	for _, question := range told.questions {
		if question.Seq > st.sent {
			continue
		}
		if err := st.sendRecord(question, again); err != nil {
			return err
		}
	}
	return nil
}

// finishing reports whether the stream ends when it has caught up, and with which error: when it
// does not follow, when it is closing, and after a half-close when no turn is open. All that it
// then has still to send is in the journal.
func (st *stream) finishing() (finishing bool, why error) {
	if !st.follow {
		return true, nil
	}
	select {
	case <-st.closing:
		return true, st.why
	default:
	}
	s := st.session
	var tail *journal.Pending
	s.update(func(its *state) {
		finishing = st.halfClosed && len(its.ledger.turns) == 0 && len(st.again) == 0
		if finishing {
			its.ledger.flush()
		}
		tail = its.ledger.tail
	})
	if finishing && tail != nil {
		_, _ = tail.Wait() // what could not be recorded will not be sent
	}
	return finishing, nil
}

// sendRecords sends one read's worth of records and reports whether there were none.
func (st *stream) sendRecords() (caughtUp bool, err error) {
	records, err := st.cursor.Next()
	if err != nil {
		return false, journalRefusal(err)
	}
	for _, record := range records {
		if !st.follow && record.Seq > st.upTo {
			return true, nil
		}
		if err := st.sendMissing(record.Seq); err != nil {
			return false, err
		}
		if err := st.sendRecord(record, first); err != nil {
			return false, err
		}
		st.sent = record.Seq
	}
	return len(records) == 0, nil
}

// A sending is why a record is sent.
type sending uint8

const (
	first sending = iota // in its order
	again                // it was sent before, to this stream or another one
)

// sendRecord sends one record, and keeps book of which calls run.
func (st *stream) sendRecord(record journal.Record, why sending) error {
	if st.only != "" && record.Call != st.only {
		return nil
	}
	defer trace.StartRegion(context.Background(), "send").End()
	switch {
	case why == again:
	case record.Kind == kindStarted:
		st.running[record.Call] = st.followCall(record.Call)
	case record.Kind == kindResult:
		if err := st.lastProgress(record.Call); err != nil {
			return err
		}
	}
	st.done = st.done || st.only != "" && record.Kind == kindResult
	if st.native && record.Kind == kindResult {
		event, err := st.nativeResult(record)
		if err != nil {
			return err
		}
		if event != nil {
			return st.out.event(event)
		}
	}
	switch {
	case record.Kind == kindAccepted:
		return st.out.record(record, acceptedBody(record.Body, st.inputs, why == again))
	case record.Kind == kindResult && st.plain:
		return st.out.record(record, plainBody(record.Body)...)
	}
	return st.out.record(record, record.Body)
}

// sendAgain sends again the records, as far as they have been passed, of calls that were asked for
// a second time. What is still to come of them comes by itself.
func (st *stream) sendAgain() error {
	var keys []string
	st.session.update(func(*state) {
		keys = st.again
		st.again = nil
	})
	for _, key := range keys {
		records, err := st.session.log.Find(key)
		if err != nil {
			return journalRefusal(err)
		}
		if len(records) == 0 { // it may end just now: a call that ends at once has no record before its result
			if err := st.session.written(); err != nil {
				return journalRefusal(err)
			}
			if records, err = st.session.log.Find(key); err != nil {
				return journalRefusal(err)
			}
		}
		if len(records) == 0 {
			if err := st.sendEnd(key); err != nil {
				return err
			}
		}
		for _, record := range records {
			if record.Seq > st.sent {
				break
			}
			if err := st.sendRecord(record, again); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeat has the stream send a call's records again.
func (st *stream) repeat(key string) {
	st.session.update(func(*state) { st.again = append(st.again, key) })
	st.wakeUp()
}

// journalRefusal puts an error of the journal into a status.
func journalRefusal(err error) error {
	if gone, is := errors.AsType[*journal.GoneError](err); is {
		return apierror.Preconditionf("journal_gone", "", "No call is accepted, because no record of it would be kept: %s.", goneText(gone))
	}
	_, corrupt := errors.AsType[*journal.CorruptError](err)
	switch {
	case errors.Is(err, journal.ErrFull):
		return apierror.New(codes.ResourceExhausted, "disk_full", "The disk that holds the daemon's journal is full. Free some space and try again.")
	case corrupt:
		return apierror.New(codes.DataLoss, "journal_damaged", "The journal is damaged: %v.", err)
	case errors.Is(err, journal.ErrNotFound):
		return apierror.NotFoundf("unknown_session", "", "The session's records are gone.")
	}
	return apierror.New(codes.Internal, "journal_failed", "The journal does not answer: %v.", err)
}
