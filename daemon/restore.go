// After a restart: sessions are there again, turns are ended, and every call that was open has its one result. Nothing
// runs a second time.

package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/daemon/convert"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fs/workspace"
)

// notRestored is a session that is not closed but could not be brought back.
type notRestored struct {
	info journal.Info
	why  error
}

// lostRetry is how often sessions are tried again that a full disk keeps from coming back. Each try is a transaction.
const lostRetry = time.Second

// restore brings back every session that is not closed. One that cannot be brought back is reported and left in the
// journal; the others serve.
func (x *sessionSet) restore() error {
	infos, err := x.d.journal.Logs()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if unborn, err := x.removeUnborn(info); err != nil {
			return err
		} else if !unborn && info.Sealed.IsZero() {
			x.notRestored[info.Name] = notRestored{info: info}
			if _, err := x.bringBack(info.Name); err != nil {
				x.d.Log.Warn("a session could not be brought back", zap.String("session", info.Name), zap.Error(err))
			}
		}
	}
	return nil
}

// removeUnborn removes a session that a daemon had not finished making when it died: it is empty, and no client knows of it.
func (x *sessionSet) removeUnborn(info journal.Info) (unborn bool, err error) {
	if info.Last > 0 {
		return false, nil
	}
	log, err := x.d.journal.Log(info.Name)
	if err != nil {
		return false, err
	}
	if state, err := log.State(""); err != nil || len(state) > 0 { // its records are lost, and not the rest
		return false, err
	}
	return true, x.d.journal.Remove(info.Name)
}

// missing returns the session of that name if it is not closed and could not be brought back.
func (x *sessionSet) missing(name string) (notRestored, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	found, missing := x.notRestored[name]
	return found, missing
}

// bringBack finds an open session, and restores one that could not be restored before; nil: none of that name is open.
func (x *sessionSet) bringBack(name string) (*session, error) {
	if s, ok := x.find(name); ok {
		return s, nil
	}
	s, err := x.retrieve(name)
	if s != nil && s.meta.Anonymous {
		s.close("the daemon was restarted") // which may wait for hooks
		return nil, nil
	}
	return s, err
}

// bringBackFor does so for a principal; nil: none of that name is open, or it belongs to another.
func (x *sessionSet) bringBackFor(who access.Principal, name string) (*session, error) {
	if _, missing := x.missing(name); missing && x.keptMeta(name).owner() != who {
		return nil, nil
	}
	s, err := x.bringBack(name)
	if s != nil && s.meta.owner() != who {
		return nil, nil
	}
	return s, err
}

// retrieve restores the session of that name if it is lost.
func (x *sessionSet) retrieve(name string) (*session, error) {
	x.making.Lock()
	defer x.making.Unlock()
	if s, ok := x.find(name); ok { // another was faster
		return s, nil
	}
	missing, found := x.missing(name)
	if !found {
		return nil, nil
	}
	if err := x.d.life.takesNew(); err != nil {
		return nil, err
	}
	s, err := x.restoreSession(missing.info)
	x.mu.Lock()
	if err != nil {
		x.notRestored[name] = notRestored{missing.info, err}
	} else {
		delete(x.notRestored, name)
		x.open[name] = s
	}
	x.mu.Unlock()
	if refused, is := errors.AsType[*apierror.Error](err); is {
		return nil, refused
	} else if err != nil {
		return nil, journalRefusal(err)
	}
	if !s.meta.Anonymous {
		s.notifier.startHooks(hook.Input{Event: hook.SessionStart, Source: "resume"}, "resume")
	}
	return s, nil
}

// bringBackAll tries to restore the sessions that a full disk has kept from it, and says whether there are any left.
func (x *sessionSet) bringBackAll() (left bool) {
	x.mu.Lock()
	var names []string
	for name, missing := range x.notRestored {
		if errors.Is(missing.why, journal.ErrFull) {
			names = append(names, name)
		}
	}
	x.mu.Unlock()
	for _, name := range names {
		_, err := x.bringBack(name)
		left = left || err != nil
	}
	return left
}

func (x *sessionSet) restoreSession(info journal.Info) (*session, error) {
	log, err := x.d.journal.Log(info.Name)
	if err != nil {
		return nil, err
	}
	rows, err := callRows(log)
	if err != nil {
		return nil, err
	}
	kept, err := log.State("")
	if err != nil {
		return nil, err
	}
	outputs, err := x.outputs(info.Name)
	if err != nil {
		return nil, err
	}
	w := crashedSession{name: info.Name, log: log, rows: rows, state: kept, outputs: outputs}
	if err := w.rebuild(); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	var about meta
	if err := json.Unmarshal(kept[keyMeta], &about); err != nil {
		return nil, fmt.Errorf("its description: %w", err)
	}
	places, err := openPlaces(about.Roots, x.d.locks)
	if err != nil {
		return nil, err
	}
	s, err := x.assemble(info.Name, about, log, places)
	if err != nil {
		return nil, err
	}
	s.created = info.Created
	s.update(func(its *state) {
		its.ledger.calls = rows
		for _, key := range w.inOrder() {
			its.ledger.remember(key, rows[key])
			its.ledger.lastTurn = max(its.ledger.lastTurn, rows[key].Turn)
		}
		err = s.recall(its, kept)
		s.account.Restore(quota.Options, optionBytes(its.options, nil))
	})
	if err == nil {
		err = s.checkpoints.completeCheckpoints(kept)
	}
	if err != nil {
		s.account.Close()
	}
	return s, err
}

