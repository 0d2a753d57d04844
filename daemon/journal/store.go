// The store: opening and closing, and the logs by name.

package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"weak"
)

const (
	fileName    = "journal.db"
	reserveName = "reserve"
)

// Store is an open database with all of its logs. All methods may be called
// from any goroutine.
type Store struct {
	db        *database
	files     *files
	epoch     string
	queue     queue
	done      chan struct{} // closed when the writer has ended
	syncs     *syncer
	mirrored  bool                // everything waits for a mirror
	committed func(time.Duration) // nil: nobody wants to know

	writing  sync.Mutex // held while a group is written; guards the rest of this paragraph
	group    []*Pending // that is written, or was last
	previous map[link]uint64
	puts     map[cell]noted

	mu   sync.Mutex
	logs map[string]knownLog // those that were asked for since the store was opened
}

// A knownLog is kept in memory for as long as it takes records, and after that for
// as long as it is in use.
type knownLog struct {
	open   *Log
	sealed weak.Pointer[Log] // since it was found to be, by sweep
}

// log returns the log, or nil if it is no longer in use.
func (k knownLog) log() *Log {
	if k.open != nil {
		return k.open
	}
	return k.sealed.Value()
}

// Config is how a store is kept.
type Config struct {
	// Reserve is how many bytes of the disk are kept for terminal entries. While
	// they are in use all others are refused with ErrFull. 0: none are kept.
	Reserve int64
	// Unsynced lets nothing wait for the disk: Synced entries are Committed.
	Unsynced bool
	// Mirror stores everything in another place before readers see it. Nil: there is none.
	Mirror Mirror
	// Committed is called after each transaction that writes entries, with how long it took. It must not block. Nil: it
	// is not called.
	Committed func(took time.Duration)
	// Epoch is that of a new database, which will be built by [Store.Apply]. Empty: it gets an epoch of its own.
	Epoch string
}

// Open opens the database in dir and makes what is missing: the directory with
// mode 0700, the file with 0600; an older directory keeps its mode. It returns
// a [*CorruptError] for a file that is damaged or not a journal, or in which
// damage was met when it was last open, a
// [*VersionError] for one that a newer toold has written, and ErrInUse if
// another process has it open. A database of an older version becomes one of
// this version.
func Open(dir string, config Config) (*Store, error) {
	path, err := makeFile(dir)
	if err != nil {
		return nil, err
	}
	if met, err := os.ReadFile(filepath.Join(dir, suspectName)); err == nil {
		return nil, &CorruptError{Path: path, Err: fmt.Errorf("damage was met before: %s", bytes.TrimSpace(met))}
	}
	spare := &reserve{path: filepath.Join(dir, reserveName), size: config.Reserve}
	spare.find()
	db, epoch, err := begin(path, config.Epoch)
	if errors.Is(err, ErrFull) && spare.release() {
		db, epoch, err = begin(path, config.Epoch)
	}
	if err != nil {
		return nil, err
	}
	db.reserve = spare
	found, err := findFiles(path)
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	s := &Store{
		db:    db,
		files: found,
		epoch: epoch,
		queue: queue{wake: make(chan struct{}, 1)},
		done:  make(chan struct{}),
		logs:  map[string]knownLog{},

		mirrored:  config.Mirror != nil,
		committed: config.Committed,
		previous:  map[link]uint64{},
		puts:      map[cell]noted{},
	}
	if s.syncs, err = openSyncer(path, epoch, config); err != nil {
		return nil, errors.Join(err, db.close())
	}
	go s.syncs.run(func() { signal(s.queue.wake) })
	go func() {
		defer close(s.done)
		s.write()
	}()
	return s, nil
}

// Epoch identifies the numbering. It stays the same as long as every number
// means the same record: it is made with the database, and again if power may
// have been lost with records that were committed but not synced.
func (s *Store) Epoch() string { return s.epoch }

// Verify reads, of every log that is not sealed, all that is needed to continue it. A
// [*CorruptError] means that some of it cannot be read.
func (s *Store) Verify() error {
	infos, err := s.Logs()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if !info.Sealed.IsZero() {
			continue
		}
		l, err := s.Log(info.Name)
		if err != nil {
			return err
		}
		if _, err := l.Bytes(); err != nil {
			return err
		}
		if _, err := l.State(""); err != nil {
			return err
		}
	}
	return nil
}

// Damaged is the first damage that was met since the store was opened; nil: none.
// What can be read is served all the same. After [Store.Close] the database is to
// be salvaged.
func (s *Store) Damaged() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.db.damage == nil {
		return nil
	}
	return s.db.damage
}

// Full reports whether the reserve is in use or could not be taken: only the ends of
// what has begun are recorded.
func (s *Store) Full() bool { return !s.db.reserve.held.Load() && s.db.reserve.size > 0 }

// Close writes what was enqueued and closes the database. Everything after it
// fails with ErrClosed. A database that is not where it was opened is whole
// without its write-ahead log, wherever it is now.
func (s *Store) Close() error {
	if !s.queue.close() {
		return ErrClosed
	}
	<-s.done
	synced := s.syncs.close()
	marked := s.db.closeEpoch()
	var emptied error
	if s.Present() != nil {
		emptied = s.db.empty() // SQLite leaves the log as it is, beside whatever is at the path by then
	}
	return cmp.Or(s.db.close(), marked, synced, emptied)
}

