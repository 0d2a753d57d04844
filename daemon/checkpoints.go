// What calls are about to change is kept before they act, in one place for all tools, and what they
// have left is looked at when they have ended. Checkpoints are bounded by age, by bytes of contents
// and by bytes of rows.

package daemon

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// keyCheckpoint is of a session's state: what a call has changed, by its key.
const keyCheckpoint = mirror.CheckpointKey

// How much is kept for one call at most of directories that it may change as a whole.
const (
	keptEntries = 2000
	keptBytes   = 64 << 20
)

// A keptState is what is kept for a call that is about to act. The zero value keeps nothing.
type keptState struct {
	row       *checkpoint.Row
	hold      *checkpoint.Hold
	sync      bool
	recording *recording // nil: nothing is kept while the call runs
}

// snapshotter takes images. What holds credentials is not kept, nor what a rule denies to read or
// asks about, even if a call was allowed to. each: the limit is for each file, as where files are
// put back.
func (j *judge) snapshotter(each bool) workspace.Snapshotter {
	readDenied := j.readDenied()
	refuse := func(real string) string {
		if why := checkpoint.Credential(real); why != "" {
			return why
		}
		if readDenied(real) != "" {
			return "a rule denies or asks about reading it"
		}
		return ""
	}
	return workspace.Snapshotter{Refuse: refuse, Entries: keptEntries, Bytes: min(keptBytes, j.daemon.limits.CheckpointBytes), Each: each}
}

// readDenied returns a function that names the rule which keeps a file from being read unasked.
func (j *judge) readDenied() func(real string) string {
	st := j.policy()
	return func(real string) string {
		if rule := st.rules.DeniesRead(st.places.Seen(real), nil); rule != nil {
			return rule.String()
		}
		return ""
	}
}

// keepBefore keeps what the call may change. tier is how its processes are confined; in the full
// one more is kept while they run. The error is a fault: what could not be put back is not changed.
func (s *session) keepBefore(c *pipeline.Call, tier sandbox.Tier) (keptState, error) {
	files, grows := c.Files(), tier == sandbox.Full
	if files == nil || c.ReadOnly() || s.daemon.limits.CheckpointBytes == 0 || len(files.Changes()) == 0 && !grows {
		return keptState{}, nil
	}
	k := keptState{hold: s.daemon.checkpoints.Hold(), sync: !s.judge.latest().settings.Unsynced}
	r, restores := c.Tool.(*restoring)
	snapshotter := s.judge.snapshotter(restores)
	snapshotter.Keep = k.hold.Keep
	found, err := files.TakeSnapshots(s.ctx, snapshotter, nil)
	if err != nil {
		k.release()
		return keptState{}, keepFault(err)
	}
	k.row = &checkpoint.Row{
		Key: c.Key, ID: c.Use.ID, Turn: c.Use.Turn, TurnID: c.TurnID, Tool: c.Name, Title: c.Title(), Start: s.nextStart(), Open: files.Changes(),
	}
	if restores {
		k.row.Restored = r.undoes
	}
	k.row.Begin(found)
	if grows {
		k.recording = s.newRecording(c, k.row)
	}
	return k, nil
}

// nextStart returns a time that is later than that of every earlier row, also where the clock was
// set back.
func (s *session) nextStart() time.Time {
	return view(s, func(its *state) time.Time {
		now := time.Now().UTC().Round(0)
		if !now.After(its.ledger.kept) {
			now = its.ledger.kept.Add(1)
		}
		its.ledger.kept = now
		return now
	})
}

// keepFault returns the fault of a call that is not started.
func keepFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Failedf("disk_full", "The disk that holds the daemon's checkpoints is full, so what the call would change could not be kept, and it was not started. Free some space and send it again under a new id.")
	}
	if stop, is := errors.AsType[*pipeline.Stop](err); is {
		return stop
	}
	return fault.Failedf("checkpoint_failed", "What the call would change could not be kept (%v), so it was not started.", err)
}

