// Errors: what a caller can act upon, and SQLite's codes translated into it.

package journal

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
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
	if err == nil {
		return nil
	}
	code := sqlite.ErrCode(err)
	switch code {
	case sqlite.ResultIOErrShortRead, ioErrCorruptFS, ioErrData,
		sqlite.ResultReadOnly: // the file could be opened for writing, so it is its header that forbids it
		return &CorruptError{Path: path, Err: err}
	}
	switch code.ToPrimary() {
	case sqlite.ResultFull:
		return ErrFull
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return ErrInUse
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultReadOnly, sqlite.ResultNoMem:
		return fmt.Errorf("journal: %s: %w", path, err)
	default:
		return &CorruptError{Path: path, Err: err}
	}
}

// Codes of SQLite that its package does not name: a checksum is wrong; the file
// system has damage.
const (
	ioErrData      = sqlite.ResultIOErr | 32<<8
	ioErrCorruptFS = sqlite.ResultIOErr | 33<<8
)
