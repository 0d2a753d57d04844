// Package lease makes the log of a workspace its lease: the node that has
// appended the last Owned segment owns the workspace, and from then on every
// append of the owner before fails.
//
// [Open] reads what the log has of a workspace. [View.Take] takes it over with
// the next epoch. The [Lease] appends payloads, and returns from each append
// only when it is known whether the log has it. There is no clock in it: an owner
// that was stopped for a day loses nothing but its lease, which it notices at its
// next append.
//
// It does not know what a payload means, nor who should own a workspace.
package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/cluster/log"
)

// Between two tries to append the lease waits so long: at first, and at most.
// One try takes no longer than tryTime.
const (
	firstWait = 5 * time.Millisecond
	mostWait  = 2 * time.Second
	tryTime   = 5 * time.Second
)

// Store is where workspaces are kept.
type Store struct {
	Log   log.Log
	Blobs Blobs // for payloads that are too large for a segment; nil: refuses them
}

// Blobs keep payloads by the SHA-256 of their bytes.
type Blobs interface {
	// Put stores data. It returns when it survives what the log survives. What is
	// there already may be stored again.
	Put(ctx context.Context, digest [32]byte, data []byte) error
	// Get returns what was stored. The caller compares the digest.
	Get(ctx context.Context, digest [32]byte) ([]byte, error)
	// Delete removes what was stored. It is no error if it is not there.
	Delete(ctx context.Context, digest [32]byte) error
}

var (
	// ErrFormat is returned by Open if a segment was written by a newer version, or
	// is damaged. A node that cannot read a workspace's log must not take it over.
	ErrFormat = errors.New("the workspace's log has a format that this node does not know")
	// ErrCollision is returned by Open if the log belongs to another workspace.
	ErrCollision = errors.New("the log belongs to another workspace")
	// ErrTooLarge is returned for a payload that needs [Blobs] where there are none.
	ErrTooLarge = errors.New("the payload is too large for a segment, and there is no object store")
	// ErrReleased is returned by a lease that was released.
	ErrReleased = errors.New("the lease was released")
	// ErrBlob is returned if an object store returns other bytes than were stored.
	ErrBlob = errors.New("the object store has other bytes under this digest")
)

// Fenced is returned by a lease that is over, since the log ends with a
// segment that is not the lease's own.
type Fenced struct {
	Owner string // who has appended it; "" if this node cannot read the segment
	Epoch uint64
	// Diverged is set if the log has lost segments that it had acknowledged to this
	// lease: clients may have seen what the present owner does not know.
	Diverged bool
}

func (e *Fenced) Error() string {
	if e.Deleted() {
		return "the workspace was deleted"
	}
	text := fmt.Sprintf("the workspace is owned by %q in epoch %d", e.Owner, e.Epoch)
	if e.Diverged {
		text += ", and the log has lost what it had acknowledged to the owner before"
	}
	return text
}

// Lease is the ownership of a workspace. Its methods are safe for concurrent
// use; calls take turns.
//
// Each of them blocks through outages of the log until its outcome is
// definite. If ctx ends before, what was to be appended may be stored or not;
// the next call goes on with it first. A *[Fenced] is final: every call after
// it returns the same.
type Lease struct {
	store    Store
	w        log.Workspace
	turn     chan struct{} // holds one element while a call is under way; guards what follows
	chain    chain
	writer   writer
	released bool
	blobs    map[[32]byte]bool // those of payloads since the last base, and of before that could not be deleted
}

// Take appends the Owned segment of the next epoch. It returns a *[Fenced] if
// the log has grown since Open, which another owner may have done, or the
// present owner that is still at work: open the workspace again to try again.
//
// The view must not be used for another Take. If ctx ends before the outcome is
// known, the workspace may be owned in an epoch that no process serves; the
// next Take ends that.
func (v *View) Take(ctx context.Context, owner string) (*Lease, error) {
	if owner == "" || !fits(owner) {
		return nil, fmt.Errorf("%w: the owner's name is empty, not UTF-8 or too long", log.ErrInvalid)
	}
	l := &Lease{store: v.store, w: v.w, turn: make(chan struct{}, 1), chain: v.reader.chain(), blobs: map[[32]byte]bool{}}
	l.writer = v.reader.writer(owner, newID)
	for _, p := range v.reader.payloads {
		l.noteBlobs(p.Payload)
	}
	if err := l.do(ctx, func() { l.chain.add(l.writer.owned(v.reader.diverged != 0)) }); err != nil {
		return nil, err
	}
	return l, nil
}

