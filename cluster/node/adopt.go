package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
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

// A payload of a workspace's log is an AppendChangesRequest of the daemon's journal, as it was sent. Those of a base have the
// changes that build the journal from nothing.

// What a unit's directory holds beside the parts of the container.
const (
	markerName  = "files.json" // whose state the files are
	journalName = "own/state/journal"
	// settingsName is the daemon's settings, in the unit's own directory. Commands cannot change them: they hold limits of the node.
	settingsName = "settings.json"
)

// settingsText are the daemon's settings: the log is what survives, so its journal need not be synced, and calls get
// as long for their end as the node does.
const settingsText = `{"journal": {"sync": "normal"}, "limits": {"drain": %q%s}}`

// marker describes the files in a unit's directory. Without it, or with another epoch than the log's, they are those
// of some time before.
type marker struct {
	Epoch  uint64 // of the lease under which they were changed last
	Taking uint64 // the epoch in which this node was about to take them over, when nothing had changed them yet; 0: none
}

// never is more requests than a mirror ever stores.
const never = math.MaxUint64

// kept are the directories that a snapshot holds, below the unit's.
var kept = map[string]string{
	"files": "files", "home": "home", "checkpoints": "own/state/checkpoints", "memory": "own/state/memory", "outputs": "own/state/sessions",
}

