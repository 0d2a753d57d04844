// What bounds checkpoints: age, bytes of contents, bytes of rows.

package daemon

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
)

// keptRows is how many bytes the rows of one session have at most, as far as the latest sweep knows. Ours: some hundred
// thousand edits, or twenty calls that change two thousand files each.
const keptRows = 32 << 20

// sweepTick is how often it is looked whether there is too much; what is asked for is then a comparison.
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

// sweepCheckpoints drops rows and contents that are too old, contents that no row names, and the oldest of those that are
// too many. Rows of closed sessions go with their session; without contents they can still be listed. Where rows were lost
// with a damaged journal, contents that none names may be theirs: they count as of then.
func (d *Daemon) sweepCheckpoints(now time.Time) error {
	oldest := now.Add(-d.limits.CheckpointAge)
	d.checkpoints.Unnamed(d.rowsLost())
	removed, err := d.checkpoints.Sweep(func() (map[string]time.Time, error) { return d.namedContents(oldest) }, d.limits.CheckpointBytes, oldest)
	if removed > 0 {
		d.Log.Info("dropped checkpoints", zap.Int64("bytes", removed))
	}
	return err
}

// rowsLost returns when a journal was last put aside as damaged; zero: never, as far as such a file is still there.
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

// namedContents returns the contents that rows name, with when the newest such row was made. Rows that are too old or too
// many are dropped.
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

// overdue parts the rows of a session into those that stay and those that are too old or, where it is open, too many.
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
