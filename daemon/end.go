// A call as its session sees it: its turn comes, it starts, prints, and ends. These are the methods
// that the pipeline calls; all records of a call but the first are made here. Of what a call prints
// there is one bounded state, of which the newest counts; the bytes themselves are in the output
// file.

package daemon

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// A recorder records how calls begin and end, and applies what they leave behind.
type recorder struct {
	s       *session
	passed  passedOn
	skipped struct { // calls whose turn never came
		recording  sync.Mutex // held while their results are recorded, so that their order holds
		sync.Mutex            // guards noted
		noted      []ending   // whose result is still to be recorded
	}
}

// ending is a call that has ended, or a tool use that could not become one.
type ending struct {
	call    *pipeline.Call // nil: it could not become one
	use     *pipeline.Use
	ended   pipeline.Ended
	read    map[string]workspace.State // what it has seen of files, by real path
	kept    *journal.Put               // what it has changed of files; nil: nothing that was kept
	changed []journal.Entry            // tells what it and others have left behind in the session
}

// Begin records that the call's turn has come, and returns what it runs with and is judged by.
func (rec *recorder) Begin(c *pipeline.Call) (*tools.Env, pipeline.Rights) {
	s := rec.s
	env, rights := s.judge.Peek(c)
	env.Spool = s.outputs.Limited(s.judge.latest().settings.Limits.OutputBytes)
	env.Deferred = func() []tools.Spec { return s.tools.pool(s.tools.optionsOf(c)).Deferrable() }
	env.Output = func(out *spool.Output) { rec.outputCreated(c, out) }
	env.Report = func(step tools.Step) { rec.stepped(c.Key, step) }
	env.First = rec.first
	env.Parts = func(parts []tools.Part) []tools.PartEnd { return s.runParts(c, parts) }
	rec.s.update(func(its *state) {
		if t := its.ledger.turns[c.Use.Turn]; t != nil {
			env.OnTimeout = convert.OnTimeout(t.options)
		}
		its.ledger.running++
		its.shell.given[c.Key] = env.Environ
		env.Trace = its.ledger.calls[c.Key].watched.trace
	})
	return env, rights
}

// Policy is the sibling abort policy of the call's turn. The failure of a part stops nothing.
func (i *intake) Policy(c *pipeline.Call) pipeline.Policy {
	if c.Use.Parent != "" && i.s.isPart(c) {
		return pipeline.AbortOnNone
	}
	return convert.Policy(i.s.tools.optionsOf(c))
}

// Start records that the call begins to act. For a call that can have effects it returns when the
// record is on disk, in a file that is where the next daemon will look for it.
func (rec *recorder) Start(c *pipeline.Call, started pipeline.Started) error {
	e := entry(&c.Use, started)
	if !c.ReadOnly() {
		e.Durability = journal.Synced
	}
	before, err := rec.s.keepBefore(c, started.Tier)
	if err != nil {
		return rec.orJournalGone(err)
	}
	defer before.release()
	e.State = before.state()
	var pending *journal.Pending // nil: the record is postponed
	rec.s.updateBehind(func(its *state) {
		its.ledger.live[c.Key] = &live{use: &c.Use, since: time.Now(), kept: before.row, recording: before.recording, loads: started.Loads || its.ledger.insideLoad(&c.Use)}
		if rec.s.mayPostponeStart(c, started.Tier, its.ledger.turns[c.Use.Turn]) {
			its.ledger.postpone(e, rec.s.flushLater)
			return
		}
		pending = its.ledger.stage(e)
	}, c.Key)
	if pending == nil {
		return nil
	}
	kept := before.synced() // while the journal is at it too
	if _, err := pending.Wait(); err != nil {
		return diskFault(err)
	}
	if c.ReadOnly() {
		return nil
	}
	return rec.orJournalGone(kept)
}

// orJournalGone returns err, or that the journal is gone: then whatever else was wrong follows from
// that.
func (rec *recorder) orJournalGone(err error) error {
	if gone := rec.s.daemon.journal.Present(); gone != nil {
		return diskFault(gone)
	}
	return err
}

// diskFault puts an error of the journal into words for a call that had no effect yet.
func diskFault(err error) *fault.Error {
	if errors.Is(err, journal.ErrFull) {
		return fault.Failedf("disk_full", "The disk that holds the daemon's journal is full, so the call was not started. Free some space and send it again under a new id.")
	}
	if gone, is := errors.AsType[*journal.GoneError](err); is {
		return fault.Failedf("journal_gone", "The call was not started, because no record of it would be kept: %s. Send it again under a new id when that is done.", goneText(gone))
	}
	return fault.Failedf("journal_failed", "The daemon could not record the call (%v), so it was not started.", err)
}