// Create makes a new, empty log. It returns ErrExists if the name is taken.
func (s *Store) Create(name string) (*Log, error) {
	return s.create(name, time.Now(), 1)
}

// create makes a log whose records begin with the number first.
func (s *Store) create(name string, created time.Time, first uint64) (*Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &Log{store: s, name: name, created: created.UnixNano(), first: first, last: first - 1, written: first - 1}
	err := s.db.update(common, func() error {
		if found, err := s.load(name); found != nil || err != nil {
			return cmp.Or(err, fmt.Errorf("%w: %q", ErrExists, name))
		}
		return s.db.rowsLocked("insert into logs (name, created, first) values (?, ?, ?) returning id", func(scan scanner) (bool, error) {
			return false, scan(&l.id)
		}, name, l.created, first)
	})
	if err != nil {
		return nil, err
	}
	s.logs[name] = knownLog{open: l}
	return l, nil
}

// Log returns the log of this name, always the same for one name, or
// ErrNotFound.
func (s *Store) Log(name string) (*Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[name].log(); l != nil {
		return l, nil
	}
	var l *Log
	err := s.db.locked(func() (err error) {
		if l, err = s.load(name); l == nil && err == nil {
			err = fmt.Errorf("%w: %q", ErrNotFound, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.logs[name] = knownLog{open: l}
	return l, nil
}

// load reads a log's description, nil if there is none; the database is locked.
func (s *Store) load(name string) (l *Log, err error) {
	err = s.db.rowsLocked("select id, created, sealed, first, ifnull(bytes, -1) from logs where name = ?", func(scan scanner) (bool, error) {
		l = &Log{store: s, name: name}
		var sealed int64
		if err := scan(&l.id, &l.created, &sealed, &l.first, &l.bytes); err != nil {
			return false, err
		}
		l.sealed = sealed != 0
		return false, s.db.checkLog(l.id, l.first)
	}, name)
	if err != nil || l == nil {
		return nil, err
	}
	l.last, l.gaps, err = s.last(l.id, l.first)
	l.written = l.last
	return l, err
}

// checkLog keeps values that only damage can explain out of the arithmetic.
func (d *database) checkLog(id int64, first uint64) error {
	if id < 1 || id > maxLog || first < 1 || first > maxSeq {
		return &CorruptError{Path: d.path, Err: fmt.Errorf("log %d begins at %d", id, first)}
	}
	return nil
}

// last returns the last number that was given in a log, as far as it is known, and
// the log's gaps; the database is locked.
func (s *Store) last(id int64, first uint64) (last uint64, gaps []Gap, err error) {
	last = first - 1
	if gaps, err = s.gaps(id); err != nil {
		return 0, nil, err
	}
	for _, g := range gaps {
		last = max(last, g.Last)
	}
	err = s.db.rowsLocked("select id from records where id between ? and ? order by id desc limit 1", func(scan scanner) (bool, error) {
		var row int64
		err := scan(&row)
		last = max(last, uint64(row&maxSeq))
		return false, err
	}, id<<seqBits, id<<seqBits|maxSeq)
	return last, gaps, err
}

// Watched reports whether a cursor has still to read records of this log.
func (s *Store) Watched(name string) bool {
	s.mu.Lock()
	l := s.logs[name].log()
	s.mu.Unlock()
	return l != nil && l.Read() < l.Last()
}

// Logs describes all logs, the oldest first. It locks the database only for one log at a time.
func (s *Store) Logs() ([]Info, error) {
	var infos []Info
	var ids []int64
	err := s.db.query("select id, name, created, sealed, first, ifnull(bytes, -1), ifnull(last, -1) from logs order by created, id", func(scan scanner) (bool, error) {
		var id, created, sealed, last int64
		var info Info
		if err := scan(&id, &info.Name, &created, &sealed, &info.First, &info.Bytes, &last); err != nil {
			return false, err
		}
		if last >= 0 {
			info.Last, id = uint64(last), 0
		}
		info.Created = time.Unix(0, created)
		if sealed != 0 {
			info.Sealed = time.Unix(0, sealed)
		}
		infos, ids = append(infos, info), append(ids, id)
		return true, s.db.checkLog(max(id, 1), info.First)
	})
	for i := range infos {
		if err == nil && ids[i] > 0 {
			err = s.db.locked(func() (err error) {
				infos[i].Last, _, err = s.last(ids[i], infos[i].First)
				return err
			})
		}
	}
	return infos, err
}

// Remove drops a log: its records, its state, its name. Whatever is done with
// the log afterwards, or is still enqueued, fails with ErrNotFound, and its
// cursors are woken.
func (s *Store) Remove(name string) error {
	l, err := s.Log(name)
	if err != nil {
		return err
	}
	// From here on nothing is added, so that there is an end to the trimming.
	if _, err := l.Bytes(); err != nil {
		return err
	}
	if err := l.reportEnd(time.Time{}, true); err != nil {
		return err
	}
	l.retire()
	if err := l.shed(everything); err != nil {
		return err
	}
	err = s.db.update(reserved, func() error {
		// Once more from end to end: a group may have been on its way.
		err := s.db.execLocked(trimRecords, l.row(0), l.row(maxSeq))
		for _, text := range []string{"delete from state where log = ?", "delete from gaps where log = ?", "delete from logs where id = ?"} {
			if err == nil {
				err = s.db.execLocked(text, l.id)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[name].log() == l { // and not one that was created since
		delete(s.logs, name)
	}
	return nil
}