// recall takes over the state that the journal kept.
func (s *session) recall(its *state, kept map[string][]byte) error {
	var wrong []error
	read := func(key string, into any) {
		if text, ok := kept[key]; ok {
			if err := json.Unmarshal(text, into); err != nil {
				wrong = append(wrong, fmt.Errorf("state %s: %w", key, err))
			}
		}
	}
	var lastTurn uint64
	var active []string
	read(keyDir, &its.shell.dir)
	read(keyExports, &its.shell.exports)
	read(keyTodos, &its.shell.todos)
	read(keyRules, &its.questions.remembered)
	read(keyAcked, &its.ledger.acked)
	read(keyActive, &active)
	its.toolset.dynamic = &dynamicTools{active: active}
	read(keyTurn, &lastTurn)
	its.ledger.lastTurn = max(its.ledger.lastTurn, lastTurn)
	if err := proto.Unmarshal(kept[keyOptions], its.options); err != nil {
		wrong = append(wrong, fmt.Errorf("state %s: %w", keyOptions, err))
	}
	seen := map[string]workspace.State{}
	for key := range kept {
		var offset int64
		var known workspace.State
		if task, ok := strings.CutPrefix(key, keyCursor); ok {
			read(key, &offset)
			its.shell.cursors[task] = offset
		} else if real, ok := strings.CutPrefix(key, keySeen); ok {
			read(key, &known)
			seen[real] = known
		}
	}
	s.judge.readState.Merge(seen)
	return errors.Join(wrong...)
}

// crashedSession is a session as the daemon's death has left it in the journal.
type crashedSession struct {
	name    string
	log     *journal.Log
	rows    map[string]*callRow // calls, by key
	state   map[string][]byte
	outputs *spool.Dir
}

// inOrder returns the keys of calls in the order in which they were accepted.
func (w *crashedSession) inOrder() []string {
	return slices.SortedFunc(maps.Keys(w.rows), func(a, b string) int { return w.rows[a].compare(w.rows[b]) })
}

// close returns every call that was open its result, every open turn its end, and tells the end of every background
// task, all at once.
func (w *crashedSession) finish() error {
	turns, err := w.openTurns()
	if err != nil {
		return err
	}
	var entries []journal.Entry
	for _, key := range w.inOrder() {
		t := turns[w.rows[key].Turn]
		if t == nil {
			continue
		}
		result, err := w.result(key, t)
		if err != nil {
			return err
		}
		entries = append(entries, result...)
	}
	for _, key := range slices.Sorted(maps.Keys(w.state)) {
		if id, ok := strings.CutPrefix(key, keyTask); ok {
			entries = append(entries, entry(nil, pipeline.Noticed{
				Code: "task_interrupted", Message: "The background task " + id + " was ended with the daemon. Nothing of it is still running.",
			}, journal.Put{Key: key}))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(turns)) {
		t := turns[number]
		wire := convert.Event(nil, t.end)
		wire.Turn, wire.TurnId = number, t.ID
		entries = append(entries, wireEntry(nil, wire, journal.Put{Key: turnKey(number)}))
	}
	if len(entries) == 0 {
		return nil
	}
	entries[0].Terminal = true // all of it, on a full disk too
	_, err = w.log.Append(entries...)
	return err
}

// crashedTurn is a turn that had not ended. How long it took is not known.
type crashedTurn struct {
	turnRow
	end pipeline.TurnEnded
}

func (w *crashedSession) openTurns() (map[uint64]*crashedTurn, error) {
	turns := map[uint64]*crashedTurn{}
	for key, text := range w.state {
		if !strings.HasPrefix(key, keyOpenTurn) {
			continue
		}
		t := &crashedTurn{end: pipeline.TurnEnded{Outcomes: map[pipeline.Outcome]int{}}}
		if err := json.Unmarshal(text, &t.turnRow); err != nil {
			return nil, fmt.Errorf("state %s: %w", key, err)
		}
		turns[t.Number] = t
	}
	return turns, nil
}

// result counts a call of t, and gives its result if it has none: the one that it had come to but that waited for
// earlier ones, else that it was interrupted.
func (w *crashedSession) result(key string, t *crashedTurn) ([]journal.Entry, error) {
	row := w.rows[key]
	records, err := w.log.Find(key)
	if err != nil {
		return nil, err
	}
	started := false
	outcome := pipeline.Interrupted
	for _, record := range records {
		wire, err := wireOf(record)
		if err != nil {
			return nil, err
		}
		started = started || wire.GetStarted() != nil
		t.end.Batches = max(t.end.Batches, int(wire.GetAccepted().GetBatch()))
		if result := wire.GetToolResult(); result != nil {
			outcome = pipeline.Outcome(result.GetOutcome())
		}
	}
	t.end.Calls++
	if !row.Open {
		t.end.Outcomes[outcome]++
		return nil, nil
	}
	row.Open = false
	use := &pipeline.Use{ID: row.ID, Key: key, Turn: row.Turn, TurnID: t.ID, Index: row.Index, Name: row.Name}
	result := entry(use, pipeline.Lost(started, w.outputOf(key), w.state[keyCheckpoint+key] != nil))
	if held, ok := w.state[keyEnding+key]; ok {
		wire, err := wireOf(journal.Record{Body: held})
		if err != nil {
			return nil, err
		}
		outcome = pipeline.Outcome(wire.GetToolResult().GetOutcome())
		result.Body = held
	}
	t.end.Outcomes[outcome]++
	row.Outcome = int(outcome)
	result.State = []journal.Put{putState(keyCall+key, row), {Key: keyEnding + key}}
	result.Durability = journal.Synced
	return []journal.Entry{result}, nil
}

// outputOf names the file with what a call had printed; empty: there is none.
func (w *crashedSession) outputOf(key string) string {
	out, err := w.outputs.Find(outputName(w.name, key))
	if err != nil {
		return ""
	}
	return out.Path()
}