// End records the call's result and applies what it leaves behind.
func (rec *recorder) End(c *pipeline.Call, ended pipeline.Ended, seen map[string]workspace.State) {
	rec.s.judge.readState.Merge(seen)
	rec.s.requests.watchAlso(maps.Keys(seen))
	l := view(rec.s, func(its *state) *live { return its.ledger.live[c.Key] })
	kept, recorded := rec.s.keepAfter(c, l)
	defer recorded()
	if note := rec.notKept(c, l); note != "" {
		ended.Content = append(slices.Clip(ended.Content), tools.Block{Text: note})
	}
	var changed []journal.Entry
	rec.s.update(func(its *state) {
		ended.Usage.OutputBytes = its.ledger.live[c.Key].printed()
		changed = rec.changesOf(its, c, ended.Changes)
		if its.shell.tell != "" {
			ended.Content = append(slices.Clip(ended.Content), tools.Block{Text: "Note: " + its.shell.tell})
			its.shell.tell = ""
			its.ledger.log.Keep(journal.Committed, journal.Put{Key: keyTell})
		}
		rec.s.requests.checkFilesLater(its)
	})
	rec.conclude(ending{c, &c.Use, ended, seen, kept, changed})
}

// changesOf applies what a call changes in the session, and returns the record of it: at once
// if the call is serial or those that depend on the change wait for it, otherwise together with
// those that ran beside it, in the order in which they were sent.
func (rec *recorder) changesOf(its *state, c *pipeline.Call, changes tools.Changes) []journal.Entry {
	its.ledger.running--
	if its.ledger.calls[c.Key].part != nil { // it began where its parent does, and so does what comes next
		changes.Dir, changes.Exports = "", nil
	}
	mine := change{&c.Use, changes, its.shell.given[c.Key]}
	delete(its.shell.given, c.Key)
	its.ledger.deferred = append(its.ledger.deferred, mine)
	if its.ledger.running > 0 && c.Concurrent() && convert.Ordering(its.ledger.turns[c.Use.Turn].options) == scheduler.Batched {
		return nil
	}
	batch := its.ledger.deferred
	its.ledger.deferred = nil
	slices.SortFunc(batch, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.use.Turn, b.use.Turn), cmp.Compare(a.use.Index, b.use.Index))
	})
	return rec.apply(its, batch)
}

// Skipped records the result of a call whose turn never came. It is called under the
// scheduler's lock and only notes it.
func (rec *recorder) Skipped(c *pipeline.Call, ended pipeline.Ended) {
	rec.skipped.Lock()
	defer rec.skipped.Unlock()
	rec.skipped.noted = append(rec.skipped.noted, ending{call: c, use: &c.Use, ended: ended})
	if len(rec.skipped.noted) == 1 {
		rec.s.work.Go(rec.recordSkipped)
	}
}

// recordSkipped records the results of calls whose turn never came, in their order.
func (rec *recorder) recordSkipped() {
	rec.skipped.recording.Lock()
	defer rec.skipped.recording.Unlock()
	rec.skipped.Lock()
	noted := rec.skipped.noted
	rec.skipped.noted = nil
	rec.skipped.Unlock()
	for len(noted) > 0 {
		turn := noted[0].use.Turn
		same := slices.IndexFunc(noted, func(e ending) bool { return e.use.Turn != turn })
		if same < 0 {
			same = len(noted)
		}
		rec.conclude(noted[:same]...)
		noted = noted[same:]
	}
}

// conclude records results of one turn, with the state that changes together with them, and then
// takes their calls out of the turn. When it returns they are recorded, or the journal is no more.
func (rec *recorder) conclude(endings ...ending) {
	t := view(rec.s, func(its *state) *turn { return its.ledger.turns[endings[0].use.Turn] })
	rec.watch(endings)
	if t.ordered != nil {
		t.ordered.recording.Lock() // so that none overtakes one that waits for a full disk
		defer t.ordered.recording.Unlock()
	}
	var w writing
	var pending *journal.Pending
	var over, others bool
	keys := make([]string, 0, len(endings))
	for _, e := range endings {
		keys = append(keys, e.use.Key)
	}
	rec.s.updateBehind(func(its *state) {
		for _, e := range endings {
			rec.s.asker.withdrawOf(its, e.use, "its call has ended")
			w.add(t, e.use, rec.result(its, t, e))
			w.entries = append(w.entries, e.changed...)
			t.outcomes[e.ended.Outcome]++
			t.work += e.ended.Usage.Ran
		}
		if over = rec.endsWith(t, endings); over { // its end is one write with the last result
			t.over = true
			w.entries = append(w.entries, rec.endOf(its, t))
		}
		pending = w.to(&its.ledger)
		others = t.ordered == nil && (len(t.open) > len(endings) || len(its.ledger.turns) > 1)
	}, keys...)
	if others {
		runtime.Gosched() // calls that are about to end too, of this turn or another, mostly get into the same transaction then
	}
	if !rec.keep(pending, w.to) {
		return
	}
	rec.s.update(func(its *state) {
		for _, e := range endings {
			rec.remove(its, t, e)
		}
		if over {
			its.forget(t)
		}
		its.ledger.wakeWaiters()
	})
}

