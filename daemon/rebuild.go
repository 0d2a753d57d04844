// Calls whose row in the session's state is lost to damage, made again from their records: a tool use that was
// accepted is not run again, whatever was lost.

package daemon

import (
	"encoding/json"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/pipeline"
)

// rebuild makes the rows that are missing, and the marks of their turns that have not ended. What a call was sent with is
// not known any more, so its id stands for any content.
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
			text, err := json.Marshal(turnRow{row.Turn, row.TurnID})
			if err != nil {
				return err
			}
			w.state[mark] = text
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
