// What a log has of a workspace, read from its last base on.

package lease

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

// View is what the log had of a workspace when it was read. It may be outdated
// at once: only Take is decided by the log.
type View struct {
	store  Store
	w      log.Workspace
	reader reader
}

// Snapshot names a stored copy of the workspace's files.
type Snapshot struct {
	Reference string
	// Payloads is the number of payloads that Append had stored when it was taken:
	// what payloads with this index and higher have done is not in the files.
	Payloads uint64
}

// Payload is one of those that Append or Base have stored.
type Payload struct {
	Data []byte
	// Base is set for a payload of the last base.
	Base bool
	// Index is how many payloads Append had stored before this one, or before the
	// base.
	Index uint64
}

// Open reads what the log has of a workspace. If it has nothing the epoch of
// the view is 0. It returns an [ErrFormat], an [ErrCollision] or what the log
// returns. If something is missing it reads the other copies of a [log.Replicated], too.
func Open(ctx context.Context, store Store, w log.Workspace) (*View, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	if !fits(w.Principal) || !fits(w.Name) {
		return nil, fmt.Errorf("%w: a name is not UTF-8 or too long", log.ErrInvalid)
	}
	for {
		v, err := read(ctx, store, w)
		if !errors.Is(err, log.ErrElsewhere) {
			return v, err
		}
	}
}

// read reads one copy.
func read(ctx context.Context, store Store, w log.Workspace) (*View, error) {
	copies, replicated := store.Log.(log.Replicated)
	var inUse string
	if replicated {
		var err error
		if inUse, err = copies.Copy(ctx, w); err != nil {
			return nil, err
		}
	}
	v := &View{store: store, w: w, reader: reader{w: w}}
	for s, err := range store.Log.Read(ctx, w, 0) {
		if err != nil {
			return nil, err
		}
		if err := v.reader.read(s); err != nil {
			return nil, err
		}
	}
	if !replicated || v.Diverged() == 0 || v.Restored() { // what was restored ends with a gap
		return v, nil
	}
	return v, copies.Doubt(ctx, w, v.Diverged(), inUse)
}

func fits(name string) bool { return utf8.ValidString(name) && len(name) <= nameBytes }

// Epoch returns the epoch of the last owner, 0 if there was none.
func (v *View) Epoch() uint64 { return v.reader.epoch }

// Owner returns the last owner, "" if there was none.
func (v *View) Owner() string { return v.reader.owner }

// Newest returns the last payload that Append or Base has stored; false: there is none.
func (v *View) Newest(ctx context.Context) (data []byte, is bool, err error) {
	n := len(v.reader.payloads)
	if n == 0 {
		return nil, false, nil
	}
	data, err = v.fetch(ctx, v.reader.payloads[n-1].Payload)
	return data, true, err
}

// Released reports whether the last owner has given the workspace up.
func (v *View) Released() bool { return v.reader.released }

// Diverged returns the position of a segment that does not follow the one
// before it, so that the log has lost something that it may have acknowledged, or
// has stored something for an owner that had been replaced. It is 0 if there is
// none since the last base, or if an owner has taken over since. Payloads of
// an owner that had been replaced are left out.
func (v *View) Diverged() log.Pos { return v.reader.diverged }

// Position returns where the log ends.
func (v *View) Position() log.Pos {
	if n := len(v.reader.links); n > 0 {
		return v.reader.links[n-1].pos
	}
	return 0
}

// Count returns how many payloads Append has stored so far, also before the
// base.
func (v *View) Count() uint64 { return v.reader.count }

// Snapshot returns the last snapshot, if there is one.
func (v *View) Snapshot() (Snapshot, bool) {
	s := v.reader.snapshot
	return Snapshot{Reference: s.GetReference(), Payloads: s.GetPayloads()}, s != nil
}

// Payloads returns the payloads of the last base, and those that were
// appended after it, in order. It ends with the first error.
func (v *View) Payloads(ctx context.Context) iter.Seq2[Payload, error] {
	return func(yield func(Payload, error) bool) {
		for _, p := range v.reader.payloads {
			data, err := v.fetch(ctx, p.Payload)
			if !yield(Payload{Data: data, Base: p.base, Index: p.index}, err) || err != nil {
				return
			}
		}
	}
}

func (v *View) fetch(ctx context.Context, p *clusterv1.Payload) ([]byte, error) {
	blob := p.GetBlob()
	if blob == nil {
		return p.GetData(), nil
	}
	if v.store.Blobs == nil {
		return nil, ErrTooLarge
	}
	digest := [sha256.Size]byte(blob.GetDigest())
	data, err := v.store.Blobs.Get(ctx, digest)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != digest {
		return nil, fmt.Errorf("%w: %x", ErrBlob, digest)
	}
	return data, nil
}

// stored is a payload with its place in the log.
type stored struct {
	*clusterv1.Payload
	base  bool
	index uint64
}

