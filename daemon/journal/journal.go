// Package journal keeps the numbered records of sessions, durably, in one
// embedded SQLite database.
//
// A [Log] is one session's records, numbered 1, 2, 3, ... without a gap. One
// goroutine at a time writes: whatever was queued while the last transaction ran
// goes into the next one. Another syncs, for all who wait for it at once, while
// transactions go on. A [Cursor] reads: live delivery is a cursor that has
// caught up.
//
// A record is written to the operating system before a reader sees it, so
// kill -9 loses no record that was seen. With a [Mirror] it is in another place
// as well before a reader sees it, and [Store.Apply] builds a journal from there.
//
// It does not know what a record means: kinds, call keys and bodies are the
// caller's, stored and returned as they are. It does not decide what to keep:
// records are dropped only by Trim, Shed and Remove.
package journal

import "time"

// MaxBody is the largest body of an entry and the largest value of a [Put], in
// bytes. A message is at most 16 MiB unless a setting says otherwise; SQLite
// itself would take 1e9 bytes.
const MaxBody = 64 << 20

// Kind distinguishes records. The caller defines its values; the journal does
// not use them.
type Kind uint8

// Durability is what an entry waits for before it counts as appended.
type Durability uint8

const (
	// Committed: written to the operating system. The record survives the
	// death of the process, but not a power failure.
	Committed Durability = iota
	// Synced: on the disk, with everything that was committed before it, in
	// any log of the store. Until then no reader sees it.
	Synced
)

// Entry is a record without a number. The journal keeps Body, Note and the
// values of State without copying: they must not be changed after they were
// passed.
type Entry struct {
	Kind       Kind
	Call       string    // the key under which [Log.Find] finds it; empty: under none
	Turn       uint64    // at most math.MaxInt64
	Time       time.Time // kept to the nanosecond, without its zone; zero: when it was enqueued
	Body       []byte    // at most MaxBody
	Durability Durability
	// Terminal marks the end of something that has begun. When the disk is
	// full it may use the reserve, together with all entries of the same
	// Enqueue.
	Terminal bool
	State    []Put // takes effect together with the record, or not at all
	// Note is what stays known of the call when its records are dropped: the newest is part of the
	// session's state, under [NoteKey]. It costs next to nothing where a Put costs a look into another
	// tree. Nil: none; else Call is not empty.
	Note []byte
}

// Put changes one value of the session's state. A nil Value removes the key;
// an empty one does not.
type Put struct {
	Key   string
	Value []byte
}

// Notes is what the keys of the calls' notes begin with.
const Notes = "call:"

// NoteKey is the key under which a call's note is part of the session's state. A [Put] for it
// counts until a newer note comes.
func NoteKey(call string) string { return Notes + call }

// Record is an entry with its number. Body is shared with other readers and
// must not be modified.
type Record struct {
	Seq  uint64 // from 1
	Time time.Time
	Kind Kind
	Call string
	Turn uint64
	Body []byte
}

// Info describes a log. First is the number of the oldest record that is kept,
// Last that of the newest; First is Last+1 if none is.
type Info struct {
	Name        string
	Created     time.Time
	Sealed      time.Time // zero: still open
	First, Last uint64
	Bytes       int64 // as Log.Bytes; below 0: not counted yet
}
