// Mirroring: whatever a store commits is passed to a copy elsewhere before any client sees it, and a store
// is built from such changes. The mirror takes the syncer's place at the end of a group: while it stores
// one, the next gathers in the queue.

package journal

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// A Mirror stores changes in another place, and returns when they are safe there. It is called by one
// goroutine at a time, with changes in the order in which they were committed, and not before the
// call before has returned. It may block for as long as it needs: what it was given does not count as
// appended until it returns, nor do readers see it, unless it calls held. After an error, which the
// entries' Wait returns, it is not called again, and the store takes nothing more.
//
// A mirror through which readers' answers leave may have readers see the changes while it stores them: it
// calls held, on the goroutine that has called it, once it lets nothing that readers pass on from then on
// leave before the changes are safe. What waits for the changes to be safe, such as the beginning of a call,
// goes on waiting.
//
// What a mirror is given must not be modified. epoch is the store's.
type Mirror func(epoch string, changes []Change, held func()) error

// ErrHole is returned by Apply if changes before are missing.
var ErrHole = errors.New("journal: changes are missing")

// A Change is what was committed in one log at once. Those of a store, in order, build it again:
// see [Store.Apply].
type Change struct {
	Log     string
	Created time.Time // of the log
	First   uint64    // the number of the first of Entries; without entries, the number that the next will get
	Entries []Entry
	State   []Put     // changes of the state that came without an entry
	Sealed  time.Time // zero: the log is open
	Removed bool      // the log was removed; nothing else is set
}

// show shows what was committed to the readers, once.
func (p *Pending) show() {
	if p.from > 0 && !p.shown {
		p.shown = true
		p.log.show(p)
	}
}

// change describes what p has committed. The caller knows that its entries are not released yet.
func (p *Pending) change() Change {
	c := Change{Log: p.log.name, Created: time.Unix(0, p.log.created), First: p.from, Entries: p.entries, State: p.state, Sealed: p.sealed, Removed: p.removed}
	for i := range c.Entries {
		c.Entries[i].Time = p.time(&c.Entries[i])
	}
	return c
}

// changesOf describes what a group has committed.
func changesOf(group []*Pending) []Change {
	changes := make([]Change, len(group))
	for i, p := range group {
		changes[i] = p.change()
	}
	return changes
}

// reportEnd passes the end of a log to the mirror, if there is one, behind everything that was
// enqueued, and waits for it.
func (l *Log) reportEnd(sealed time.Time, removed bool) error {
	if !l.store.mirrored {
		return nil
	}
	l.mu.Lock()
	l.pins++
	l.mu.Unlock()
	p := &Pending{log: l, sealed: sealed, removed: removed, durability: Synced, at: time.Now(), done: make(chan struct{})}
	if !l.store.queue.put(p) {
		l.unpin()
		return ErrClosed
	}
	_, err := p.Wait()
	return err
}

// Apply makes the change in this store. Changes come in the order in which a mirror was given them,
// or [Store.Export] has returned them; entries that are there already are skipped, so that what was
// applied in part can be applied again. It returns an error that wraps [ErrHole] for a change that
// begins behind the end of its log.
func (s *Store) Apply(c Change) error {
	l, err := s.Log(c.Log)
	switch {
	case errors.Is(err, ErrNotFound) && c.Removed:
		return nil
	case errors.Is(err, ErrNotFound):
		if l, err = s.create(c.Log, c.Created, max(c.First, 1)); err != nil {
			return err
		}
	case err != nil:
		return err
	case c.Removed:
		return s.Remove(c.Log)
	}
	if l.hasEnded() {
		return nil // after it has been sealed nothing changes
	}
	next := l.Last() + 1
	if c.First > next {
		return fmt.Errorf("%w: a change of the log %q begins at %d, and the log goes on with %d", ErrHole, c.Log, c.First, next)
	}
	if entries := c.Entries[min(next-min(c.First, next), uint64(len(c.Entries))):]; len(entries) > 0 {
		if _, err := l.Append(entries...); err != nil {
			return err
		}
	}
	if len(c.State) > 0 {
		if _, err := l.Keep(Committed, c.State...).Wait(); err != nil {
			return err
		}
	}
	if !c.Sealed.IsZero() {
		return l.seal(c.Sealed)
	}
	return nil
}

func (l *Log) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sealed
}

// Export returns changes which build the store as it is, the oldest log first, each with at most 256
// entries or about 256 KiB of bodies. The notes of calls become part of the state. No goroutine may
// write to the store meanwhile.
func (s *Store) Export() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		infos, err := s.Logs()
		if err != nil {
			yield(Change{}, err)
			return
		}
		for _, info := range infos {
			if !s.exportLog(info, yield) {
				return
			}
		}
	}
}

// exportLog yields the changes that make one log, and reports whether the caller wants more.
func (s *Store) exportLog(info Info, yield func(Change, error) bool) bool {
	l, err := s.Log(info.Name)
	if err != nil {
		return yield(Change{}, err)
	}
	state, err := l.State("")
	if err != nil {
		return yield(Change{}, err)
	}
	c := Change{Log: info.Name, Created: info.Created}
	cursor := l.Follow(0)
	defer cursor.Close()
	next := info.First
	for {
		records, err := cursor.Next()
		if err != nil {
			return yield(Change{}, err)
		}
		if len(records) == 0 {
			break
		}
		c.First, c.Entries = records[0].Seq, nil
		for _, r := range records {
			c.Entries = append(c.Entries, Entry{Kind: r.Kind, Call: r.Call, Turn: r.Turn, Time: r.Time, Body: r.Body})
		}
		next = c.First + uint64(len(records))
		if !yield(c, nil) {
			return false
		}
	}
	end := Change{Log: info.Name, Created: info.Created, First: next, Sealed: info.Sealed}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		end.State = append(end.State, Put{key, state[key]})
	}
	return yield(end, nil)
}
