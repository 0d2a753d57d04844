// What an administrator does to the log of a workspace: restoring it from a copy,
// and deleting it. Both fence the owner, if there is one.

package lease

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/toold/toold/cluster/log"
)

// Owners that are no nodes: a node's name has no parentheses.
const (
	restorer = "(restored)"
	deleter  = "(deleted)"
	renewer  = "(free)"
)

// Restored reports whether the log was restored from a copy, and no node has taken the workspace over since.
func (v *View) Restored() bool { return v.reader.owner == restorer }

// Deleted reports whether the workspace was deleted. It must not be taken over, except by [Renew].
func (v *View) Deleted() bool { return v.reader.owner == deleter }

// Deleted reports whether the lease is over since the workspace was deleted.
func (e *Fenced) Deleted() bool { return e.Owner == deleter }

// An End is the last segment of a log.
type End struct {
	Owner    string // "" if the log has nothing
	Epoch    uint64
	Released bool // the owner has given the workspace up with it
}

// Last returns the end of a workspace's log. It has been the end at some time, and may be outdated: a
// later end has the same or a higher epoch. It returns an [ErrFormat] or what the log returns.
func Last(ctx context.Context, l log.Log, w log.Workspace) (End, error) {
	last, err := l.Last(ctx, w)
	if err != nil || last.Pos == 0 {
		return End{}, err
	}
	s, err := decode(last.Data)
	return End{Owner: s.GetOwner(), Epoch: s.GetEpoch(), Released: s.GetKind() == kindReleased}, err
}

// NameOf returns whose log a segment belongs to, if the segment has that.
func NameOf(segment []byte) (log.Workspace, bool) {
	s, err := decode(segment)
	if err != nil || s.GetWorkspace() == "" {
		return log.Workspace{}, false
	}
	return log.Workspace{Principal: s.GetPrincipal(), Name: s.GetWorkspace()}, true
}

// Restored marks a log that was copied from a backup as older than what clients may have seen: the next owner finds it
// diverged. Files that a node has kept are not those of the log any more.
func Restored(ctx context.Context, store Store, w log.Workspace) error {
	return act(ctx, store, w, restorer, func(_ *View, l *Lease) error {
		gap := sha256.Sum256(newID())
		l.writer.previous = gap[:] // follows nothing that the log has
		return l.do(ctx, func() { l.chain.add(l.writer.owned(false)) })
	})
}

// Delete replaces a workspace's log by a mark, which stays so that the owner of before is fenced, whenever it appends again. The mark
// has whether the workspace had strict effects.
func Delete(ctx context.Context, store Store, w log.Workspace) error {
	return act(ctx, store, w, deleter, func(_ *View, l *Lease) error {
		l.writer.snapshot, l.writer.creation = nil, Creation{StrictEffects: l.writer.creation.GetStrictEffects()}.encode()
		err := l.do(ctx, func() { l.chain.add(l.writer.owned(true)) })
		return errors.Join(err, l.Base(ctx))
	})
}

// Renew lets a workspace that was deleted be taken over again, as an empty one.
func Renew(ctx context.Context, store Store, w log.Workspace) error {
	return act(ctx, store, w, renewer, func(_ *View, l *Lease) error {
		l.writer.creation = nil
		return l.do(ctx, func() { l.chain.add(l.writer.owned(false)) })
	})
}

// Reserve marks a workspace as deleted of which there is nothing, so that no node begins it before a [Rebuild]. One that is deleted is
// left as it is. The error is [ErrExists] if a node has begun it.
func Reserve(ctx context.Context, store Store, w log.Workspace) error {
	return act(ctx, store, w, deleter, func(v *View, l *Lease) error {
		if v.Deleted() {
			return nil
		}
		if !v.IsNew() {
			return ErrExists
		}
		return l.do(ctx, func() { l.chain.add(l.writer.owned(true)) })
	})
}

// Rebuild replaces the log of a workspace, of which there is nothing or which was deleted, by what a view of another log has, and leaves it
// deleted until [Restored]: so no node takes over what was rebuilt in part. A Rebuild that broke off is repeated. The error is [ErrExists]
// if a node has begun the workspace. Of two at once for one workspace each fences the other, until one has come to its end.
func Rebuild(ctx context.Context, store Store, w log.Workspace, from *View) error {
	var all []Payload
	for p, err := range from.Payloads(ctx) {
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return act(ctx, store, w, deleter, func(v *View, l *Lease) error {
		if !v.IsNew() && !v.Deleted() {
			return ErrExists
		}
		l.writer.snapshot, l.writer.creation = nil, from.reader.creation
		if err := l.do(ctx, func() { l.chain.add(l.writer.owned(true)) }); err != nil {
			return err
		}
		return l.refill(ctx, all, from)
	})
}

// refill appends the payloads of a view, numbered on from the first one's number there, and its snapshot between them.
func (l *Lease) refill(ctx context.Context, all []Payload, from *View) error {
	var base [][]byte
	first := from.Count()
	if len(all) > 0 {
		first = all[0].Index
	}
	for len(all) > 0 && all[0].Base {
		base, all = append(base, all[0].Data), all[1:]
	}
	saved, due := from.Snapshot()
	l.writer.payloads = first
	if due && saved.Payloads <= first {
		l.writer.snapshot, due = from.reader.snapshot, false
	}
	if err := l.Base(ctx, base...); err != nil {
		return err
	}
	for _, p := range all {
		if due && p.Index >= saved.Payloads {
			if err := l.Snapshot(ctx, saved.Reference); err != nil {
				return err
			}
			due = false
		}
		if err := l.Append(ctx, p.Data); err != nil {
			return err
		}
	}
	if due {
		return l.Snapshot(ctx, saved.Reference)
	}
	return nil
}

// act does something as an owner that is no node, and gives the workspace up. The log has the workspace.
func act(ctx context.Context, store Store, w log.Workspace, owner string, do func(*View, *Lease) error) error {
	for {
		v, err := Open(ctx, store, w)
		if err != nil {
			return err
		}
		if v.Epoch() == 0 {
			return ErrNone
		}
		l := &Lease{store: v.store, w: v.w, turn: make(chan struct{}, 1), chain: v.reader.chain(), writer: v.reader.writer(owner, newID), blobs: map[[sha256.Size]byte]bool{}}
		if err := do(v, l); err != nil {
			if _, outdated := errors.AsType[*Fenced](err); outdated { // the log has grown meanwhile
				continue
			}
			return err
		}
		return l.Release(ctx)
	}
}

// ErrNone is returned for a workspace that the log does not have.
var ErrNone = errors.New("there is no such workspace")
