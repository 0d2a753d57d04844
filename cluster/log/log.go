// Package log keeps the segments of workspaces: for each workspace one
// append-only sequence, to which only the caller that knows its end can append.
//
// That condition is what a lease is made of (package lease): an owner whose
// expectation of the end is outdated has been replaced, and every append of
// its fails from then on. There is no clock in it and no lock service.
//
// It does not know what a segment means.
package log

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// MaxSegment is the largest segment of a log, in bytes. Larger payloads go to
// the object store first.
const MaxSegment = 512 << 10

// Workspace names a workspace: the principal to whom it belongs, and the
// principal's own name for it. Neither is empty; both may hold any characters.
type Workspace struct{ Principal, Name string }

// ID returns 24 letters and digits that stand for the workspace where its names cannot, such as in paths.
func (w Workspace) ID() string {
	sum := sha256.Sum256([]byte(w.Principal + "\x00" + w.Name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// Pos is the position of a segment in a workspace's log. Positions grow, not
// always by one. 0 is before the first segment.
type Pos uint64

// Segment is a stored segment with its position.
type Segment struct {
	Pos  Pos
	Data []byte
}

// Log keeps segments. Its methods are safe for concurrent use; of one
// workspace only one append is under way at a time, else [ErrBusy] may come.
type Log interface {
	// Append stores data behind prev, which is the position of the last segment,
	// 0 if there is none. It returns data's own position when the segment will
	// survive what the log promises to survive, a *[FencedError] if prev is not
	// the end, and [ErrBusy] if another append to the workspace is under way.
	// After any other error the segment may be stored or not: only a repeated
	// Append with the same prev settles it. If it was stored before, that returns a
	// *FencedError whose Last is the segment itself. Data is not empty and at most
	// [MaxSegment] large.
	Append(ctx context.Context, w Workspace, prev Pos, data []byte) (Pos, error)
	// Last returns the last segment as the log's leader knows it, Pos 0 if there
	// is none. What it returns has been the end at some time during the call.
	Last(ctx context.Context, w Workspace) (Segment, error)
	// Read returns the segments from a position on to the end, in order. It ends
	// with the first error. A segment that was removed by Purge is skipped.
	Read(ctx context.Context, w Workspace, from Pos) iter.Seq2[Segment, error]
	// Purge removes the segments before a position, which is that of a segment
	// that was there. It may keep some of them, and always keeps the last one. After an error it may have removed them or not. It
	// returns an [ErrUnknown], and removes nothing, if the log ends before the position: it has lost something, or the answer is outdated.
	Purge(ctx context.Context, w Workspace, before Pos) error
}

// Replicated is a [Log] that has several copies of its segments, of which it uses one.
type Replicated interface {
	// Copy returns the name of the copy that is in use for a workspace.
	Copy(ctx context.Context, w Workspace) (string, error)
	// Doubt is told that a copy lacks something before a position, which is that of a segment. It returns an [ErrElsewhere] when
	// another copy is in use, and nil if each that can be used was, since the first Doubt about that position: all have lost it.
	Doubt(ctx context.Context, w Workspace, at Pos, copy string) error
}

// ErrElsewhere is returned by a [Replicated], also by its Read, if the segments are to be read once more, from another copy.
var ErrElsewhere = errors.New("another copy of the log is in use: read it once more")

// ErrBusy is returned by Append while another append to the same workspace is
// under way: nothing was stored, and the same append may be tried again.
var ErrBusy = errors.New("another append to the workspace is under way")

// ErrUnknown is returned if the outcome is not known, for instance since the
// log did not answer in time.
var ErrUnknown = errors.New("the log did not answer")

// ErrInvalid is returned for what no log stores: a workspace without a
// principal or a name, and a segment that is empty or too large.
var ErrInvalid = errors.New("a log does not store this")

// Check returns an [ErrInvalid] for a workspace without a principal or a name.
func (w Workspace) Check() error {
	if w.Principal == "" || w.Name == "" {
		return fmt.Errorf("%w: a workspace needs a principal and a name", ErrInvalid)
	}
	return nil
}

// CheckPurge returns an [ErrUnknown] for a position behind the end of a log, before which nothing is to be removed.
func CheckPurge(last Segment, before Pos) error {
	if last.Pos < before {
		return fmt.Errorf("%w: it ends at %d, before %d, behind which it was to be cut", ErrUnknown, last.Pos, before)
	}
	return nil
}

// CheckSegment returns an [ErrInvalid] for what Append refuses.
func CheckSegment(w Workspace, data []byte) error {
	if len(data) == 0 || len(data) > MaxSegment {
		return fmt.Errorf("%w: a segment has %d bytes, and may have from 1 to %d", ErrInvalid, len(data), MaxSegment)
	}
	return w.Check()
}

// FencedError is returned by Append if the workspace's log has another end than
// the caller expects.
type FencedError struct{ Last Segment }

func (e *FencedError) Error() string {
	return fmt.Sprintf("the log of the workspace ends at %d", e.Last.Pos)
}
