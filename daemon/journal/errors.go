// Errors: what a caller can act upon, and SQLite's codes translated into it.

package journal

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrExists means that there is a log of this name already.
	ErrExists = errors.New("journal: this log exists already")
	// ErrNotFound means that no log has this name, or that it has been removed.
	ErrNotFound = errors.New("journal: no such log")
	// ErrSealed means that the log takes no more records.
	ErrSealed = errors.New("journal: the log is sealed and takes no more records")
	// ErrClosed means that the store has been closed.
	ErrClosed = errors.New("journal: the store is closed")
	// ErrFull means that the disk has no room. Nothing that was acknowledged is
	// lost; appending works again as soon as there is room.
	ErrFull = errors.New("journal: the disk is full; free some space and try again")
	// ErrTooLarge means that a body or a state value is larger than MaxBody.
	ErrTooLarge = fmt.Errorf("journal: an entry's body or state value is larger than %d MiB", MaxBody>>20)
	// ErrInUse means that another process has the database open.
	ErrInUse = errors.New("journal: another process has the database open")
)

// A CorruptError means that the database file is damaged, or is not a journal.
// What was read before it is good. After it came from [Open], the file can be
// put out of the way with [SetAside].
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: %s is damaged or not a journal (%v); move it away to start a new one", e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// A VersionError means that a newer toold has written the database.
type VersionError struct {
	Path         string
	Found, Known int // versions of the schema
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("journal: %s has schema version %d and this program knows up to %d; run the newer toold, or give it another state directory",
		e.Path, e.Found, e.Known)
}

// classify turns an error of the driver into one of the package's. A statement
// that SQLite once accepted can fail for want of room, access or memory;
// whatever else it complains of is in the file.
func classify(path string, err error) error {
	se, is := errors.AsType[*sqlite.Error](err)
	if !is {
		return err
	}
	switch se.Code() {
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA,
		sqlite3.SQLITE_READONLY: // the file could be opened for writing, so it is its header that forbids it
		return &CorruptError{Path: path, Err: err}
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ErrInUse
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("journal: %s: %w", path, err)
	default:
		return &CorruptError{Path: path, Err: err}
	}
}
