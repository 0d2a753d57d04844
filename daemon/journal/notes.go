// A session's state: a table of keys and values, and the notes of calls. A note stands in the row of
// its record, and moves into the table when that is dropped, so that the state of a call is kept by
// the write that keeps its records.

package journal

import "strings"

// noted is a value of the state, and the number of the record that it came with.
type noted struct {
	value []byte
	at    uint64
}

// State returns the session's state under keys that begin with prefix.
func (l *Log) State(prefix string) (map[string][]byte, error) {
	if err := l.present(); err != nil {
		return nil, err
	}
	notes := map[string]noted{}
	if strings.HasPrefix(prefix, Notes) || strings.HasPrefix(Notes, prefix) {
		if err := l.readNotes(prefix, notes); err != nil {
			return nil, err
		}
	}
	// The table is read last: what has moved into it meanwhile is found there.
	state := map[string][]byte{}
	err := l.store.db.query("select key, value, at from state where log = ? and key >= ? order by key", func(scan scanner) (bool, error) {
		var key string
		var n noted
		if err := scan(&key, &n.value, &n.at); err != nil || !strings.HasPrefix(key, prefix) {
			return false, err
		}
		if newer, is := notes[key]; !is || newer.at <= n.at {
			state[key] = n.value
			delete(notes, key)
		}
		return true, nil
	}, l.id, prefix)
	for key, n := range notes {
		state[key] = n.value
	}
	return state, err
}

// readNotes reads the newest note of each call from the records, some at a time, so that a long log
// does not delay others.
func (l *Log) readNotes(prefix string, notes map[string]noted) error {
	for next, last := l.First(), l.Last(); next <= last; {
		rows, from := 0, next
		next = last + 1
		err := l.store.db.query("select id, call, note from records where id between ? and ? order by id limit ?", func(scan scanner) (bool, error) {
			var row int64
			var call string
			var n noted
			if err := scan(&row, &call, &n.value); err != nil {
				return false, err
			}
			n.at = uint64(row & maxSeq)
			if key := NoteKey(call); n.value != nil && strings.HasPrefix(key, prefix) {
				notes[key] = n
			}
			if rows++; rows == scanStep {
				next = n.at + 1
			}
			return true, nil
		}, l.row(from), l.row(last), scanStep)
		if err != nil {
			return err
		}
	}
	return nil
}

// moveNotes puts the notes of records that are to be dropped into the table; within a transaction. Of
// several of a call the last one counts, and none counts against what came to the table with it or after it.
func (l *Log) moveNotes(first, last uint64) error {
	return l.store.db.execLocked(`insert or replace into state (log, key, value, at)
		select ?1, ?2 || call, note, id & ?3 from records r where id between ?4 and ?5 and note is not null
		and not exists (select 1 from state where log = ?1 and key = ?2 || r.call and at >= r.id & ?3) order by id`,
		l.id, Notes, int64(maxSeq), l.row(first), l.row(last))
}
