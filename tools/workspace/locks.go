// Locks keep two changes of one file apart, and notes of what is being written let the next daemon tidy up behind one
// that was killed. They know keys and names, and nothing of what is done under them.

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Locks holds one lock for each file that somebody is changing, for all sessions of a daemon, and a note of each
// temporary file that is being written. The zero value is not ready: OpenLocks and NewLocks make one.
type Locks struct {
	notes string // directory; empty: nothing is noted
	mu    sync.Mutex
	held  map[string]*lock
}

// A lock is taken by filling its one slot. users counts who holds it or waits for it, so that the last one removes it.
type lock struct {
	slot  chan struct{}
	users int
}

// NewLocks returns an empty set that notes nothing.
func NewLocks() *Locks { return &Locks{held: map[string]*lock{}} }

// OpenLocks returns an empty set that notes temporary files in dir, which it makes if need be and which no other daemon may
// use. Those that a dead daemon has left are removed first. A note survives the death of the process, not a power cut.
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
		if temp, err := os.Readlink(filepath.Join(dir, note.Name())); err == nil && isTemp(note.Name()) && filepath.Base(temp) == note.Name() {
			_ = os.Remove(temp) // most are gone: the note goes last
		}
		_ = os.Remove(filepath.Join(dir, note.Name()))
	}
	return l, nil
}

// note says that a temporary file is about to be at path, until forget. A note that cannot be made (a full disk) costs
// at worst a file that is left behind, so it stops nobody.
func (l *Locks) note(path string) (forget func()) {
	if l.notes == "" {
		return func() {}
	}
	name := filepath.Join(l.notes, filepath.Base(path))
	if os.Symlink(path, name) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(name) }
}

const tempPrefix, tempSuffix = ".toold-", ".tmp"

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// acquire waits for key until ctx ends, whose cause it then returns. Otherwise the caller must call release, once.
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
