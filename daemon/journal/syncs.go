// Syncs: bringing to the disk what has been committed, for those who wait for
// it. Does not know what was committed.
//
// A transaction itself is not synced (SQLite's "synchronous = normal"): its
// frames are handed to the operating system, at the end of the write-ahead log.
// A caller that needs more waits here for one fdatasync of that file, shared by all
// who came before it began; transactions go on meanwhile, so that a session
// that needs no sync does not wait for another's. SQLite cannot tell the
// difference: it syncs the log before it copies pages into the database, the
// database before it reuses the log, and the log's header when it does. A
// frame is thus in a synced database or in the file that is synced here.

package journal

import (
	"os"
	"slices"
	"sync"
)

// syncer belongs to one goroutine, run; the writer hands it what it has
// committed.
type syncer struct {
	wal    *os.File                     // the write-ahead log, by a descriptor of its own: one file for as long as the database is open; nil: no sync is ever needed
	mirror func([]Change, func()) error // nil: there is none
	wake   chan struct{}
	done   chan struct{} // closed when run has ended

	mu      sync.Mutex
	sync    func() error // fdatasync of wal
	waiting []*Pending   // committed, in order
	busy    bool         // something waits, or is being synced
	closed  bool
	broken  error // a sync or the mirror has failed: what is safe is not known any more
}

// openSyncer is called after the first transaction, which makes the file. If the store is unsynced no
// caller waits for the disk.
func openSyncer(database, epoch string, config Config) (*syncer, error) {
	y := &syncer{wake: make(chan struct{}, 1), done: make(chan struct{}), sync: func() error { return nil }}
	if config.Mirror != nil {
		y.mirror = func(changes []Change, held func()) error { return config.Mirror(epoch, changes, held) }
	}
	if config.Unsynced {
		return y, nil
	}
	var err error
	if y.wal, err = os.OpenFile(database+"-wal", os.O_RDWR, 0); err != nil {
		return nil, err
	}
	y.sync = func() error { return syncData(y.wal) }
	return y, nil
}

// hand takes over a group that has been committed. What needs no sync, and
// follows nothing in its log that does, is shown at once.
func (y *syncer) hand(group []*Pending) {
	y.mu.Lock()
	defer y.mu.Unlock()
	before := len(y.waiting)
	for _, p := range group {
		if p.err == nil && (p.durable() && (y.wal != nil || y.mirror != nil) || p.log.syncing > 0) {
			p.log.syncing++
			y.waiting = append(y.waiting, p)
			continue
		}
		p.conclude(p.err)
	}
	if len(y.waiting) > before {
		y.busy = true
		signal(y.wake)
	}
}

// underWay reports whether a sync is; the end of it wakes the writer.
func (y *syncer) underWay() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.busy
}

// run syncs and mirrors until it is closed and no caller waits, and calls rested whenever none does. A sync
// that has failed once is not tried again: the kernel may have dropped what it could not write, and
// would then say that all is well.
func (y *syncer) run(rested func()) {
	defer close(y.done)
	var group []*Pending
	for {
		<-y.wake
		y.mu.Lock()
		clear(group)
		group, y.waiting = y.waiting, group[:0]
		closed, err, sync := y.closed, y.broken, y.sync
		y.mu.Unlock()
		if err == nil && slices.ContainsFunc(group, (*Pending).durable) {
			if err = sync(); err != nil {
				suspect(y.wal.Name(), err)
			}
		}
		if err == nil && y.mirror != nil && len(group) > 0 {
			err = y.mirror(changesOf(group), func() {
				for _, p := range group {
					p.show()
				}
			})
		}
		rests := err != nil && y.release(group, err) // before a waiter sees it: what it appends then follows nothing
		for _, p := range group {
			p.conclude(err)
		}
		if err == nil {
			rests = y.release(group, nil)
		}
		if rests {
			rested()
		}
		if closed {
			return
		}
	}
}

// durable reports whether the entries themselves need a sync, or only follow such.
func (p *Pending) durable() bool { return p.durability == Synced }

// release lets what follows a group's entries in their logs pass, and reports whether no caller
// waits any more.
func (y *syncer) release(group []*Pending, err error) (rested bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.broken = err
	for _, p := range group {
		p.log.syncing--
	}
	y.busy = len(y.waiting) > 0
	return !y.busy
}

// close returns when no caller waits any more. The writer has ended before.
func (y *syncer) close() error {
	y.mu.Lock()
	y.closed = true
	signal(y.wake)
	y.mu.Unlock()
	<-y.done
	if y.wal == nil {
		return nil
	}
	return y.wal.Close()
}

// signal wakes the goroutine that receives from wake, which has room for one value. It never blocks.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
