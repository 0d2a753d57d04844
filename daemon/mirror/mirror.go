// Package mirror passes what a journal commits to a copy in another place, over
// a socket of the same machine, and reads such changes again.
//
// It does not know what the copy does with them.
package mirror

import (
	"fmt"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// requestBytes is how large a request may become before the rest of a group goes into the next one.
// A change is never divided, so that a request may be larger by one of them.
const requestBytes = 4 << 20

// MaxMessage is what a server must be prepared to receive, in bytes: changes of the largest size.
const MaxMessage = math.MaxInt32

// requests divides changes into messages.
func requests(changes []journal.Change) iter.Seq[*tooldv1.AppendChangesRequest] {
	return func(yield func(*tooldv1.AppendChangesRequest) bool) {
		next, size := &tooldv1.AppendChangesRequest{}, 0
		for _, c := range changes {
			wire := Encode(c)
			if size += proto.Size(wire); size > requestBytes && len(next.Changes) > 0 {
				if !yield(next) {
					return
				}
				next, size = &tooldv1.AppendChangesRequest{}, proto.Size(wire)
			}
			next.Changes = append(next.Changes, wire)
		}
		if len(next.Changes) > 0 {
			yield(next)
		}
	}
}

// Encode returns the message of a change. It shares the change's bytes.
func Encode(c journal.Change) *tooldv1.JournalChange {
	wire := &tooldv1.JournalChange{SessionId: c.Log, FirstSeq: c.First, State: encodeState(c.State), Removed: c.Removed}
	wire.Created, wire.Sealed = nanoseconds(c.Created), nanoseconds(c.Sealed)
	for _, e := range c.Entries {
		wire.Entries = append(wire.Entries, &tooldv1.JournalEntry{
			Time: nanoseconds(e.Time), Kind: uint32(e.Kind), Call: e.Call, Turn: e.Turn, Body: e.Body, Note: e.Note, State: encodeState(e.State),
		})
	}
	return wire
}

// Decode returns the change of a message. It shares the message's bytes.
func Decode(wire *tooldv1.JournalChange) (journal.Change, error) {
	c := journal.Change{Log: wire.GetSessionId(), First: wire.GetFirstSeq(), State: decodeState(wire.GetState()), Removed: wire.GetRemoved()}
	c.Created, c.Sealed = instant(wire.GetCreated()), instant(wire.GetSealed())
	if c.Log == "" {
		return c, fmt.Errorf("a change of the journal names no session")
	}
	for _, e := range wire.GetEntries() {
		if e.GetKind() > math.MaxUint8 || e.GetTurn() > math.MaxInt64 {
			return c, fmt.Errorf("an entry of the journal has the kind %d and the turn %d", e.GetKind(), e.GetTurn())
		}
		c.Entries = append(c.Entries, journal.Entry{
			Time: instant(e.GetTime()), Kind: journal.Kind(e.GetKind()), Call: e.GetCall(), Turn: e.GetTurn(), Body: e.GetBody(), Note: e.Note, State: decodeState(e.GetState()),
		})
	}
	return c, nil
}

func encodeState(puts []journal.Put) (wire []*tooldv1.JournalState) {
	for _, put := range puts {
		wire = append(wire, &tooldv1.JournalState{Key: put.Key, Value: put.Value})
	}
	return wire
}

func decodeState(wire []*tooldv1.JournalState) (puts []journal.Put) {
	for _, put := range wire {
		puts = append(puts, journal.Put{Key: put.GetKey(), Value: put.Value})
	}
	return puts
}

// nanoseconds returns 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}