// adopt takes the workspace over: the lease first, so that nothing changes any more, then its files and its journal.
func (u *unit) adopt(ctx context.Context) (*lease.Lease, error) {
	view, err := lease.Open(ctx, u.store, u.w)
	if err != nil {
		return nil, err
	}
	if view.Deleted() {
		return nil, ErrDeleted
	}
	if owner := view.Owner(); owner != "" && owner != u.node.Name && !view.Released() && u.node.Alive(owner) {
		return nil, &OwnerError{owner}
	}
	if err := u.takeCalls(); err != nil {
		return nil, err
	}
	if err := u.create(view); err != nil {
		return nil, err
	}
	current, err := u.current(view)
	if err != nil {
		return nil, err
	}
	saved, is := view.Snapshot()
	u.saved = saved.Reference
	if u.savedAt = never; is && (saved.Payloads == view.Count() || !current) {
		u.savedAt = 0 // the files are, or will be, those of the snapshot
	}
	if current && !u.isShared() {
		err = u.mark(marker{view.Epoch(), view.Epoch() + 1})
	} else if err = os.Remove(u.in(markerName)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	filled := !current && hasOrigin(view) && (!u.isShared() || u.at.isNew) // into a directory that other nodes do not know
	if filled {                                                            // before it is taken: if that fails, nothing has begun
		if err := u.fetch(ctx, view); err != nil {
			return nil, err
		}
	}
	l, err := view.Take(ctx, u.node.Name)
	if fenced, is := errors.AsType[*lease.Fenced](err); is {
		return nil, &OwnerError{fenced.Owner} // another was faster
	} else if err != nil {
		return nil, err
	}
	u.creation = view.Creation()
	if err := u.awaitPredecessor(ctx, view); err != nil {
		return nil, err
	}
	if err := u.prepare(ctx, view, l, current, filled); err != nil {
		// The workspace stays this node's, which tries again when it is asked, if only it has the newest files.
		if !current {
			err = errors.Join(err, l.Release(ctx))
		}
		return nil, err
	}
	return l, nil
}

// prepare makes the unit's directory what the view describes.
func (u *unit) prepare(ctx context.Context, view *lease.View, l *lease.Lease, current, filled bool) error {
	older := false // whether the files are older than the log
	if !current && !u.isShared() {
		saved, is := view.Snapshot()
		older = view.Count() > 0 && (view.Restored() || !is || saved.Payloads != view.Count())
	}
	if !current && !filled {
		if err := u.fetch(ctx, view); err != nil {
			return fmt.Errorf("the workspace's files cannot be fetched: %w", err)
		}
	}
	if err := u.furnish(); err != nil {
		return err
	}
	if err := u.markVolume(); err != nil {
		return err
	}
	undoes, err := u.rebuild(ctx, view, older, apply)
	if errors.Is(err, journal.ErrHole) {
		// the log has lost something in the middle: what is left goes on under numbers of its own
		u.log.Error("the workspace's log has lost records: the numbers of those after them are others now", zap.Error(err))
		if err = u.furnish(); err == nil {
			undoes, err = u.rebuild(ctx, view, older, applyAnyway)
		}
	}
	if err == nil && undoes {
		err = u.base(ctx, l) // so that the next owner does not find it in the log again
	}
	if err != nil {
		return fmt.Errorf("the workspace's journal cannot be built: %w", err)
	}
	if filled {
		return u.saveOrigin(ctx, l)
	}
	return nil
}

// furnish makes what the daemon needs. Whatever commands have left in the unit's own directory, no link is followed out of
// the unit's.
func (u *unit) furnish() error {
	root, err := u.openDir()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{"own/run", "tmp", journalName} {
		err = errors.Join(err, snapshot.Empty(root, name))
	}
	err = errors.Join(err, u.furnishBase(root))
	for name, text := range map[string]string{"own/" + settingsName: fmt.Sprintf(settingsText, u.node.Drain, u.callsLimit()), "own/program": ""} {
		err = errors.Join(err, root.RemoveAll(name), root.WriteFile(name, []byte(text), 0o700)) // the program is mounted over its file
	}
	return err
}

// openDir opens the unit's directory, which is made if need be.
func (u *unit) openDir() (*os.Root, error) {
	if err := os.MkdirAll(u.at.dir, 0o700); err != nil {
		return nil, err
	}
	if err := u.note(namesName, u.w); err != nil {
		return nil, err
	}
	return os.OpenRoot(u.at.dir)
}

// current reports whether the files are those of the last owner, which was this node.
func (u *unit) current(view *lease.View) (bool, error) {
	if u.isShared() {
		return u.onVolume(view)
	}
	return u.isCurrent(view), nil
}

// isCurrent is current for files in the unit's directory.
func (u *unit) isCurrent(view *lease.View) bool {
	text, err := os.ReadFile(u.in(markerName))
	if err != nil {
		return false
	}
	var m marker
	return json.Unmarshal(text, &m) == nil && view.Owner() == u.node.Name && (m.Epoch == view.Epoch() || m.Taking == view.Epoch())
}

// mark notes whose the files are.
func (u *unit) mark(m marker) error { return u.note(markerName, m) }

// note writes a file of JSON into the unit's directory, in the place of the one before: there is either of them at any time.
func (u *unit) note(name string, value any) error { return noteIn(u.at.dir, name, value) }

func noteIn(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// fetch replaces the files by those of the last snapshot, or by those that the workspace begins with.
func (u *unit) fetch(ctx context.Context, view *lease.View) error {
	root, err := u.openDir()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{"own", "files", "home"} { // of own, for instance outputs of a session that has gone on elsewhere
		if err := snapshot.Empty(root, name); err != nil {
			return err
		}
	}
	if err := u.emptyBase(); err != nil {
		return err
	}
	if saved, is := view.Snapshot(); is {
		return snapshot.Load(ctx, u.objects, saved.Reference, u.at.place, kept)
	}
	if hasOrigin(view) {
		return u.fill(ctx, view.Creation())
	}
	return nil
}

// An applier makes the change in a store.
type applier struct {
	apply func(store *journal.Store, change journal.Change) error
	fresh bool // numbers are others than clients have seen, so the journal gets an epoch of its own
}

var (
	apply       = applier{(*journal.Store).Apply, false}
	applyAnyway = applier{closeUp, true}
)

// closeUp makes a change that may begin behind the end of its log, with the next numbers.
func closeUp(store *journal.Store, change journal.Change) error {
	err := store.Apply(change)
	if !errors.Is(err, journal.ErrHole) {
		return err
	}
	l, err := store.Log(change.Log)
	if err != nil {
		return err
	}
	change.First = l.Last() + 1
	return store.Apply(change)
}

// rebuild builds the daemon's journal from the payloads. older: the files are, so the daemon is to tell what is lost.
// rolledBack reports whether the journal has dropped what could be undone before.
func (u *unit) rebuild(ctx context.Context, view *lease.View, older bool, with applier) (rolledBack bool, err error) {
	epoch, err := newestEpoch(ctx, view)
	if err != nil {
		return false, err
	}
	if with.fresh || view.Diverged() > 0 {
		epoch = "" // numbers may mean other records than clients have seen
	}
	var lost *losses // nil: nothing is
	switch {
	case older:
		lost = newLosses(view)
	case u.isShared() && view.Owner() != u.node.Name && !view.Released():
		lost = &losses{owner: view.Owner(), volume: true, sessions: map[string]*sessionLosses{}}
	}
	var store *journal.Store
	for payload, err := range view.Payloads(ctx) {
		var request tooldv1.AppendChangesRequest
		if err == nil {
			err = proto.Unmarshal(payload.Data, &request)
		}
		if err == nil && store == nil {
			store, err = journal.Open(filepath.Join(u.at.dir, journalName), journal.Config{Epoch: epoch, Unsynced: true})
		}
		if err == nil {
			lost.note(payload, &request)
			err = with.all(store, &request)
		}
		if err != nil {
			if store != nil {
				err = errors.Join(err, store.Close())
			}
			return false, err
		}
	}
	if store == nil {
		return false, nil
	}
	return lost.undoes(), errors.Join(lost.tell(store), store.Close())
}

// newestEpoch returns the journal's epoch as it was last: it changes where a log has diverged.
func newestEpoch(ctx context.Context, view *lease.View) (string, error) {
	data, is, err := view.Newest(ctx)
	if err != nil || !is {
		return "", err
	}
	var request tooldv1.AppendChangesRequest
	err = proto.Unmarshal(data, &request)
	return request.GetEpoch(), err
}

func (a applier) all(store *journal.Store, request *tooldv1.AppendChangesRequest) error {
	for _, wire := range request.GetChanges() {
		change, err := mirror.Decode(wire)
		if err == nil {
			err = a.apply(store, change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
