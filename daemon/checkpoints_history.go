// The rows of sessions, as they stand in the journal, and the histories that they make.

package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/tools/fs/pathname"
)

// A stored row and how many bytes of the journal it takes.
type stored struct {
	*checkpoint.Row
	bytes int
}

// rowsOf reads the checkpoints of a session; with mark only those in whose text that stands. Those that cannot be read are
// left out. The rows are shared, and not to be changed.
func (d *Daemon) rowsOf(name string, mark []byte) (rows []stored, log *journal.Log, err error) {
	if log, err = d.journal.Log(name); err != nil {
		return nil, nil, err
	}
	state, err := log.State(keyCheckpoint)
	if err != nil {
		return nil, nil, err
	}
	for key, text := range state {
		if !bytes.Contains(text, mark) {
			continue
		}
		row, err := d.checkpoints.Row(text)
		if err != nil || keyCheckpoint+row.Key != key {
			d.Log.Warn("a checkpoint cannot be read", zap.String("session", name), zap.String("key", key), zap.Error(err))
			continue
		}
		rows = append(rows, stored{row, len(text)})
	}
	return rows, log, nil
}

// restoredMark stands in the text of every row of a call that put something back.
var restoredMark = []byte(`"restored":{`)

// history returns the checkpoints of a session, and where it is closed also those by which it was restored.
func (d *Daemon) history(name string) (checkpoint.History, error) {
	var all []checkpoint.Past
	add := func(session string, mark []byte) error {
		rows, _, err := d.rowsOf(session, mark)
		for _, row := range rows {
			if mark == nil || row.Restored != nil && row.Restored.Session != session {
				all = append(all, checkpoint.Past{Session: session, Row: row.Row})
			}
		}
		return err
	}
	if err := add(name, nil); err != nil {
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
		if err := add(info.Name, restoredMark); err != nil && !errors.Is(err, journal.ErrNotFound) {
			return nil, err
		}
	}
	return checkpoint.NewHistory(name, all), nil
}

// placeIn names a file in a diff: relative to the root that it lies in.
func placeIn(roots []string, real string) string {
	best := ""
	for _, root := range roots {
		if pathname.Within(root, real) && len(root) > len(best) {
			best = root
		}
	}
	if best == "" || best == real {
		return strings.TrimPrefix(real, "/")
	}
	return strings.TrimPrefix(strings.TrimPrefix(real, best), "/")
}

// unknownCheckpoint means that there is nothing to restore.
func unknownCheckpoint(format string, args ...any) *apierror.Error {
	return apierror.NotFoundf("unknown_checkpoint", "", "%s", fmt.Sprintf(format, args...))
}
