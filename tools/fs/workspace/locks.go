// Locks serialise changes of one file. Notes of temporary files let the next daemon clean up after
// one that was killed.

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Locks holds one lock for each file that is being changed, for all sessions of a daemon, and a
// note of each temporary file that is being written. It is safe for concurrent use. The zero value
// is not usable: call OpenLocks or NewLocks.
type Locks struct {
	cases caseMemory // of all sessions too
	notes string     // directory; empty: no notes are written
	mu    sync.Mutex
	held  map[string]*lock
}

// A lock is acquired by filling its one slot. users counts its holder and those who wait, so that
// the last one removes it.
type lock struct {
	slot  chan struct{}
	users int
}

// NewLocks returns an empty set that writes no notes.
func NewLocks() *Locks { return &Locks{held: map[string]*lock{}} }

// OpenLocks returns an empty set that notes temporary files in dir. It creates dir if needed; no
// other daemon may use it. It first removes temporary files that a killed daemon has left. A note
// survives the death of the process, but not a power failure.
func OpenLocks(dir string) (*Locks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	notes, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := NewLocks()
	l.notes = dir
	for _, note := range notes {
		name := note.Name()
		isTemp := strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
		if temp, err := os.Readlink(filepath.Join(dir, name)); err == nil && isTemp && filepath.Base(temp) == name {
			_ = os.Remove(temp) // most are gone already; the note is removed last
		}
		_ = os.Remove(filepath.Join(dir, name))
	}
	return l, nil
}

// note records that a temporary file is about to exist at path, until forget is called. Without a
// note (on a full disk) a file may be left behind, so a failure is ignored.
func (l *Locks) note(path string) (forget func()) {
	name := filepath.Join(l.notes, filepath.Base(path))
	if l.notes == "" || os.Symlink(path, name) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(name) }
}

const tempPrefix, tempSuffix = ".toold-", ".tmp"

// acquire waits for key until ctx ends, whose cause it then returns. Otherwise the caller must call
// release, once.
func (l *Locks) acquire(ctx context.Context, key string) (release func(), err error) {
	l.mu.Lock()
	k := l.held[key]
	if k == nil {
		k = &lock{slot: make(chan struct{}, 1)}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot; l.release(key, k) }, nil
	case <-ctx.Done():
		l.release(key, k)
		return nil, context.Cause(ctx)
	}
}

func (l *Locks) release(key string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.held, key)
	}
}
