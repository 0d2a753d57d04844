// Opening the journal, and what is reported of one that was damaged.

package daemon

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/journal"
)

// journalReserve is how many bytes of the disk are kept for the results of calls that were
// accepted. A thousand calls that end as cancelled take 4 MiB.
const journalReserve = 8 << 20

// openJournal opens the journal. Of a damaged one it keeps what can be read, and of one that cannot
// be read at all nothing; either is put aside. The warnings say what was lost.
func openJournal(dir string, config journal.Config) (store *journal.Store, warnings []string, err error) {
	var damage *journal.CorruptError
	store, err = verified(dir, config)
	if !errors.As(err, &damage) || config.Mirror != nil {
		return store, nil, err
	}
	report, failed := journal.Salvage(dir)
	switch {
	case failed == nil:
		warnings = lossWarnings(damage, report)
	case errors.As(failed, new(*journal.CorruptError)):
		aside, moved := journal.SetAside(dir)
		if moved != nil {
			return nil, nil, errors.Join(err, moved)
		}
		warnings = []string{fmt.Sprintf("the journal was damaged (%v) and nothing of it could be read; it is kept as %s, sessions begin again, and nothing that was changed before can be undone by toold undo", damage.Err, aside)}
	default:
		return nil, nil, errors.Join(err, failed)
	}
	store, err = journal.Open(dir, config)
	return store, warnings, err
}

// verified opens the journal and reads what is needed to go on with every open session.
func verified(dir string, config journal.Config) (*journal.Store, error) {
	store, err := journal.Open(dir, config)
	if err != nil {
		return nil, err
	}
	if err := store.Verify(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// mirror returns the mirror for the journal, if there is one: when it refuses, this daemon must not go on.
func (d *Daemon) mirror() journal.Mirror {
	if d.Mirror == nil {
		return nil
	}
	return func(epoch string, changes []journal.Change, held func()) error {
		err := d.Mirror(epoch, changes, held)
		if err != nil {
			d.Log.Error("the daemon ends, since the mirror of its journal has refused a change", zap.Error(err))
			d.Stop()
		}
		return err
	}
}

// lossWarnings returns what a salvaged journal lacks, session by session.
func lossWarnings(damage *journal.CorruptError, report *journal.Salvaged) []string {
	warnings := []string{fmt.Sprintf("the journal was damaged (%v); what could be read of its %d sessions is there again, and the damaged file is kept as %s. toold undo may not know of all calls", damage.Err, report.Logs, report.Aside)}
	for _, loss := range report.Lost {
		for _, gap := range loss.Gaps {
			warnings = append(warnings, fmt.Sprintf("session %q has lost the records %d to %d, and the ids of calls of which nothing else is left: they would run again", loss.Log, gap.First, gap.Last))
		}
		if loss.Tail {
			warnings = append(warnings, fmt.Sprintf("session %q may have lost its newest records", loss.Log))
		}
		if loss.State {
			warnings = append(warnings, fmt.Sprintf("session %q has lost a part of its state: look at its working directory, options and todo list", loss.Log))
		}
	}
	return warnings
}
