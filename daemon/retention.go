// Retention: what of the journal goes when it is too large or too old. It does not know how records
// are dropped, nor what they say.
//
// What goes first: what is too old, what is above a session's own limit, and then, for as long as
// all sessions together hold too much, records that clients have acknowledged, the oldest closed
// sessions whole, and the oldest records of the others. Records of a turn that has not ended never
// go. What an attached stream has still to be sent goes only at twice a limit; the stream is told
// which numbers it will not see.

package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/journal"
)

const (
	// retentionTick is how often the journal is looked through.
	retentionTick = time.Minute
	// hardFactor is by how much a limit is passed before streams lose what they have not been sent.
	hardFactor = 2
	// shedPiece is how many bytes the session with the oldest records gives at a time, so that
	// those of others that are older than the rest of its own come next.
	shedPiece = 1 << 20
)

// maintainJournal looks through the journal until ctx ends.
func (d *Daemon) maintainJournal(ctx context.Context) {
	every(ctx, retentionTick, func() {
		if err := d.retain(time.Now()); err != nil && !errors.Is(err, journal.ErrClosed) {
			d.Log.Warn("old records could not be dropped", zap.Error(err))
		}
	})
}

// A holding is what one session has in the journal.
type holding struct {
	daemon  *Daemon
	name    string
	log     *journal.Log // of a closed one nil, until it is needed
	session *session     // nil: closed, or at rest
	closed  time.Time    // zero: it is not
	bytes   int64

	oldest time.Time // when the oldest record was made; set by shedOldest, as upTo
	upTo   uint64    // the last record that may go
}

// retain drops what is above the limits.
func (d *Daemon) retain(now time.Time) error {
	holdings, err := d.sessions.holdings()
	if err != nil {
		return err
	}
	var wrong []error
	before := now.Add(-d.limits.JournalAge)
	holdings = slices.DeleteFunc(holdings, func(h *holding) bool {
		if h.closed.IsZero() || h.closed.After(before) || d.journal.Watched(h.name) {
			return false
		}
		err := d.removeSession(h.name)
		wrong = append(wrong, err)
		return err == nil
	})
	for _, h := range holdings {
		wrong = append(wrong, h.shed(d.limits.JournalSession, d.limits.JournalSession*hardFactor, before))
	}
	wrong = append(wrong, d.retainTotal(holdings), d.journal.Tidy(), d.sweepCaches(now), d.fleet.Sweep(now))
	d.outputs.Measure()
	return errors.Join(wrong...)
}

// holdings returns what sessions have, those that were made first at the beginning. One that waits
// to be brought back is left alone.
func (x *sessionSet) holdings() (holdings []*holding, err error) {
	infos, err := x.d.journal.Logs()
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		h := &holding{daemon: x.d, name: info.Name, closed: info.Sealed, bytes: info.Bytes}
		if s, open := x.find(info.Name); open {
			h.session, h.log = s, s.log
		} else if h.closed.IsZero() && x.atRest(info.Name) == nil {
			continue
		}
		if h.bytes < 0 {
			if err := h.count(); err != nil {
				return nil, err
			}
		}
		holdings = append(holdings, h)
	}
	return holdings, nil
}

// count finds out how much the session holds.
func (h *holding) count() (err error) {
	if h.log == nil {
		if h.log, err = h.daemon.journal.Log(h.name); err != nil {
			return err
		}
	}
	h.bytes, err = h.log.Bytes()
	return err
}

// removeSession drops a closed session whole. Its outputs go first: a daemon that dies in between
// finds the rest again.
func (d *Daemon) removeSession(name string) error {
	if err := removeTree(d.tempOf(name)); err != nil {
		return err
	}
	if err := d.outputs.Remove(name); err != nil {
		return err
	}
	return d.journal.Remove(name)
}

// retainTotal brings all sessions together within the limit.
func (d *Daemon) retainTotal(holdings []*holding) error {
	limit := d.limits.JournalBytes
	excess := -limit
	for _, h := range holdings {
		excess += h.bytes
	}
	for _, h := range holdings {
		freed, err := h.give(excess, h.acknowledged())
		if excess -= freed; err != nil {
			return err
		}
	}
	closed := slices.DeleteFunc(slices.Clone(holdings), func(h *holding) bool { return h.closed.IsZero() || d.journal.Watched(h.name) })
	slices.SortFunc(closed, func(a, b *holding) int { return a.closed.Compare(b.closed) })
	for _, h := range closed {
		if excess <= 0 {
			return nil
		}
		if err := d.removeSession(h.name); err != nil {
			return err
		}
		excess -= h.bytes
		h.bytes = 0
	}
	excess, err := shedOldest(holdings, excess, (*holding).unneeded)
	if err != nil || excess <= limit*(hardFactor-1) {
		return err
	}
	_, err = shedOldest(holdings, excess, (*holding).ended)
	return err
}

