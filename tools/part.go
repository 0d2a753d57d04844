// Calls that are parts of another call.

package tools

import "encoding/json"

// A Part is a call that a call makes as a part of itself. It is judged, ordered and recorded like any
// other, begins in the working directory and with the variables of the session, and does not change
// them. Its failure stops no other part.
type Part struct {
	Name  string // of its tool
	Input json.RawMessage
}

// A PartEnd is how a part has ended.
type PartEnd struct {
	How        PartHow
	Text       string // its content for a model
	Reason     string // why it did not end well, as a sentence or more; empty: it did
	Structured any    // its tool's result for programs; nil: none
}

// PartHow is how a part has ended, as far as that makes a difference to what it is a part of.
type PartHow uint8

// The ends of parts.
const (
	PartRan     PartHow = iota // well or not
	PartRefused                // it was invalid, denied, or could not be taken: nothing ran
	PartTimedOut
	PartStopped // while it waited or ran
)
