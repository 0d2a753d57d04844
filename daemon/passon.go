// Sessions that another program goes on with. They rest, as unused ones do, with what is under way beside them: open turns, calls that
// have not started, questions. Nothing of these ends in this program, and each call runs in one of the two.

package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
)

// passedOn are the calls of a session that another program goes on with.
type passedOn struct {
	mu    sync.Mutex
	calls []*pipeline.Call
}

// PassedOn notes that the call goes on in another program.
func (rec *recorder) PassedOn(c *pipeline.Call) {
	rec.passed.mu.Lock()
	defer rec.passed.mu.Unlock()
	rec.passed.calls = append(rec.passed.calls, c)
}

// suspend has the session rest with all that is under way in it. It is marked as passing, so nothing runs. Nil: it has ended otherwise, or
// with the error; then the next program restores it as after a restart.
func (s *session) suspend() (*resting, error) {
	var before bool
	var env map[string]string
	s.intake.alone(func(inlet) {
		s.update(func(its *state) {
			before, its.stopping, its.resting = its.stopping, true, true
			env = its.shell.vars.client
			for _, a := range its.questions.asked {
				if a.use == nil { // about a server, which is asked about when a client attaches
					s.asker.withdraw(its, a, errMoot, "the daemon is being upgraded")
				}
			}
		})
	})
	if before {
		<-s.gone
		return nil, nil
	}
	for _, t := range view(s, func(its *state) []*turn { return its.ledger.openTurns() }) {
		t.stopped = stopOf(s.queue.Stopped(t.number))
	}
	listed := inList(s.describe())
	attached, awaited := view(s, func(its *state) bool { return its.clients.main != nil }), s.intake.pause.awaitsClient()
	s.halt(pipeline.ErrPassedOn)
	box, err := seal(s.daemon.inState(restingDir), env)
	var r *resting
	if err = errors.Join(err, s.written()); err == nil {
		s.update(func(its *state) {
			r = s.restingOf(its, listed, box)
			if attached {
				r.detached = time.Now()
			}
			r.open = s.openWork(its, attached || awaited)
		})
	} else if box != nil {
		box.Remove()
	}
	for _, stream := range s.attachments.attached() {
		stream.finish(s.daemon.life.endError())
	}
	s.release()
	close(s.gone)
	return r, err
}

// stopOf returns the cause with which calls are skipped as one that can be passed on.
func stopOf(cause error) *pipeline.Stop {
	if stop, is := errors.AsType[*pipeline.Stop](cause); is || cause == nil {
		return stop
	}
	return &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: cause.Error()}
}

// openWork returns what is under way; nil: nothing is.
func (s *session) openWork(its *state, attached bool) *openWork {
	w := &openWork{Attached: attached}
	for _, t := range its.ledger.openTurns() {
		if !t.over {
			w.Turns = append(w.Turns, s.passedTurn(its, t))
		}
	}
	s.recorder.passed.mu.Lock()
	calls := s.recorder.passed.calls
	s.recorder.passed.mu.Unlock()
	slices.SortFunc(calls, func(a, b *pipeline.Call) int {
		return cmp.Or(cmp.Compare(a.Use.Turn, b.Use.Turn), cmp.Compare(a.Use.Index, b.Use.Index))
	})
	for _, c := range calls {
		w.Calls = append(w.Calls, passedCallOf(its, c))
	}
	for _, d := range its.ledger.deferred {
		w.Deferred = append(w.Deferred, passedChange{*d.use, d.changes, d.given})
	}
	if len(w.Turns) == 0 {
		return nil
	}
	return w
}

func (s *session) passedTurn(its *state, t *turn) passedTurn {
	options, err := proto.Marshal(t.options)
	if err != nil {
		panic("BUG: options that cannot be marshalled: " + err.Error())
	}
	p := passedTurn{
		Number: t.number, ID: t.id, Options: options, Begun: t.begun, Calls: t.calls, Batches: t.batches, Numbering: t.numbering[""],
		Takes: its.ledger.open == t, Ended: t.ended, Outcomes: t.outcomes, Work: t.work, HookCalls: t.hookCalls, Stopped: t.stopped,
	}
	if t.ordered != nil {
		p.Next, p.Waiting = t.ordered.next, t.ordered.waiting
	}
	return p
}

// goOn goes on with what was under way in a session that was just put together. Calls begin when its client is back, or after the
// time that one has which went away.
func (s *session) goOn(w *openWork) {
	if w.Attached {
		s.intake.pause.awaitClient(s.daemon.grace)
	}
	s.update(func(its *state) {
		for _, d := range w.Deferred {
			its.ledger.deferred = append(its.ledger.deferred, change{&d.Use, d.Changes, d.Given})
		}
		switch {
		case !s.attachments.keeps(its):
			s.attachments.checkAt(its, time.Now().Add(s.daemon.grace))
		case its.questions.canAsk:
			s.attachments.checkAt(its, its.clients.detached.Add(max(s.daemon.limits.DetachedQuestion, s.daemon.grace)))
		}
	})
	s.intake.alone(func(in inlet) {
		for _, p := range w.Turns {
			in.goOnTurn(p, w.Calls)
		}
	})
}

