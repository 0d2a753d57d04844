// Package backup copies workspaces between a cluster and a directory: each with
// its log and the objects that the log names, as they were at one moment. The
// cluster may be in use meanwhile.
//
// It does not know what a workspace's log means, beyond what objects it names.
package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
)

// Place is where workspaces are kept.
type Place struct {
	Log     log.Log
	Objects objects.Store
}

// ErrExists is returned for a workspace that the other place has already, and not as the beginning of the same log.
var ErrExists = errors.New("it has the workspace already")

// ErrDeleted is returned for a workspace that was deleted in the other place, whose name is not free.
var ErrDeleted = errors.New("it was deleted in this cluster, and its name is not free: after \"toold-cluster delete --reuse\" of it, restore brings it back")

// tries is how often a workspace is read that is in use: a snapshot may be replaced, and with it deleted, after the log was read.
const tries = 5

// Copy copies a workspace. What an earlier Copy has left undone is completed. It returns an [ErrExists] for another log of the
// same workspace.
func Copy(ctx context.Context, w log.Workspace, from, to Place) error {
	for try := 1; ; try++ {
		segments, err := copyObjects(ctx, w, from, to)
		if errors.Is(err, fs.ErrNotExist) && try < tries || errors.Is(err, log.ErrElsewhere) {
			continue
		}
		if err != nil {
			return err
		}
		return appendAll(ctx, w, to.Log, segments)
	}
}

// restoring is an object of a workspace of which a part was restored: no node has used it.
const restoring = "restoring"

// Restore copies a workspace to a cluster that has none of it, or has deleted it and freed its name, and marks it as older than what
// clients may have seen. It returns an [ErrExists] for a workspace that the cluster has otherwise than by a Restore that broke off,
// and an [ErrDeleted] for one whose name is not free. Of a workspace that had been deleted before the copy was made, the deletion
// is restored where the cluster has nothing of the workspace.
func Restore(ctx context.Context, w log.Workspace, from, to Place) error {
	source, err := lease.Open(ctx, lease.Store{Log: from.Log}, w)
	if err != nil {
		return err
	}
	view, err := lease.Open(ctx, lease.Store{Log: to.Log}, w)
	if err != nil {
		return err
	}
	own := objects.Below(to.Objects, w.ID()+"/")
	switch {
	case view.Restored(): // by an earlier call
		return own.Delete(ctx, restoring)
	case source.IsNew() || source.Deleted() && view.Epoch() > 0: // there is nothing to restore
		return nil
	case source.Deleted(): // which its clients are to know
		return Copy(ctx, w, from, to)
	}
	if view.IsNew() {
		err = own.Put(ctx, restoring, strings.NewReader(restoring))
	} else if begun, failed := own.Get(ctx, restoring); failed == nil {
		err = begun.Close()
	} else if err = failed; errors.Is(err, fs.ErrNotExist) {
		if err = ErrExists; view.Deleted() {
			err = ErrDeleted
		}
	}
	if err != nil {
		return err
	}
	if view.Epoch() > 0 && (view.IsNew() || view.Deleted()) {
		err = rebuild(ctx, w, from, to)
	} else {
		err = Copy(ctx, w, from, to)
	}
	if err != nil {
		return err
	}
	if err := lease.Restored(ctx, lease.Store{Log: to.Log}, w); err != nil {
		return err
	}
	return own.Delete(ctx, restoring)
}

// rebuild is Copy to a log that has segments already, of a workspace that was deleted.
func rebuild(ctx context.Context, w log.Workspace, from, to Place) error {
	store := lease.Store{Log: to.Log, Blobs: payloads(objects.Below(to.Objects, w.ID()+"/"))}
	if err := lease.Reserve(ctx, store, w); err != nil {
		return exists(err)
	}
	if _, err := copyObjects(ctx, w, from, to); err != nil {
		return err
	}
	view, err := lease.Open(ctx, lease.Store{Log: from.Log, Blobs: payloads(objects.Below(from.Objects, w.ID()+"/"))}, w)
	if err != nil {
		return err
	}
	return exists(lease.Rebuild(ctx, store, w, view))
}

// exists returns an [ErrExists] for the lease's.
func exists(err error) error {
	if errors.Is(err, lease.ErrExists) {
		return ErrExists
	}
	return err
}

// copyObjects returns the log, whose objects it has copied.
func copyObjects(ctx context.Context, w log.Workspace, from, to Place) (segments [][]byte, err error) {
	var read log.Memory
	var end log.Pos
	for s, err := range from.Log.Read(ctx, w, 0) {
		if err == nil {
			segments = append(segments, s.Data)
			end, err = read.Append(ctx, w, end, s.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	source, target := objects.Below(from.Objects, w.ID()+"/"), objects.Below(to.Objects, w.ID()+"/")
	view, err := lease.Open(ctx, lease.Store{Log: &read, Blobs: copying{payloads(source), payloads(target)}}, w)
	if err != nil {
		return nil, err
	}
	if saved, is := view.Snapshot(); is {
		if err := copyObject(ctx, snapshot.Name(saved.Reference), source, target); err != nil {
			return nil, fmt.Errorf("the snapshot of its files: %w", err)
		}
	}
	for _, err := range view.Payloads(ctx) {
		if err != nil {
			return nil, fmt.Errorf("a payload of its log: %w", err)
		}
	}
	return segments, nil
}

func payloads(store objects.Store) objects.Blobs {
	return objects.Blobs{Store: store, Prefix: objects.Payloads}
}

// copying copies what is read.
type copying struct{ from, to objects.Blobs }

func (c copying) Get(ctx context.Context, digest [sha256.Size]byte) ([]byte, error) {
	data, err := c.from.Get(ctx, digest)
	if err == nil {
		err = c.to.Put(ctx, digest, data)
	}
	return data, err
}

// Put is not called: nothing is appended to the log that is read.
func (c copying) Put(context.Context, [sha256.Size]byte, []byte) error { return errors.ErrUnsupported }

// Delete is not called either.
func (c copying) Delete(context.Context, [sha256.Size]byte) error { return errors.ErrUnsupported }

// copyObject copies an object, unless it is there.
func copyObject(ctx context.Context, name string, from, to objects.Store) error {
	if there, err := to.Get(ctx, name); err == nil {
		return there.Close()
	}
	r, err := from.Get(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return to.Put(ctx, name, io.Reader(r))
}

// appendAll appends the segments that the log does not have yet.
func appendAll(ctx context.Context, w log.Workspace, to log.Log, segments [][]byte) error {
	var prev log.Pos
	for s, err := range to.Read(ctx, w, 0) {
		if err != nil {
			return err
		}
		if len(segments) == 0 || !bytes.Equal(s.Data, segments[0]) {
			return ErrExists
		}
		prev, segments = s.Pos, segments[1:]
	}
	for _, data := range segments {
		pos, err := to.Append(ctx, w, prev, data)
		if fenced, is := errors.AsType[*log.FencedError](err); is && bytes.Equal(fenced.Last.Data, data) {
			pos, err = fenced.Last.Pos, nil // the answer to an append before was lost
		}
		if err != nil {
			return err
		}
		prev = pos
	}
	return nil
}
