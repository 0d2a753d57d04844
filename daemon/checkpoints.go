package daemon

// What calls are about to change is kept before they act, at one place for all tools alike, and what they have left is
// looked at when they have ended. How it is put back is in checkpoints_restore.go. It does not know what a tool does.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace"
)

// keyCheckpoint is of a session's state: what a call has changed, by its key.
const keyCheckpoint = "checkpoint:"

// How much is kept for one call at most of directories that it may change as a whole.
const (
	keptEntries = 2000
	keptBytes   = 64 << 20
)

// A safekeeping is what is kept for a call that is about to act. The zero value keeps nothing.
type safekeeping struct {
	row  *checkpoint.Row
	hold *checkpoint.Hold
	sync bool
}

// camera takes images whose contents are kept.
func (d *Daemon) camera(keep *checkpoint.Hold) workspace.Camera {
	c := workspace.Camera{Refuse: checkpoint.Credential, Entries: keptEntries, Bytes: min(keptBytes, d.limits.CheckpointBytes)}
	if keep != nil {
		c.Keep = keep.Keep
	}
	return c
}

// keepBefore keeps what the call may change. The error is a fault: what could not be put back is not changed.
func (s *session) keepBefore(c *pipeline.Call) (safekeeping, error) {
	files := c.Files()
	if files == nil || c.ReadOnly() || s.daemon.limits.CheckpointBytes == 0 || len(files.Changes()) == 0 {
		return safekeeping{}, nil
	}
	k := safekeeping{hold: s.daemon.checkpoints.Hold(), sync: !s.stand().settings.Unsynced}
	found, err := files.Expose(s.ctx, s.daemon.camera(k.hold), nil)
	if err != nil {
		k.release()
		return safekeeping{}, keepFault(err)
	}
	k.row = &checkpoint.Row{
		Key: c.Key, ID: c.Use.ID, Turn: c.Use.Turn, TurnID: c.TurnID, Tool: c.Name, Title: c.Title(), Start: s.nextStart(), Open: files.Changes(),
	}
	if r, ok := c.Tool.(*restoring); ok {
		k.row.Restored = r.undoes
	}
	k.row.Begin(found)
	return k, nil
}

// nextStart gives a time that is later than that of every earlier row, also where the clock was set back.
func (s *session) nextStart() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC().Round(0)
	if !now.After(s.kept) {
		now = s.kept.Add(1)
	}
	s.kept = now
	return now
}

// keepFault puts into words why a call is not started.
func keepFault(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Failedf("disk_full", "The disk that holds the daemon's checkpoints is full, so what the call would change could not be kept, and it was not started. Free some space and send it again under a new id.")
	}
	var stop *pipeline.Stop
	if errors.As(err, &stop) {
		return stop
	}
	return fault.Failedf("checkpoint_failed", "What the call would change could not be kept (%v), so it was not started.", err)
}

// state is what is recorded with the start.
func (k safekeeping) state() []journal.Put {
	if k.row == nil {
		return nil
	}
	return []journal.Put{put(keyCheckpoint+k.row.Key, k.row)}
}

// synced returns when all that was kept is on the disk. The error is a fault.
func (k safekeeping) synced() error {
	if k.hold == nil || !k.sync {
		return nil
	}
	if err := k.hold.Sync(); err != nil {
		return keepFault(err)
	}
	return nil
}

func (k safekeeping) release() {
	if k.hold != nil {
		k.hold.Release()
	}
}

// keepAfter looks at what the call has left, and gives the change of the state that is recorded with its result. done is
// to be called when it is. nil: nothing was kept for the call.
func (s *session) keepAfter(c *pipeline.Call) (change *journal.Put, done func()) {
	s.mu.Lock()
	l := s.live[c.Key]
	s.mu.Unlock()
	if l == nil || l.kept == nil {
		return nil, func() {}
	}
	hold := s.daemon.checkpoints.Hold()
	found := l.kept.Found()
	camera := s.daemon.camera(nil)
	camera.Keep = hold.KeepShown // nothing is put back from what a call has left: that is kept again when it is undone
	left, err := c.Files().Expose(context.Background(), camera, found)
	if err != nil { // what was there before is kept, so it can be put back; there will be no diff
		left, err = c.Files().Expose(context.Background(), s.daemon.camera(nil), found)
	}
	if err != nil {
		s.daemon.Log.Warn("what a call has left cannot be looked at", zap.String("session", s.name), zap.Error(err))
		return nil, hold.Release
	}
	if !l.kept.End(left) {
		return &journal.Put{Key: keyCheckpoint + c.Key}, hold.Release
	}
	row := put(keyCheckpoint+c.Key, l.kept)
	return &row, hold.Release
}