// goOnTurn opens the turn again, with its calls.
func (in inlet) goOnTurn(p passedTurn, calls []passedCall) {
	options := &tooldv1.Options{}
	if err := proto.Unmarshal(p.Options, options); err != nil {
		in.s.daemon.Log.Error("options of an open turn are lost", zap.String("session", in.s.name), zap.Error(err))
	}
	t := &turn{
		number: p.Number, id: p.ID, options: options, begun: p.Begun, calls: p.Calls, batches: p.Batches, ended: p.Ended, work: p.Work, stopped: p.Stopped,
		numbering: map[string]scheduler.Numbering{"": p.Numbering}, open: map[string]string{}, outcomes: map[pipeline.Outcome]int{}, hookCalls: map[int]hook.Call{},
	}
	maps.Copy(t.outcomes, p.Outcomes)
	maps.Copy(t.hookCalls, p.HookCalls)
	if options.GetOrderedResults() {
		t.ordered = &ordered{next: p.Next, waiting: map[int]journal.Entry{}}
		maps.Copy(t.ordered.waiting, p.Waiting)
	}
	mine := slices.DeleteFunc(slices.Clone(calls), func(c passedCall) bool { return c.Use.Turn != p.Number })
	in.s.update(func(its *state) {
		its.ledger.turns[t.number] = t
		if p.Takes {
			its.ledger.open = t
		}
		for _, c := range mine {
			t.open[c.Use.Key] = c.Use.ID
			row := its.ledger.calls[c.Use.Key]
			row.size = len(c.Input)
			its.ledger.openSize += row.size
		}
	})
	in.order(t)
	for _, c := range mine {
		in.goOnCall(t, c)
	}
	if t.stopped != nil {
		in.s.queue.StopTurn(t.number, t.stopped, func(scheduler.Task) bool { return false })
	}
	if t.ended {
		in.s.queue.EndTurn(t.number)
		in.s.update(func(its *state) { in.s.recorder.finishTurn(its, t) })
	}
}

// goOnCall makes the call again, and has it wait for its turn.
func (in inlet) goOnCall(t *turn, p passedCall) {
	s := in.s
	tool := in.viewerOf(&request{use: withInput(p.Use, p.Input), listing: p.Listing}, s.tools.lookUp(p.Use.Name, t.options), t.options)
	var call *pipeline.Call
	var refused *pipeline.Ended
	if tool == nil {
		refused = new(pipeline.Refuse(s.tools.unknownTool(p.Use.Name, t.options)))
	} else {
		call, refused = pipeline.GoOn(p.Passed, tool, s.forCalls())
	}
	s.update(func(its *state) {
		row := its.ledger.calls[p.Use.Key]
		row.watched = s.daemon.watchCall(tool, p.Trace)
		row.watched.accepted = p.Accepted
		if a := p.Asked; a != nil && call != nil {
			its.questions.asked[p.Use.Key] = s.asker.askedBefore(a, call)
		}
	})
	if call == nil {
		use := p.Use
		s.work.Go(func() { s.recorder.conclude(ending{use: &use, ended: *refused}) })
		return
	}
	if convert.Ordering(t.options) == scheduler.Dependency {
		pipeline.Arrange(call)
	}
	s.queue.Add(call, "")
	s.asker.askAhead(call)
}

// withInput returns the use with its input.
func withInput(use pipeline.Use, input string) pipeline.Use {
	use.Input = json.RawMessage(input)
	return use
}

// askedBefore returns the question that the program before has asked. The call that asks the same takes it over.
func (ask *asker) askedBefore(p *passedAsked, c *pipeline.Call) *asked {
	q := pipeline.Question{ID: p.ID, Tool: p.Tool, Title: p.Title, Digest: p.Digest, Shown: p.Shown, Touched: p.Touched, Suggestions: p.Suggestions}
	q.Verdict.Text, q.Verdict.Level = p.Text, p.Level
	about := ask.ofCall(c, q)
	about.decided = nil // its facts are known when it is judged again
	a := &asked{subject: about, question: q, settled: make(chan struct{}), done: p.Yes, input: p.Input}
	if p.Yes {
		close(a.settled)
	}
	return a
}

// inherit has the sessions rest that the program before has passed on. Those that cannot are restored as after a restart.
func (x *sessionSet) inherit(all []passedSession) {
	for _, p := range all {
		r, err := restingFrom(p, x.d.inState(restingDir))
		if err != nil {
			x.d.Log.Error("what was under way in a session is lost", zap.String("session", p.Name), zap.Error(err))
			continue
		}
		x.resting[p.Name] = r
	}
}

// goOn brings the sessions back in which something is under way.
func (x *sessionSet) goOn() {
	for _, r := range x.allAtRest() {
		if r.open == nil {
			continue
		}
		if _, err := x.retrieve(r.info.Name, forDaemon); err != nil {
			x.d.Log.Error("a session could not be gone on with", zap.String("session", r.info.Name), zap.Error(err))
		}
	}
}

// suspend has all sessions rest, for another program, and returns them.
func (x *sessionSet) suspend() (all []passedSession) {
	var suspending sync.WaitGroup
	for _, s := range x.all() {
		suspending.Go(func() {
			if s.meta.Anonymous {
				s.attachments.leave(&pipeline.Stop{Outcome: pipeline.Interrupted, Reason: "the daemon is being upgraded"})
				return
			}
			r, err := s.suspend()
			if err != nil {
				x.d.Log.Error("what was under way in a session is lost", zap.String("session", s.name), zap.Error(err))
			}
			if r != nil {
				x.mu.Lock()
				delete(x.open, s.name)
				x.resting[s.name] = r
				x.mu.Unlock()
			}
		})
	}
	suspending.Wait()
	for _, r := range x.allAtRest() {
		p, err := r.passed()
		if err != nil {
			x.d.Log.Error("not all that a session has can be passed on", zap.String("session", r.info.Name), zap.Error(err))
		}
		all = append(all, p)
	}
	return all
}