func newID() []byte {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return id
}

// Epoch returns the lease's epoch: 1 for the first owner.
func (l *Lease) Epoch() uint64 { return l.writer.epoch }

// Workspace returns whose lease it is.
func (l *Lease) Workspace() log.Workspace { return l.w }

// Append stores payloads behind those before, all of them or none. It returns
// nil when they are acknowledged.
func (l *Lease) Append(ctx context.Context, payloads ...[]byte) error {
	refs, err := l.refer(ctx, payloads)
	if err != nil || len(refs) == 0 {
		return err
	}
	return l.do(ctx, func() {
		l.noteBlobs(refs...)
		l.chain.add(l.writer.changes(refs))
	})
}

// Prove appends a segment without payloads, and so returns nil only if the workspace was this lease's at some time since
// Prove was called. A read proves nothing: its answer may be outdated.
func (l *Lease) Prove(ctx context.Context) error {
	return l.do(ctx, func() { l.chain.add(l.writer.changes(nil)) })
}

// Base stores payloads that replace all before, and removes what is older from the log
// and from the object store. If only the removal fails it returns nil: the next Base of this
// lease removes it.
func (l *Lease) Base(ctx context.Context, payloads ...[]byte) error {
	refs, err := l.refer(ctx, payloads)
	if err != nil {
		return err
	}
	return l.do(ctx, func() {
		l.noteBlobs(refs...)
		l.chain.mark()
		l.chain.add(l.writer.base(refs))
	}, func(ctx context.Context) { l.purge(ctx, refs) })
}

// Snapshot stores that the workspace's files, as they are after the payloads
// so far, are kept under a reference.
func (l *Lease) Snapshot(ctx context.Context, reference string) error {
	if !fits(reference) {
		return fmt.Errorf("%w: the snapshot's reference is not UTF-8 or too long", log.ErrInvalid)
	}
	return l.do(ctx, func() { l.chain.add(l.writer.snapshotted(reference)) })
}

// Release ends the lease, so that no node owns the workspace. Every other call after it returns
// [ErrReleased].
func (l *Lease) Release(ctx context.Context) error {
	err := l.do(ctx, func() {
		l.released = true
		l.chain.add(l.writer.release())
	})
	if errors.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// Verify asks the log for its end. It returns a *[Fenced] if the workspace was
// taken over, which an owner that appends nothing does not notice otherwise, and
// puts back what the log has lost. Nothing depends on it being called.
func (l *Lease) Verify(ctx context.Context) error {
	last, err := l.store.Log.Last(ctx, l.w)
	if err != nil {
		return err
	}
	return l.do(ctx, func() {
		if l.chain.next == len(l.chain.links) {
			l.chain.ends(last)
		}
	})
}

// Held returns what the log has of the workspace since its last base, in
// segments and bytes, and how many segments the lease had to put back.
func (l *Lease) Held() (segments, bytes, putBack int) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return len(l.chain.links) - l.chain.floor, l.chain.bytes, l.chain.putBack
}

// do changes the chain in turn, appends what the log does not have of it, and
// then calls what follows.
func (l *Lease) do(ctx context.Context, change func(), then ...func(context.Context)) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.released {
		return cmp.Or(l.push(ctx), ErrReleased)
	}
	if l.chain.fenced != nil {
		return l.chain.fenced
	}
	change()
	if err := l.push(ctx); err != nil {
		return err
	}
	for _, f := range then {
		f(ctx)
	}
	return nil
}

// push appends until the log has the whole chain.
func (l *Lease) push(ctx context.Context) error {
	wait := firstWait
	for {
		prev, data, more := l.chain.request()
		if l.chain.fenced != nil {
			return l.chain.fenced
		}
		if !more {
			return nil
		}
		if l.try(ctx, prev, data) {
			wait = firstWait
			continue
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, mostWait)
	}
}

// try appends one segment. It reports whether that has told something: if
// not, the same is to be tried again.
func (l *Lease) try(ctx context.Context, prev log.Pos, data []byte) bool {
	try, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	pos, err := l.store.Log.Append(try, l.w, prev, data)
	if err == nil {
		l.chain.stored(pos)
		return true
	}
	if fenced, ok := errors.AsType[*log.FencedError](err); ok {
		return l.chain.ends(fenced.Last)
	}
	return false
}

func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