// completeCheckpoints looks at what calls have left whose end the daemon did not live to see. It is as they left it for all
// that is known.
func (s *session) completeCheckpoints(state map[string][]byte) error {
	var changed []journal.Put
	hold := s.daemon.checkpoints.Hold()
	defer hold.Release()
	for key, text := range state {
		if !strings.HasPrefix(key, keyCheckpoint) {
			continue
		}
		row, err := checkpoint.Decode(text)
		if err != nil {
			s.daemon.Log.Warn("a checkpoint cannot be read", zap.String("session", s.name), zap.String("key", key), zap.Error(err))
			continue
		}
		s.kept = latest(s.kept, row.Start)
		if row.Ended {
			continue
		}
		camera := s.daemon.camera(nil)
		camera.Keep = hold.KeepShown
		left, err := s.lens(row.Open).Expose(s.ctx, camera, row.Found())
		switch {
		case err != nil:
			s.daemon.Log.Warn("what a call has left cannot be looked at", zap.String("session", s.name), zap.Error(err))
		case row.End(left):
			changed = append(changed, put(key, row))
		default:
			changed = append(changed, journal.Put{Key: key})
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err := s.log.Keep(journal.Committed, changed...).Wait()
	if errors.Is(err, journal.ErrFull) {
		return nil // the next start does it
	}
	return err
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lens gives a view that looks at files without opening them for anybody: what a rule bars is not kept.
func (s *session) lens(changes []workspace.Change) *workspace.View {
	st := s.stand()
	barred := func(real string) string {
		if rule := st.rules.Bars(real, nil); rule != nil {
			return rule.String()
		}
		return ""
	}
	return st.places.View(workspace.Grant{Dir: s.places.Roots()[0], Changes: changes, Barred: barred}, s.memory)
}

// sweepTick is how often it is looked whether there is too much; what is asked for is then a comparison.
const sweepTick = 10 * time.Second

// keepCheckpoints drops checkpoints that are too old or too many until ctx ends.
func (d *Daemon) keepCheckpoints(ctx context.Context) {
	tick := time.NewTicker(sweepTick)
	defer tick.Stop()
	for {
		if d.checkpoints.Due(d.limits.CheckpointBytes) {
			if err := d.sweepCheckpoints(time.Now()); err != nil && !errors.Is(err, journal.ErrClosed) {
				d.Log.Warn("old checkpoints could not be dropped", zap.Error(err))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweepCheckpoints drops rows and contents that are too old, contents that no row names, and the oldest of those that are
// too many. Rows of closed sessions go with their session; without contents they can still be listed.
func (d *Daemon) sweepCheckpoints(now time.Time) error {
	oldest := now.Add(-d.limits.CheckpointAge)
	removed, err := d.checkpoints.Sweep(func() (map[string]time.Time, error) { return d.namedContents(oldest) }, d.limits.CheckpointBytes, oldest)
	if removed > 0 {
		d.Log.Info("dropped checkpoints", zap.Int64("bytes", removed))
	}
	return err
}

// namedContents gives the contents that rows name, with when the newest such row was made. Rows that are too old are
// dropped.
func (d *Daemon) namedContents(oldest time.Time) (map[string]time.Time, error) {
	infos, err := d.journal.Logs()
	if err != nil {
		return nil, err
	}
	named := map[string]time.Time{}
	for _, info := range infos {
		rows, log, err := d.rowsOf(info.Name)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var gone []journal.Put
		for _, row := range rows {
			if row.Ended && row.Start.Before(oldest) {
				gone = append(gone, journal.Put{Key: keyCheckpoint + row.Key})
				continue
			}
			row.Names(func(hash string) { named[hash] = latest(named[hash], row.Start) })
		}
		if len(gone) > 0 && info.Sealed.IsZero() {
			log.Keep(journal.Committed, gone...)
		}
	}
	return named, nil
}

// rowsOf reads the checkpoints of a session. Those that cannot be read are left out.
func (d *Daemon) rowsOf(name string) (rows []*checkpoint.Row, log *journal.Log, err error) {
	if log, err = d.journal.Log(name); err != nil {
		return nil, nil, err
	}
	state, err := log.State(keyCheckpoint)
	if err != nil {
		return nil, nil, err
	}
	for key, text := range state {
		row, err := checkpoint.Decode(text)
		if err != nil || keyCheckpoint+row.Key != key {
			d.Log.Warn("a checkpoint cannot be read", zap.String("session", name), zap.String("key", key), zap.Error(err))
			continue
		}
		rows = append(rows, row)
	}
	return rows, log, nil
}

// history gives the checkpoints of a session, and where it is closed also those by which it was restored.
func (d *Daemon) history(name string) (checkpoint.History, error) {
	var all []checkpoint.Past
	add := func(session string, wanted func(*checkpoint.Row) bool) error {
		rows, _, err := d.rowsOf(session)
		for _, row := range rows {
			if wanted(row) {
				all = append(all, checkpoint.Past{Session: session, Row: row})
			}
		}
		return err
	}
	if err := add(name, func(*checkpoint.Row) bool { return true }); err != nil {
		return nil, err
	}
	infos, err := d.journal.Logs()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(infos, func(i journal.Info) bool { return i.Name == name })
	if at >= 0 && infos[at].Sealed.IsZero() {
		return checkpoint.NewHistory(name, all), nil
	}
	for _, info := range infos {
		if info.Name == name || info.Created.Before(infos[max(at, 0)].Created) {
			continue
		}
		elsewhere := func(row *checkpoint.Row) bool { return row.Restored != nil && row.Restored.Session != info.Name }
		if err := add(info.Name, elsewhere); err != nil && !errors.Is(err, journal.ErrNotFound) {
			return nil, err
		}
	}
	return checkpoint.NewHistory(name, all), nil
}

// placeIn names a file in a diff: relative to the root that it lies in.
func placeIn(roots []string, real string) string {
	best := ""
	for _, root := range roots {
		if workspace.Within(root, real) && len(root) > len(best) {
			best = root
		}
	}
	if best == "" || best == real {
		return strings.TrimPrefix(real, "/")
	}
	return strings.TrimPrefix(strings.TrimPrefix(real, best), "/")
}

// unknownCheckpoint says that there is nothing to be put back.
func unknownCheckpoint(format string, args ...any) *refusal {
	return refuse(codes.NotFound, "unknown_checkpoint", "%s", fmt.Sprintf(format, args...))
}
