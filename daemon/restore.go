package daemon

// After a restart: sessions are there again, turns are ended, and every call that was open has its one result. Nothing
// runs a second time.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/workspace"
)

// restore brings back every session that is not closed. One that cannot be brought back is reported and left in the
// journal; the others serve.
func (d *Daemon) restore() error {
	infos, err := d.journal.Logs()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if !info.Sealed.IsZero() {
			continue
		}
		s, err := d.restoreSession(info)
		if err != nil {
			d.warnings = append(d.warnings, fmt.Sprintf("session %q could not be brought back: %v", info.Name, err))
			d.Log.Warn("a session could not be brought back", zap.String("session", info.Name), zap.Error(err))
			continue
		}
		d.sessions[s.name] = s
		if s.meta.Anonymous {
			s.close("the daemon was restarted")
		}
	}
	return nil
}

func (d *Daemon) restoreSession(info journal.Info) (*session, error) {
	log, err := d.journal.Log(info.Name)
	if err != nil {
		return nil, err
	}
	rows, err := callRows(log)
	if err != nil {
		return nil, err
	}
	state, err := log.State("")
	if err != nil {
		return nil, err
	}
	if err := interrupted(log, rows, state); err != nil {
		return nil, err
	}
	var about meta
	if err := json.Unmarshal(state[keyMeta], &about); err != nil {
		return nil, fmt.Errorf("its description: %w", err)
	}
	s, err := d.assemble(info.Name, log, about)
	if err != nil {
		return nil, err
	}
	s.created = info.Created
	for _, key := range inOrder(rows) {
		s.remember(key, rows[key])
		s.lastTurn = max(s.lastTurn, rows[key].Turn)
		if rows[key].ID == "" {
			s.forget(key)
		}
	}
	return s, s.recall(state)
}

// recall takes over the state that the journal kept.
func (s *session) recall(state map[string][]byte) error {
	var wrong []error
	read := func(key string, into any) {
		if text, ok := state[key]; ok {
			if err := json.Unmarshal(text, into); err != nil {
				wrong = append(wrong, fmt.Errorf("state %s: %w", key, err))
			}
		}
	}
	var lastTurn uint64
	read(keyDir, &s.dir)
	read(keyExports, &s.exports)
	read(keyTodos, &s.todos)
	read(keyTurn, &lastTurn)
	s.lastTurn = max(s.lastTurn, lastTurn)
	if err := proto.Unmarshal(state[keyOptions], s.options); err != nil {
		wrong = append(wrong, fmt.Errorf("state %s: %w", keyOptions, err))
	}
	seen := map[string]workspace.State{}
	for key := range state {
		if task, ok := strings.CutPrefix(key, keyCursor); ok {
			var offset int64
			read(key, &offset)
			s.cursors[task] = offset
		}
		if real, ok := strings.CutPrefix(key, keySeen); ok {
			var known workspace.State
			read(key, &known)
			seen[real] = known
		}
	}
	s.memory.Merge(seen)
	return errors.Join(wrong...)
}

// inOrder gives the keys of calls in the order in which they were accepted.
func inOrder(rows map[string]*callRow) (keys []string) {
	for key := range rows {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if rows[a].before(rows[b]) {
			return -1
		}
		return 1
	})
	return keys
}

// interrupted gives every call that was open when the daemon died its result, every open turn its end, and tells the
// end of every background task.
func interrupted(log *journal.Log, rows map[string]*callRow, state map[string][]byte) error {
	s := &session{log: log}
	var entries []journal.Entry
	outcomes := map[uint64]map[pipeline.Outcome]int{}
	for _, key := range inOrder(rows) {
		row := rows[key]
		if _, open := state[turnKey(row.Turn)]; !open {
			continue
		}
		if outcomes[row.Turn] == nil {
			outcomes[row.Turn] = map[pipeline.Outcome]int{}
		}
		records, err := log.Find(key)
		if err != nil {
			return err
		}
		if !row.Open {
			outcomes[row.Turn][outcomeOf(records)]++
			continue
		}
		started := slices.ContainsFunc(records, func(r journal.Record) bool { return r.Kind == kindStarted })
		use := &pipeline.Use{ID: row.ID, Key: key, Turn: row.Turn, TurnID: row.TurnID, Index: row.Index, Name: row.Name}
		row.Open = false
		e := s.entry(use, pipeline.Lost(started, ""), put(keyCall+key, row))
		e.Durability = journal.Synced
		entries = append(entries, e)
		outcomes[row.Turn][pipeline.Interrupted]++
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if id, ok := strings.CutPrefix(key, keyTask); ok {
			entries = append(entries, s.entry(nil, pipeline.Noticed{
				Code: "task_interrupted", Message: "The background task " + id + " was ended with the daemon. Nothing of it is still running.",
			}, journal.Put{Key: key}))
		}
		if !strings.HasPrefix(key, keyOpenTurn) {
			continue
		}
		var t turnRow
		if err := json.Unmarshal(state[key], &t); err != nil {
			return fmt.Errorf("state %s: %w", key, err)
		}
		entries = append(entries, s.wireEntry(nil, endOfTurn(t, outcomes[t.Number]), journal.Put{Key: key}))
	}
	if len(entries) == 0 {
		return nil
	}
	_, err := log.Append(entries...)
	return err
}

// endOfTurn makes the record of a turn that the daemon's death has ended. How long it took is not known.
func endOfTurn(t turnRow, outcomes map[pipeline.Outcome]int) *tooldv1.ExecuteResponse {
	calls := 0
	for _, n := range outcomes {
		calls += n
	}
	wire := eventOf(nil, pipeline.TurnEnded{Calls: calls, Outcomes: outcomes})
	wire.Turn, wire.TurnId = t.Number, t.ID
	return wire
}

// outcomeOf reads a call's outcome from its records.
func outcomeOf(records []journal.Record) pipeline.Outcome {
	for _, record := range slices.Backward(records) {
		if record.Kind == kindResult {
			if wire, err := wireOf(record); err == nil {
				return pipeline.Outcome(wire.GetToolResult().GetOutcome())
			}
		}
	}
	return pipeline.Interrupted
}
