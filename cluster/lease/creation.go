// What a workspace is created with, which stays for all of its owners.

package lease

import (
	"context"
	"encoding/hex"
	"errors"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

// Creation is what a workspace was created with. The zero value is an empty workspace.
type Creation struct {
	// StrictEffects has an owner end what runs in the workspace when it has no contact to the log, and
	// the next owner wait for that. The lease does neither.
	StrictEffects bool
	// Git is the repository whose files the workspace begins with, and GitRef a branch, tag or commit of it, empty for the
	// default branch. Snapshot is the name of a snapshot instead. Both empty: it begins without files.
	Git, GitRef, Snapshot string
	// Volume is the name of its directory on a volume that all of its nodes have. Empty: its files are on its node, and in snapshots.
	Volume string
}

// creator is who has created a workspace that no node has taken over yet.
const creator = "(created)"

// ErrExists is returned for a workspace that was created before.
var ErrExists = errors.New("the workspace exists")

// IsNew reports whether nothing has been a workspace of this name since it was last deleted.
func (v *View) IsNew() bool { return v.reader.epoch == 0 || v.reader.owner == renewer }

// Creation returns what the workspace was created with.
func (v *View) Creation() Creation {
	c := v.reader.creation
	return Creation{c.GetStrictEffects(), c.GetGit(), c.GetGitRef(), c.GetSnapshot(), c.GetVolume()}
}

// Create sets what Take creates a new workspace with. It has no effect on one that is not new.
func (v *View) Create(c Creation) {
	if v.IsNew() {
		v.reader.creation = c.encode()
	}
}

// RequireStrict has a workspace that no node has taken over yet have strict effects. It has no effect on another.
func (v *View) RequireStrict() {
	if v.IsNew() || v.reader.owner == creator {
		c := v.Creation()
		c.StrictEffects = true
		v.reader.creation = c.encode()
	}
}

// RequireVolume has a workspace that no node has taken over yet have a directory of its own on a shared volume, and strict effects. It
// has no effect on another.
func (v *View) RequireVolume() {
	if c := v.Creation(); c.Volume == "" && (v.IsNew() || v.reader.owner == creator) {
		c.Volume, c.StrictEffects = hex.EncodeToString(newID()), true
		v.reader.creation = c.encode()
	}
}

// isVolume reports whether it is the name of a directory that RequireVolume has chosen.
func isVolume(name string) bool {
	id, err := hex.DecodeString(name)
	return err == nil && len(id) == len(newID())
}

// encode returns nil for an empty workspace.
func (c Creation) encode() *clusterv1.Creation {
	if c == (Creation{}) {
		return nil
	}
	return &clusterv1.Creation{StrictEffects: c.StrictEffects, Git: c.Git, GitRef: c.GitRef, Snapshot: c.Snapshot, Volume: c.Volume}
}

// Create creates a workspace that the first node takes over which is asked for it. It returns [ErrExists] if the workspace is
// not new.
func Create(ctx context.Context, store Store, w log.Workspace, c Creation) error {
	for _, name := range []string{c.Git, c.GitRef, c.Snapshot} {
		if !fits(name) {
			return log.ErrInvalid
		}
	}
	v, err := Open(ctx, store, w)
	if err != nil {
		return err
	}
	if !v.IsNew() {
		return ErrExists
	}
	v.Create(c)
	l, err := v.Take(ctx, creator)
	if _, outdated := errors.AsType[*Fenced](err); outdated {
		return ErrExists
	} else if err != nil {
		return err
	}
	return l.Release(ctx)
}
