// Sessions that a daemon's death has left in the middle: every call that was open gets its one
// result and every open turn its end. Calls whose row in the session's state is lost to damage are
// made again from their records: a tool use that was accepted is not run again, whatever was lost.

package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fs/workspace"
)

// crashedSession is a session as the daemon's death has left it in the journal.
type crashedSession struct {
	name    string
	log     *journal.Log
	rows    map[string]*callRow // calls, by key
	state   map[string][]byte
	outputs *spool.Dir
	files   *workspace.View // for looking at files; it opens nothing else
	moved   mirror.Moved    // what it has lost on its way here; empty: it was here, or has come whole
}

// inOrder returns the keys of calls in the order in which they were accepted.
func (w *crashedSession) inOrder() []string {
	return slices.SortedFunc(maps.Keys(w.rows), func(a, b string) int { return w.rows[a].compare(w.rows[b]) })
}

// finish records a result for every call that was open, an end for every open turn, and a notice
// for every background task, all at once.
func (w *crashedSession) finish() error {
	turns, err := w.openTurns()
	if err != nil {
		return err
	}
	entries, err := w.arrive()
	if err != nil {
		return err
	}
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

// arrive returns the notice of what the session has lost on its way from another place, which its model is told as well.
func (w *crashedSession) arrive() ([]journal.Entry, error) {
	text, is := w.state[mirror.MovedKey]
	if !is {
		return nil, nil
	}
	if err := json.Unmarshal(text, &w.moved); err != nil {
		return nil, fmt.Errorf("state %s: %w", mirror.MovedKey, err)
	}
	told := putState(keyTell, w.moved.Message)
	w.state[keyTell] = told.Value
	return []journal.Entry{entry(nil, pipeline.Noticed{Code: w.moved.Code, Message: w.moved.Message}, journal.Put{Key: mirror.MovedKey}, told)}, nil
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
		t := &crashedTurn{end: pipeline.TurnEnded{Outcomes: map[pipeline.Outcome]int{}, Interrupted: true}}
		if err := json.Unmarshal(text, &t.turnRow); err != nil {
			return nil, fmt.Errorf("state %s: %w", key, err)
		}
		turns[t.Number] = t
	}
	return turns, nil
}

// result counts a call of t, and returns its result if it has none: the one that it had come to but
// that waited for earlier ones, else that it was interrupted.
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
	result := entry(use, pipeline.Lost(pipeline.Loss{
		Code: w.moved.Code, Started: started, Output: w.outputOf(key), Kept: w.state[keyCheckpoint+key] != nil, Changed: w.changedBy(key),
	}))
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
	result.Note, result.State = asState(row), []journal.Put{{Key: keyEnding + key}}
	result.Durability = journal.Synced
	return []journal.Entry{result}, nil
}

// mostCompared is how many files of a call are compared with what was kept of them. Ours: as many as
// one patch changes, and few enough to be read while the daemon starts.
const mostCompared = 256

// changedBy names the files that a call was about to change and that are different now, as a clause;
// empty: none is, or it is not known.
func (w *crashedSession) changedBy(key string) string {
	row, err := checkpoint.Decode(w.state[keyCheckpoint+key])
	if err != nil {
		return ""
	}
	var names []string
	for _, f := range row.Files[:min(len(row.Files), mostCompared)] {
		if f.Before.Kind == workspace.Unkept || f.Before.Kind == workspace.Directory {
			continue
		}
		now, err := w.files.Snapshot(workspace.Snapshotter{}, string(f.Real))
		if err == nil && now.Kind != workspace.Directory && !now.Same(f.Before) {
			names = append(names, convert.Clean(string(f.Real)))
		}
	}
	return someOf(names)
}

// outputOf names the file with what a call had printed; empty: there is none.
func (w *crashedSession) outputOf(key string) string {
	out, err := w.outputs.Find(outputName(w.name, key))
	if err != nil {
		return ""
	}
	return out.Path()
}

// rebuild makes the rows that are missing, and the marks of their turns that have not ended. What a
// call was sent with is not known any more, so its id stands for any content.
func (w *crashedSession) rebuild() error {
	known := 0
	for key := range w.rows {
		kept, err := w.log.Has(key)
		if err != nil {
			return err
		}
		if kept {
			known++
		}
	}
	if calls, err := w.log.Calls(); err != nil || known >= calls {
		return err
	}
	cursor := w.log.Follow(0)
	defer cursor.Close()
	made := map[string]*callRow{}
	for {
		records, err := cursor.Next()
		if err != nil {
			return err
		}
		for _, record := range records {
			if w.rows[record.Call] == nil && record.Call != "" {
				if err := rowFrom(made, record); err != nil {
					return err
				}
			}
		}
		if len(records) == 0 {
			break
		}
	}
	for key, row := range made {
		w.rows[key] = row
		if mark := turnKey(row.Turn); row.Open && w.state[mark] == nil {
			w.state[mark] = putState(mark, turnRow{row.Turn, row.TurnID}).Value
		}
	}
	return nil
}

// rowFrom takes over what a record says of its call.
func rowFrom(made map[string]*callRow, record journal.Record) error {
	wire, err := wireOf(record)
	if err != nil {
		return err
	}
	row := made[record.Call]
	if row == nil {
		row = &callRow{Turn: wire.GetTurn(), TurnID: wire.GetTurnId(), Open: true}
		made[record.Call] = row
	}
	if a := wire.GetAccepted(); a != nil {
		row.ID, row.Index, row.Name = a.GetToolUseId(), int(a.GetIndex()), a.GetName()
	}
	if r := wire.GetToolResult(); r != nil {
		row.ID, row.Index, row.Open, row.Outcome = r.GetToolUseId(), int(r.GetIndex()), false, int(r.GetOutcome())
		row.Free = pipeline.Outcome(r.GetOutcome()) == pipeline.Discarded
	}
	return nil
}