// result makes the record of a result. Those of an ordered turn are not written in the order in which they are made, so that
// what such a call has read is recorded always.
func (rec *recorder) result(its *state, t *turn, e ending) journal.Entry {
	if e.ended.Stack != nil {
		rec.s.daemon.Log.Error("a tool panicked", zap.String("tool", e.use.Name), zap.String("session", rec.s.name), zap.ByteString("stack", e.ended.Stack))
	}
	row := its.ledger.calls[e.use.Key]
	row.Open, row.Outcome = false, int(e.ended.Outcome)
	var state []journal.Put
	for real, seen := range e.read {
		put := putState(keySeen+real, seen)
		if t.ordered != nil {
			delete(its.ledger.recorded, put.Key)
		} else if !its.ledger.noteRead(put) {
			continue
		}
		state = append(state, put)
	}
	if e.kept != nil {
		state = append(state, *e.kept)
	}
	if task := e.ended.Changes.Task; task != "" {
		state = append(state, rec.s.tasks.taskStarted(task)...)
	}
	entry := entry(e.use, e.ended, state...)
	entry.Note = asState(row)
	if its.ledger.live[e.use.Key] != nil && !e.call.ReadOnly() {
		entry.Durability = journal.Synced
	}
	return entry
}

// writing is what is to be written at once: records, or, when all of them wait for earlier ones,
// state alone.
type writing struct {
	entries    []journal.Entry
	held       []journal.Put
	durability journal.Durability // of held
}

// add takes a result, and those that it releases. Under Options.ordered_results it is held back as
// long as an earlier one of the turn is missing; the ending itself is kept until then.
func (w *writing) add(t *turn, use *pipeline.Use, result journal.Entry) {
	if t.ordered == nil {
		w.entries = append(w.entries, result)
		return
	}
	key := keyEnding + use.Key
	ending := journal.Put{Key: key, Value: result.Body}
	durability := result.Durability
	result.State = append(result.State, journal.Put{Key: key})
	released := t.ordered.add(use.Index, result)
	w.entries = append(w.entries, released...)
	if len(released) == 0 {
		w.held = append(w.held, ending)
		w.durability = max(w.durability, durability)
	}
}

// to writes. It may be called again when the disk was full.
func (w *writing) to(l *ledger) *journal.Pending {
	if len(w.entries) == 0 {
		return l.hold(w.durability, w.held...)
	}
	w.entries[0].State = append(w.entries[0].State, w.held...)
	w.entries[0].Durability = max(w.entries[0].Durability, w.durability)
	w.held = nil
	return l.stage(w.entries...)
}

// keep waits until something is in the journal, and writes it again for as long as the disk is
// full: a result is never lost. False: the journal takes nothing any more, which every stream is
// told unless the daemon is ending.
func (rec *recorder) keep(pending *journal.Pending, write func(*ledger) *journal.Pending) bool {
	_, err := pending.Wait()
	for errors.Is(err, journal.ErrFull) {
		select {
		case <-time.After(fullRetry):
		case <-rec.s.daemon.life.atOnce:
			return false
		}
		_, err = view(rec.s, func(its *state) *journal.Pending {
			clear(its.ledger.recorded) // another call's may have been written in between
			return write(&its.ledger)
		}).Wait()
	}
	if err == nil {
		return true
	}
	if !errors.Is(err, journal.ErrClosed) {
		rec.s.daemon.Log.Error("a result could not be recorded", zap.String("session", rec.s.name), zap.Error(err))
		for _, stream := range rec.s.attachments.attached() {
			stream.finish(journalRefusal(err))
		}
	}
	return false
}

// fullRetry is how long a result waits before it is written to a full disk again.
const fullRetry = 250 * time.Millisecond
