// Limits over many outputs: of one session, of all sessions of one principal, and of all sessions.

package spool

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds are in bytes of disk space, indexes included.
type Bounds struct {
	Session   int64 // of the outputs of one session together
	Principal int64 // of those of all sessions of one principal
	All       int64 // of the outputs of all sessions together
}

// A Store holds the outputs of all sessions of a daemon, each in a folder below its own. It keeps
// them within bounds by removing the oldest that have ended. If nothing is left to remove, a
// growing output accepts no more. All methods are safe for concurrent use.
type Store struct {
	path   string
	bounds Bounds
	owner  func(session string) string

	mu      sync.Mutex // guards the rest
	used    int64      // by all
	usedBy  map[string]int64
	owners  map[string]string // whose the sessions with a folder are
	folders map[string]*folder
}

// A folder is one session's.
type folder struct {
	store   *Store
	path    string
	owner   string
	used    int64           // guarded by the store's mu
	growing map[string]bool // outputs that have not ended, by their base; guarded by the store's mu
}

// OpenStore opens the folder, creates it if needed, and measures its content. owner returns whose a session is of
// which the store has only a folder.
func OpenStore(path string, bounds Bounds, owner func(session string) string) (*Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, classify(err)
	}
	s := &Store{path: filepath.Clean(path), bounds: bounds, owner: owner, owners: map[string]string{}, folders: map[string]*folder{}}
	s.Measure()
	return s, nil
}

// Dir returns the folder of an owner's session and creates it if needed. An output in it takes at most 1
// GiB.
func (s *Store) Dir(session, owner string) (*Dir, error) {
	path := filepath.Join(s.path, session)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, classify(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[session]
	if f == nil {
		f = &folder{store: s, path: path, owner: owner, used: total(found(path)), growing: map[string]bool{}}
		s.folders[session], s.owners[session] = f, owner
	}
	return &Dir{f, defaultLimit}, nil
}

// Remove drops a session's folder with everything in it.
func (s *Store) Remove(session string) error {
	path := filepath.Join(s.path, session)
	bytes := total(found(path))
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(s.owners[session], -bytes)
	delete(s.folders, session)
	delete(s.owners, session)
	return nil
}

// Release forgets a session without growing outputs. Its files stay on the disk, and count.
func (s *Store) Release(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.folders[session]; f != nil && len(f.growing) == 0 {
		delete(s.folders, session)
	}
}

// Measure measures the disk usage again, for what other programs have added or removed. Outputs
// that grow meanwhile may be counted with their earlier size; the next Measure corrects that.
func (s *Store) Measure() {
	sizes := map[string]int64{}
	for _, f := range s.everything() {
		sizes[f.session()] += f.size
	}
	owners := s.ownersOf(sizes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.usedBy = 0, map[string]int64{}
	for session, bytes := range sizes {
		s.owners[session] = owners[session]
		s.addLocked(owners[session], bytes)
	}
	for session, f := range s.folders {
		f.used = sizes[session]
	}
}

// ownersOf returns whose the sessions are. It asks for those that the store does not know yet.
func (s *Store) ownersOf(sessions map[string]int64) map[string]string {
	s.mu.Lock()
	owners := maps.Clone(s.owners)
	s.mu.Unlock()
	for session := range sessions {
		if _, known := owners[session]; !known {
			owners[session] = s.owner(session)
		}
	}
	return owners
}

// addLocked counts bytes of an owner's. The caller has locked the store.
func (s *Store) addLocked(owner string, bytes int64) {
	s.used += bytes
	s.usedBy[owner] += bytes
}

// take reserves as many of n bytes as there is room for, and returns their number; it removes older
// outputs if needed. If the number is less than n, the error is the limit that was reached.
func (f *folder) take(n int64) (int64, error) {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if f.used+n > s.bounds.Session {
		s.evict(found(f.path), f.used+n, s.bounds.Session)
	}
	if room := s.bounds.Session - f.used; n > room {
		n, err = max(room, 0), &LimitError{Bytes: s.bounds.Session, Of: OfSession}
	}
	if s.usedBy[f.owner]+n > s.bounds.Principal {
		others := slices.DeleteFunc(s.everything(), func(of file) bool { return s.owners[of.session()] != f.owner })
		s.evict(others, s.usedBy[f.owner]+n, s.bounds.Principal)
	}
	if room := s.bounds.Principal - s.usedBy[f.owner]; n > room {
		n, err = max(room, 0), &LimitError{Bytes: s.bounds.Principal, Of: OfPrincipal}
	}
	if s.used+n > s.bounds.All {
		s.evict(s.everything(), s.used+n, s.bounds.All)
	}
	if room := s.bounds.All - s.used; n > room {
		n, err = max(room, 0), &LimitError{Bytes: s.bounds.All, Of: OfAll}
	}
	f.used += n
	s.addLocked(f.owner, n)
	return n, err
}

// free returns bytes that take has reserved and that were not written.
func (f *folder) free(n int64) {
	if n == 0 {
		return
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.used -= n
	f.store.addLocked(f.owner, -n)
}

// grows records whether the output of that base may get more.
func (f *folder) grows(base string, more bool) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if more {
		f.growing[base] = true
	} else {
		delete(f.growing, base)
	}
}

// evict removes the oldest ended outputs until used is within bound, and a sixteenth below it, so
// that a growing output calls it seldom. mu is held.
func (s *Store) evict(files []file, used, bound int64) {
	need := used - bound + bound/16
	slices.SortFunc(files, func(a, b file) int { return a.changed.Compare(b.changed) })
	gone := map[string]bool{}
	for _, f := range files {
		base := strings.TrimSuffix(f.path, filepath.Ext(f.path))
		owner := s.folders[f.session()]
		switch {
		case owner != nil && owner.growing[base]:
			continue
		case need <= 0 && !gone[base]: // but the index goes with its output
			continue
		case os.Remove(f.path) != nil:
			continue
		}
		gone[base] = true
		need -= f.size
		s.addLocked(s.owners[f.session()], -f.size)
		if owner != nil {
			owner.used -= f.size
		}
	}
}

// A file is one of the files of an output.
type file struct {
	path    string
	size    int64
	changed time.Time
}

func (f file) session() string { return filepath.Base(filepath.Dir(f.path)) }

// everything returns the files of all folders that can be read.
func (s *Store) everything() (files []file) {
	sessions, _ := os.ReadDir(s.path)
	for _, entry := range sessions {
		files = append(files, found(filepath.Join(s.path, entry.Name()))...)
	}
	return files
}

// found returns the files of a folder, except for those that vanish meanwhile.
func found(path string) (files []file) {
	entries, _ := os.ReadDir(path)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, file{filepath.Join(path, entry.Name()), info.Size(), info.ModTime()})
		}
	}
	return files
}

func total(files []file) (bytes int64) {
	for _, f := range files {
		bytes += f.size
	}
	return bytes
}

// A Scope is whose outputs share a limit.
type Scope string

// The scopes, by the names that programs know them by.
const (
	OfSession   Scope = "session"
	OfPrincipal Scope = "principal"
	OfAll       Scope = "daemon"
)

// String returns the outputs of the scope, as in "the session's outputs".
func (s Scope) String() string {
	switch s {
	case OfSession:
		return "the session's outputs"
	case OfPrincipal:
		return "the outputs of all your sessions"
	}
	return "the outputs of all sessions"
}

// A LimitError is a limit that several outputs share and that was reached. It is an [ErrLimit].
type LimitError struct {
	Bytes int64
	Of    Scope
}

func (e *LimitError) Error() string { return "the limit of " + e.Of.String() + " is reached" }

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
