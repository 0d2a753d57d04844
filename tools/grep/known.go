// What earlier searches know of a file: whether this one can leave it unread.

package grep

import (
	"sync"

	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/walk"
)

// known is the part of a search that concerns the index.
type known struct {
	query index.Query // texts of which every match has one; nil: unknown

	mu      sync.Mutex
	unknown index.Unknown
}

// passes reports whether the file need not be visited, and counts it then: nothing has changed it
// since its trigrams were taken, and they say that there is no match. Each file is looked up by what
// the kernel says of it now.
func (s *search) passes(e engine, f *walk.File) bool {
	if s.env.Index == nil {
		return false
	}
	now, err := f.Stamp()
	if err != nil {
		return false
	}
	text := s.env.Index.Text(now)
	if text == nil {
		s.known.mu.Lock()
		defer s.known.mu.Unlock()
		s.known.unknown.Add(f.Path, now)
		return false
	}
	return (text.Binary || text.Lacks(s.known.query)) && e.pass(f.Path, text.Binary)
}
