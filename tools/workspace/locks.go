// Locks keep two changes of one file apart. They know keys, and nothing of what is done under them.

package workspace

import (
	"context"
	"sync"
)

// Locks holds one lock for each file that somebody is changing, for all sessions of a daemon. It knows keys, not
// files. The zero value is not ready: NewLocks makes one.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

// A lock is taken by filling its one slot. users counts who holds it or waits for it, so that the last one removes it.
type lock struct {
	slot  chan struct{}
	users int
}

// NewLocks gives an empty set.
func NewLocks() *Locks { return &Locks{held: map[string]*lock{}} }

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
		return func() { <-k.slot; l.leave(key, k) }, nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, context.Cause(ctx)
	}
}

func (l *Locks) leave(key string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.held, key)
	}
}