// state is what is recorded with the start.
func (k keptState) state() []journal.Put {
	if k.row == nil {
		return nil
	}
	return []journal.Put{putState(keyCheckpoint+k.row.Key, k.row)}
}

// synced returns when all that was kept is on the disk. The error is a fault.
func (k keptState) synced() error {
	if k.hold == nil || !k.sync {
		return nil
	}
	if err := k.hold.Sync(); err != nil {
		return keepFault(err)
	}
	return nil
}

func (k keptState) release() {
	if k.hold != nil {
		k.hold.Release()
	}
}

// keepAfter looks at what the call has left, and returns the change of the state that is recorded
// with its result. done is to be called when it is. nil: nothing was kept for the call.
func (s *session) keepAfter(c *pipeline.Call, l *live) (change *journal.Put, done func()) {
	switch {
	case l == nil || l.kept == nil:
		return nil, func() {}
	case l.recording == nil:
		hold := s.daemon.checkpoints.Hold()
		return s.look(c.Files(), l.kept, hold, false), hold.Release
	}
	l.recording.end(l.kept)
	return s.look(c.Files(), l.kept, l.recording.hold, false), func() { l.recording.close(s) }
}

// look looks at what a call has left of what a row names, and returns the change of the state; nil:
// it cannot be looked at.
func (s *session) look(files *workspace.View, row *checkpoint.Row, hold *checkpoint.Hold, unseen bool) *journal.Put {
	snapshotter := s.judge.snapshotter(row.Restored != nil)
	selection := sync.OnceValue(func() *checkpoint.Selection { return checkpoint.Select(files.Roots(), s.judge.baseEnviron(), row.Open) })
	// Most calls make no directory, and need no selection.
	snapshotter.Skip = func(real string, isDir bool) bool { return selection().Skips(real, isDir) }
	snapshotter.Keep = hold.KeepShown // nothing is put back from what a call has left: that is kept again when it is undone
	left, err := files.TakeSnapshots(context.Background(), snapshotter, row.Found())
	if err != nil { // what was there before is kept, so it can be put back; there will be no diff
		snapshotter.Keep = nil
		left, err = files.TakeSnapshots(context.Background(), snapshotter, row.Found())
	}
	if err != nil {
		s.daemon.Log.Warn("what a call has left cannot be looked at", zap.String("session", s.name), zap.Error(err))
		return nil
	}
	put := journal.Put{Key: keyCheckpoint + row.Key}
	if row.End(left, unseen) {
		put = putState(put.Key, row)
		s.daemon.checkpoints.Recorded(len(put.Value))
	}
	return &put
}