// shedOldest drops the oldest records of any session, none behind what upTo returns for it, until
// excess bytes are gone, and returns what is left of the excess.
func shedOldest(holdings []*holding, excess int64, upTo func(*holding) uint64) (left int64, err error) {
	givers := slices.DeleteFunc(slices.Clone(holdings), func(h *holding) bool { return h.bytes == 0 })
	for _, h := range givers {
		if err := h.count(); err != nil {
			return excess, err
		}
		if h.oldest, err = h.log.Oldest(); err != nil {
			return excess, err
		}
		h.upTo = upTo(h)
	}
	for excess > 0 && len(givers) > 0 {
		first := slices.MinFunc(givers, func(a, b *holding) int { return a.oldest.Compare(b.oldest) })
		freed, err := first.give(min(excess, shedPiece), first.upTo)
		if err != nil {
			return excess, err
		}
		excess -= freed
		if freed == 0 {
			givers = slices.DeleteFunc(givers, func(h *holding) bool { return h == first })
		} else if first.oldest, err = first.log.Oldest(); err != nil {
			return excess, err
		}
	}
	return excess, nil
}

// shed brings one session within its limits. At the hard one streams lose what they have not been
// sent.
func (h *holding) shed(limit, hard int64, before time.Time) error {
	if !h.closed.IsZero() {
		before = time.Time{} // it goes whole
		if h.bytes <= limit {
			return nil
		}
	}
	if err := h.count(); err != nil {
		return err
	}
	bound := journal.Bound{UpTo: h.unneeded(), Bytes: limit, Before: before}
	if err := h.drop(bound); err != nil || h.bytes <= hard {
		return err
	}
	bound.UpTo, bound.Before = h.ended(), time.Time{}
	return h.drop(bound)
}

// give drops the oldest records, none behind upTo, until so many bytes are free.
func (h *holding) give(bytes int64, upTo uint64) (freed int64, err error) {
	if bytes <= 0 || upTo == 0 {
		return 0, nil
	}
	had := h.bytes
	err = h.drop(journal.Bound{UpTo: upTo, Bytes: max(0, had-bytes)})
	return had - h.bytes, err
}

func (h *holding) drop(bound journal.Bound) error {
	first := h.log.First()
	err := h.log.Shed(bound)
	if err == nil {
		err = h.count()
	}
	if h.session != nil && h.log.First() > first {
		err = cmp.Or(err, h.session.forgetOutputs())
	}
	return err
}

// ended is the number up to which records belong to no turn that has not ended.
func (h *holding) ended() uint64 {
	if h.session == nil {
		return h.log.Last()
	}
	return h.session.ended()
}

// unneeded is the number up to which, besides, every stream has been sent the records.
func (h *holding) unneeded() uint64 { return min(h.ended(), h.log.Read()) }

// acknowledged is the number up to which, besides, the client has stored them.
func (h *holding) acknowledged() uint64 {
	if h.session == nil {
		return 0
	}
	acked := view(h.session, func(its *state) uint64 { return its.ledger.acked })
	return min(h.unneeded(), acked)
}

// ended is the number up to which records belong to no turn that has not ended.
func (s *session) ended() uint64 {
	last := s.log.Last() // before the turns are looked at: one that begins now has its records behind it
	turns := view(s, func(its *state) []*turn { return its.ledger.openTurns() })
	for _, t := range turns {
		records, err := s.log.Find(fmt.Sprintf("%d-0", t.number)) // the first of its calls
		if err != nil {
			return 0
		}
		if len(records) > 0 {
			last = min(last, records[0].Seq-1)
		}
	}
	return last
}

// acknowledge takes the word of the main stream's client that it has stored the records up to a
// number.
func (st *stream) acknowledge(seq uint64) {
	s := st.session
	s.update(func(its *state) {
		seq = min(seq, s.log.Last())
		if its.clients.main != st || seq <= its.ledger.acked {
			return
		}
		its.ledger.acked = seq
		its.ledger.keep(putState(keyAcked, seq))
	})
}

// forgetOutputs removes the outputs of calls whose records have been dropped. The calls themselves
// stay known: one that is sent again is not run again.
func (s *session) forgetOutputs() error {
	var ended []string
	s.update(func(its *state) {
		for key, row := range its.ledger.calls {
			if !row.Open && !row.dropped {
				ended = append(ended, key)
			}
		}
	})
	var wrong []error
	for _, key := range ended {
		if kept, err := s.log.Has(key); kept || err != nil {
			wrong = append(wrong, err)
			continue
		}
		files, err := filepath.Glob(filepath.Join(s.outputs.Path(), outputName(s.name, key)) + ".*")
		wrong = append(wrong, err)
		for _, file := range files {
			wrong = append(wrong, os.Remove(file))
		}
		s.update(func(its *state) {
			if row := its.ledger.calls[key]; row != nil {
				row.dropped = true
			}
		})
	}
	return errors.Join(wrong...)
}
