// Whether the files of an open store are still where they were opened. SQLite goes on in a file
// that was deleted, and what it writes there is lost with the process.

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A GoneError means that a file of an open store was deleted, moved away or
// replaced. The store goes on in the file that was opened, so that readers are
// served, but the next Open will not find what is written there.
type GoneError struct {
	Path string
	Err  error // why it is not found; nil: another file is at Path
}

func (e *GoneError) Error() string {
	if e.Replaced() {
		return fmt.Sprintf("journal: %s was replaced by another file while it was open", e.Path)
	}
	return fmt.Sprintf("journal: %s is gone while it is open: %v", e.Path, e.Err)
}

func (e *GoneError) Unwrap() error { return e.Err }

// Replaced reports whether another file is at the path.
func (e *GoneError) Replaced() bool { return e.Err == nil }

// Absent reports whether nothing is at the path.
func (e *GoneError) Absent() bool {
	return errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, unix.ENOTDIR)
}

// files are the database and its write-ahead log, as they were opened. An open
// file's number is not given to another.
type files struct {
	dir   string
	paths [2]string
	ids   [2]fileID
	// calm is the state of the directory in which both were found last; nil: not
	// yet. A name cannot come, go or change in it without another state.
	calm atomic.Pointer[dirState]
}

type fileID struct{ dev, ino uint64 }

type dirState struct {
	id      fileID
	changed unix.Timespec
}

// calmAfter is how long a directory must have been unchanged before its state
// stands for its names: file systems count time in steps, of 2 s at most, and
// two changes within one look like one.
const calmAfter = 3 * time.Second

// findFiles notes the files of the database at path, both of which are open.
func findFiles(path string) (*files, error) {
	f := &files{dir: filepath.Dir(path), paths: [2]string{path, path + "-wal"}}
	for i, path := range f.paths {
		state, err := stateOf(path)
		if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		f.ids[i] = state.id
	}
	return f, nil
}

func stateOf(path string) (dirState, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return dirState{}, err
	}
	return dirState{fileID{uint64(stat.Dev), stat.Ino}, stat.Ctim}, nil
}

// Present returns a [GoneError] unless the files of the store are where they
// were opened; nil: they are. As long as nothing is created, renamed or deleted
// beside them this costs one system call.
func (s *Store) Present() *GoneError {
	f := s.files
	state, err := stateOf(f.dir)
	if err != nil {
		return &GoneError{f.dir, err}
	}
	if calm := f.calm.Load(); calm != nil && *calm == state {
		return nil
	}
	for i, path := range f.paths {
		switch now, err := stateOf(path); {
		case err != nil:
			return &GoneError{path, err}
		case now.id != f.ids[i]:
			return &GoneError{Path: path}
		}
	}
	if time.Since(time.Unix(state.changed.Unix())) > calmAfter {
		f.trust(state)
	}
	return nil
}

// trust has state stand for both names from now on.
func (f *files) trust(state dirState) { f.calm.Store(&state) }
