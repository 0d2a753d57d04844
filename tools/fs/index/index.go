// Package index remembers what searches have found: which entries a directory has, and which
// trigrams the text of a file has. Everything is kept for the identity of a file, device and inode,
// with the stamp that it had: size, and times of change in nanoseconds. Nothing is watched. Who
// asks has a stamp that was taken at that moment, and gets what is remembered only if it is the
// same. So a late event, a rename, another branch or a mount changes nothing about what is true.
//
// It does not know paths, ignore files, rules or patterns, nor who may read what: a search asks it
// about a file that the search has already found and may read.
package index

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Set is the indexes of a daemon, one for each principal. They share one limit of memory. Safe for
// concurrent use.
type Set struct {
	// Settle is how much older than the moment of reading the last change of a file must be for
	// anything to be remembered of it. NewSet sets it; it can be changed before the first use.
	Settle time.Duration
	limit  int64
	bytes  atomic.Int64

	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	builders sync.WaitGroup

	mu     sync.Mutex
	closed bool
	of     map[string]*Index
}

// NewSet returns a set that holds at most limit bytes; 0: it remembers nothing. The caller closes
// it.
func NewSet(limit int64) *Set {
	s := &Set{Settle: settle, limit: limit, of: map[string]*Index{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Of returns the index of a principal. It is nil, and so remembers nothing, if the limit is 0.
func (s *Set) Of(principal string) *Index {
	if s.limit == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[principal]
	if x == nil {
		x = &Index{set: s, held: map[identity]*record{}}
		s.of[principal] = x
	}
	return x
}

// Forget drops what no search has met for idle, and returns how many bytes were dropped.
func (s *Set) Forget(idle time.Duration) (dropped int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bytes.Load()
	for _, x := range s.of {
		x.forget(time.Now().Add(-idle).UnixNano())
	}
	return before - s.bytes.Load()
}

// Close drops everything, stops what is being read, and waits for that. It returns nil.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.builders.Wait()
	s.Forget(0)
	return nil
}

// Wait blocks until no files are being read.
func (s *Set) Wait() { s.builders.Wait() }

// Held is what a set or an index holds.
type Held struct {
	Files       int   // whose trigrams are known
	Directories int   // whose entries are known
	Text        int64 // bytes of text that the files have
	Bytes       int64 // of memory
	Building    bool  // files are being read
}

// Held returns what the indexes of all principals hold together.
func (s *Set) Held() (all Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.of {
		h := x.Held()
		all.Files += h.Files
		all.Directories += h.Directories
		all.Text += h.Text
		all.Building = all.Building || h.Building
	}
	all.Bytes = s.bytes.Load()
	return all
}

// Limit returns how many bytes the set holds at most.
func (s *Set) Limit() int64 { return s.limit }

// full reports whether nothing more is taken.
func (s *Set) full() bool { return s.bytes.Load() >= s.limit }

// An Index is what is remembered for one principal. The methods of a nil Index do nothing. Safe for
// concurrent use.
type Index struct {
	set      *Set
	building atomic.Bool
	rested   atomic.Int64 // when a build ended that could remember nothing; nanoseconds

	mu   sync.RWMutex
	held map[identity]*record
}

// A record is what is remembered of one file or directory.
type record struct {
	stamp   Stamp
	text    *Text    // of a file
	listing *Listing // of a directory
	bytes   int64
	used    atomic.Int64 // when a search last met it
}

// overhead is about what a record takes beside its content, in bytes.
const overhead = 192

// find returns the record that was made under the same stamp; nil: there is none.
func (x *Index) find(s Stamp) *record {
	if x == nil {
		return nil
	}
	x.mu.RLock()
	r := x.held[s.identity]
	x.mu.RUnlock()
	if r == nil || r.stamp != s {
		return nil
	}
	if now := time.Now().UnixNano(); now-r.used.Load() > int64(time.Second) {
		r.used.Store(now)
	}
	return r
}

// keep adds a record, unless the set is full, and reports whether it did. It replaces what was known
// of the same file.
func (x *Index) keep(r *record) bool {
	r.bytes += overhead
	r.used.Store(time.Now().UnixNano())
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(r.stamp.identity)
	if x.set.bytes.Load()+r.bytes > x.set.limit {
		return false
	}
	x.set.bytes.Add(r.bytes)
	x.held[r.stamp.identity] = r
	return true
}

// drop removes a record; mu is held.
func (x *Index) drop(id identity) {
	if r := x.held[id]; r != nil {
		x.set.bytes.Add(-r.bytes)
		delete(x.held, id)
	}
}

// forget drops the records that no search has met since a time in nanoseconds.
func (x *Index) forget(since int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, r := range x.held {
		if r.used.Load() <= since {
			x.drop(id)
		}
	}
	if len(x.held) == 0 {
		x.held = map[identity]*record{} // a map keeps its size
	}
}

// Held returns what the index holds.
func (x *Index) Held() (h Held) {
	if x == nil {
		return h
	}
	h.Building = x.building.Load()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.held {
		h.Bytes += r.bytes
		if r.text != nil {
			h.Files++
			h.Text += r.stamp.size
		} else {
			h.Directories++
		}
	}
	return h
}