// completeCheckpoints looks at what calls have left whose end the daemon did not live to see. It is
// as they left it for all that is known.
func (s *session) completeCheckpoints(kept map[string][]byte) error {
	var changed []journal.Put
	var ended []string
	hold := s.daemon.checkpoints.Hold()
	defer hold.Release()
	for key, text := range kept {
		if !strings.HasPrefix(key, keyCheckpoint) {
			continue
		}
		row, err := checkpoint.Decode(text)
		if err != nil {
			s.daemon.Log.Warn("a checkpoint cannot be read", zap.String("session", s.name), zap.String("key", key), zap.Error(err))
			continue
		}
		s.update(func(its *state) { its.ledger.kept = latest(its.ledger.kept, row.Start) })
		if row.Ended {
			continue
		}
		recorded, err := s.daemon.checkpoints.ReadRecording(s.name, row.Key)
		if err != nil {
			s.daemon.Log.Warn("what a call changed while it ran cannot be read", zap.String("session", s.name), zap.Error(err))
		}
		row.Extend(recorded)
		ended = append(ended, row.Key)
		if change := s.look(s.judge.view(row.Open), row, hold, true); change != nil {
			changed = append(changed, *change)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err := view(s, func(its *state) *journal.Pending { return its.ledger.keep(changed...) }).Wait()
	if errors.Is(err, journal.ErrFull) {
		return nil // the next start does it
	}
	for _, key := range ended {
		err = errors.Join(err, s.daemon.checkpoints.DropRecording(s.name, key))
	}
	return err
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// view returns a view for looking at files. What a rule denies to read is not kept.
func (j *judge) view(changes []workspace.Change) *workspace.View {
	return j.policy().places.View(workspace.Grant{Dir: j.places.Roots()[0], Changes: changes, ReadDenied: j.readDenied()}, j.readState)
}

// keptRows is how many bytes the rows of one session have at most, as far as the latest sweep
// knows. Ours: some hundred thousand edits, or twenty calls that change two thousand files each.
const keptRows = 32 << 20

// sweepTick is how often it is looked whether there is too much; what is asked for is then a
// comparison.
const sweepTick = 10 * time.Second

// maintainCheckpoints drops checkpoints that are too old or too many until ctx ends.
func (d *Daemon) maintainCheckpoints(ctx context.Context) {
	every(ctx, sweepTick, func() {
		if !d.checkpoints.Due(d.limits.CheckpointBytes) {
			return
		}
		if err := d.sweepCheckpoints(time.Now()); err != nil && !errors.Is(err, journal.ErrClosed) {
			d.Log.Warn("old checkpoints could not be dropped", zap.Error(err))
		}
	})
}

// sweepCheckpoints drops rows and contents that are too old, contents that no row names, and the
// oldest of those that are too many. Rows of closed sessions go with their session; without
// contents they can still be listed. Where rows were lost with a damaged journal, contents that
// none names may be theirs: they count as of then.
func (d *Daemon) sweepCheckpoints(now time.Time) error {
	oldest := now.Add(-d.limits.CheckpointAge)
	removed, err := d.checkpoints.Sweep(func() (map[string]time.Time, error) { return d.namedContents(oldest) }, d.limits.CheckpointBytes, oldest, d.rowsLost())
	if removed > 0 {
		d.Log.Info("dropped checkpoints", zap.Int64("bytes", removed))
	}
	return err
}

// rowsLost returns when a journal was last put aside as damaged; zero: never, as far as such a file
// is still there.
func (d *Daemon) rowsLost() (at time.Time) {
	const mark = ".damaged-"
	files, err := filepath.Glob(filepath.Join(d.StateDir, "journal", "*"+mark+"*"))
	if err != nil {
		return at // the pattern is sound
	}
	for _, file := range files {
		_, stamp, _ := strings.Cut(filepath.Base(file), mark)
		stamp, _, _ = strings.Cut(stamp, "Z")
		if lost, err := time.Parse("20060102T150405", stamp); err == nil {
			at = latest(at, lost)
		}
	}
	return at
}

// namedContents returns the contents that rows name, with when the newest such row was made. Rows
// that are too old or too many are dropped.
func (d *Daemon) namedContents(oldest time.Time) (map[string]time.Time, error) {
	infos, err := d.journal.Logs()
	if err != nil {
		return nil, err
	}
	named := map[string]time.Time{}
	for _, info := range infos {
		rows, log, err := d.rowsOf(info.Name, nil)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kept, gone := overdue(rows, oldest, info.Sealed.IsZero())
		for _, row := range kept {
			row.Names(func(hash string) { named[hash] = latest(named[hash], row.Start) })
		}
		if len(gone) > 0 && info.Sealed.IsZero() {
			log.Keep(journal.Committed, gone...)
		}
	}
	return named, nil
}

// overdue parts the rows of a session into those that stay and those that are too old or, where it
// is open, too many.
func overdue(rows []stored, oldest time.Time, open bool) (kept []*checkpoint.Row, gone []journal.Put) {
	slices.SortFunc(rows, func(a, b stored) int { return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(a.Key, b.Key)) })
	left := keptRows
	for _, row := range rows {
		left -= row.bytes
		if row.Ended && (row.Start.Before(oldest) || open && left < 0) {
			gone = append(gone, journal.Put{Key: keyCheckpoint + row.Key})
		} else {
			kept = append(kept, row.Row)
		}
	}
	return kept, gone
}
