// Storing a workspace: its journal as a base, its files as snapshots.

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/snapshot"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A log with less than this since its last base is read as it is.
const (
	fewSegments = 64
	fewBytes    = 1 << 20
)

// shorten stores a base if the log has become long. The daemon has ended.
func (u *unit) shorten(ctx context.Context) error {
	for _, name := range []string{"own/state", journalName} {
		if info, err := os.Lstat(u.in(name)); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s is not a directory any more", name))
		}
	}
	if segments, bytes, _ := u.lease.Held(); segments < fewSegments && bytes < fewBytes {
		return nil
	}
	return u.base(ctx, u.lease)
}

// base stores the journal as it is in the place of what the log has. No daemon runs.
func (u *unit) base(ctx context.Context, l *lease.Lease) error {
	store, err := journal.Open(filepath.Join(u.at.dir, journalName), journal.Config{Unsynced: true})
	if err != nil {
		return err
	}
	var payloads [][]byte
	for change, failed := range store.Export() {
		if err = failed; err != nil {
			break
		}
		var payload []byte
		if payload, err = proto.Marshal(&tooldv1.AppendChangesRequest{Epoch: store.Epoch(), Changes: []*tooldv1.JournalChange{mirror.Encode(change)}}); err != nil {
			break
		}
		payloads = append(payloads, payload)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return l.Base(ctx, payloads...)
}

// save stores the workspace's files, if something has happened since the last snapshot. Nothing changes them meanwhile.
func (u *unit) save(ctx context.Context) error {
	if u.isShared() || u.saved != "" && u.mirror.appended() == u.savedAt {
		return nil
	}
	reference, err := snapshot.Save(ctx, u.objects, u.at.dir, kept)
	u.node.counters.saved(err)
	if err != nil {
		return err
	}
	if err := u.lease.Snapshot(ctx, reference); err != nil {
		return err
	}
	u.replace(ctx, reference)
	return nil
}

// replace notes the last snapshot, and deletes the one before, which the log no longer names.
func (u *unit) replace(ctx context.Context, reference string) {
	if u.saved != "" && u.saved != reference {
		if err := snapshot.Delete(ctx, u.objects, u.saved); err != nil {
			u.log.Warn("a snapshot that is not needed any more could not be deleted", zap.String("snapshot", u.saved), zap.Error(err))
		}
	}
	u.saved = reference
}

// saveAtRest stores the files while the daemon runs, if something has happened since the last snapshot and no call and
// no task is under way. If one begins meanwhile the snapshot is dropped.
func (u *unit) saveAtRest() {
	before := u.mirror.appended()
	if before == u.savedAt || !u.atRest(u.lost) || u.mirror.appended() != before {
		return
	}
	if u.isShared() {
		u.savedAt = before
		return
	}
	reference, err := snapshot.Save(u.lost, u.objects, u.at.dir, kept)
	u.node.counters.saved(err)
	if err != nil {
		u.log.Warn("the workspace's files could not be stored", zap.Error(err))
		return
	}
	u.mirror.between(func() {
		if u.mirror.count != before {
			err = errOvertaken
		} else {
			err = u.lease.Snapshot(u.lost, reference) // also of the same files: it says that nothing since then is lost
		}
	})
	switch {
	case err == nil:
		u.replace(u.lost, reference)
		u.savedAt = before
	case errors.Is(err, errOvertaken) && reference != u.saved: // after another error the log may name it
		_ = snapshot.Delete(u.lost, u.objects, reference) // nothing names it
	}
}

var errOvertaken = errors.New("a call has begun while the files were stored")