// reader is told the segments of a log in order. Pure.
type reader struct {
	w        log.Workspace
	links    []link // since the last base
	epoch    uint64
	owner    string
	released bool
	diverged log.Pos
	count    uint64
	snapshot *clusterv1.Snapshot
	creation *clusterv1.Creation
	payloads []stored

	parts []stored // of a group or base whose last part has not been read
	kind  kind     // of parts
	part  uint32   // which one is next; 0: no parts are open
	start int      // links[start] is the first of the parts
}

// read returns an [ErrFormat] or an [ErrCollision].
func (r *reader) read(s log.Segment) error {
	seg, err := decode(s.Data)
	if err != nil {
		return fmt.Errorf("%w (at %d)", err, s.Pos)
	}
	if k := seg.GetKind(); k == kindOwned || k == kindBase {
		if named := (log.Workspace{Principal: seg.GetPrincipal(), Name: seg.GetWorkspace()}); named != r.w {
			return fmt.Errorf("%w: to %q of %q", ErrCollision, named.Name, named.Principal)
		}
	}
	follows := r.follows(seg)
	// A base that was read counts again if it ends what has diverged.
	if (!follows || headerOf(seg).begins && r.diverged == 0) && r.again(s) {
		return nil
	}
	if !follows {
		r.diverge(s.Pos)
	}
	r.links = append(r.links, newLink(s.Pos, s.Data, headerOf(seg)))
	if seg.GetEpoch() < r.epoch {
		r.diverge(s.Pos) // appended by an owner that had been replaced
		return nil
	}
	if seg.GetEpoch() > r.epoch && seg.GetKind() != kindOwned && len(r.links) > 1 {
		r.diverge(s.Pos) // the takeover itself is missing
	}
	if seg.GetEpoch() != r.epoch {
		r.epoch, r.owner, r.released, r.part = seg.GetEpoch(), seg.GetOwner(), false, 0
	}
	r.apply(s.Pos, seg)
	return nil
}

// follows reports whether a segment was written behind the last one that was
// read. What is before a base does not matter.
func (r *reader) follows(seg *clusterv1.Segment) bool {
	if headerOf(seg).begins && (seg.GetKind() == kindBase || len(r.links) == 0) {
		return true
	}
	return len(r.links) > 0 && bytes.Equal(seg.GetPrevious(), r.links[len(r.links)-1].hash[:])
}

// again reports whether a segment is one of those that were read already. An owner has put it back, since the log had lost it when
// it asked; a replica that had not lost it has it twice.
func (r *reader) again(s log.Segment) bool {
	hash := sha256.Sum256(s.Data)
	i := slices.IndexFunc(r.links, func(l link) bool { return l.hash == hash })
	if i < 0 {
		return false
	}
	r.links[i].pos = s.Pos
	r.links[len(r.links)-1].pos = s.Pos // the next segment is appended behind s, and continues the last link
	return true
}

func (r *reader) diverge(at log.Pos) {
	if r.diverged == 0 {
		r.diverged = at
	}
}

func (r *reader) apply(at log.Pos, seg *clusterv1.Segment) {
	switch seg.GetKind() {
	case kindOwned:
		r.owner, r.released, r.creation = seg.GetOwner(), false, seg.GetCreation()
		if seg.GetDiverged() {
			r.diverged = 0
		}
	case kindReleased:
		r.released = true
	case kindSnapshot:
		r.snapshot = seg.GetSnapshot()
	case kindChanges, kindBase:
		r.collect(at, seg)
	}
}

// collect puts the parts of a group or base together. A part without the one
// before it is left out.
func (r *reader) collect(at log.Pos, seg *clusterv1.Segment) {
	isBase := seg.GetKind() == kindBase
	switch {
	case seg.GetPart() == 0:
		r.parts, r.kind, r.start = nil, seg.GetKind(), len(r.links)-1
	case seg.GetPart() != r.part || seg.GetKind() != r.kind:
		r.diverge(at)
		r.part = 0
		return
	}
	for i, p := range seg.GetPayloads() {
		index := seg.GetFirstPayload()
		if !isBase {
			index += uint64(i)
		}
		r.parts = append(r.parts, stored{Payload: p, base: isBase, index: index})
	}
	if r.part = seg.GetPart() + 1; seg.GetMore() {
		return
	}
	r.part, r.count = 0, headerOf(seg).payloadsAfter
	if !isBase {
		r.payloads = append(r.payloads, r.parts...)
		return
	}
	r.payloads, r.snapshot, r.creation, r.diverged = r.parts, seg.GetSnapshot(), seg.GetCreation(), 0
	r.links = append([]link(nil), r.links[r.start:]...)
}

// chain returns the chain of an owner that goes on from here.
func (r *reader) chain() chain {
	c := chain{next: len(r.links)}
	c.add(append([]link(nil), r.links...))
	return c
}

// writer returns the writer of the next owner.
func (r *reader) writer(owner string, newID func() []byte) writer {
	w := writer{w: r.w, owner: owner, epoch: r.epoch + 1, newID: newID, room: partBytes, payloads: r.count, snapshot: r.snapshot, creation: r.creation}
	if n := len(r.links); n > 0 {
		w.previous = r.links[n-1].hash[:]
	}
	return w
}
