// Removing contents: those that no row names, and the oldest when there are too many.

package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// sweepInterval is how often contents that no row names are looked for.
const sweepInterval = time.Hour

// Due reports that a sweep would have something to do: there is more than the limit, or the latest sweep was long ago.
func (s *Store) Due(limit int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.swept) > sweepInterval || s.grown && s.bytes > limit || s.rows > rowsBetween
}

// rowsBetween is how many bytes of rows may be recorded between two sweeps.
const rowsBetween = 8 << 20

// Recorded notes that a row of so many bytes was recorded.
func (s *Store) Recorded(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows += int64(bytes)
}

// A kept content, or a pack, and when the newest row that names it was made.
type content struct {
	hash string // or the path of the pack
	size int64
	used time.Time
}

// Sweep removes contents that no row names or that are older than oldest, and then the oldest until
// at most limit bytes are left. rows returns the time of the newest row for each hash; it is called
// after the sweep has begun. unnamed is when contents that no row names were last used, after rows
// were lost; the zero time: no rows were lost, so they are not needed. Contents that are stored after
// the sweep has begun stay, and so do those of a Hold. Sweep returns how many bytes it has removed.
func (s *Store) Sweep(rows func() (map[string]time.Time, error), limit int64, oldest, unnamed time.Time) (removed int64, err error) {
	s.begin()
	defer s.end()
	used, err := rows()
	if err != nil {
		return 0, err
	}
	err = s.recorded(oldest, func(hash string, at time.Time) {
		if at.After(used[hash]) {
			used[hash] = at
		}
	})
	if err != nil {
		return 0, err
	}
	found, err := s.list(used, unnamed)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(found, func(a, b content) int { return a.used.Compare(b.used) })
	var total int64
	for _, c := range found {
		total += c.size
	}
	var failed error
	for _, c := range found {
		if !c.used.Before(oldest) && total-removed <= limit {
			break
		}
		gone, err := s.remove(c.hash)
		failed = errors.Join(failed, err)
		if gone {
			removed += c.size
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = total - removed
	return removed, failed
}

func (s *Store) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept, s.grown, s.rows, s.touched = time.Now(), false, 0, map[string]bool{}
	for hash := range s.held { // its row may be recorded behind the sweep's look at rows, and then let go
		s.touched[hash] = true
	}
}

func (s *Store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = nil
}

// list returns all contents, with when they were last used; for those that no row names that is unnamed.
func (s *Store) list(used map[string]time.Time, unnamed time.Time) (found []content, err error) {
	packs := s.packUses(used)
	err = filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isPack(entry.Name()) && !hashForm.MatchString(entry.Name()) {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if isPack(entry.Name()) {
			at, named := packs[path]
			if !named {
				at = unnamed
			}
			found = append(found, content{path, info.Size(), at})
			return nil
		}
		at, named := used[entry.Name()]
		if !named {
			at = unnamed
		}
		found = append(found, content{entry.Name(), info.Size(), at})
		return nil
	})
	return found, err
}

// remove removes a content, or a pack, unless it was requested meanwhile.
func (s *Store) remove(hash string) (gone bool, err error) {
	if isPack(filepath.Base(hash)) {
		return s.removePack(hash)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[hash] > 0 || s.touched[hash] {
		return false, nil
	}
	delete(s.synced, s.path(hash))
	delete(s.whole, hash)
	if err := os.Remove(s.path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}
