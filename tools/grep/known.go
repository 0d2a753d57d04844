// What earlier searches know of a file: whether this one can leave it unread.

package grep

import (
	"context"
	"slices"
	"sync"

	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/grep/selection"
)

// known is the part of a search that concerns the index.
type known struct {
	queries []index.Query // every match has one of the texts of each; empty: unknown

	mu      sync.Mutex
	unknown index.Unknown
}

// ask sets what a file must have.
func (k *known) ask(e *expression) {
	for _, texts := range e.parts {
		if q := index.NewQuery(texts); q != nil {
			k.queries = append(k.queries, q)
		}
	}
}

// excludes reports whether the text certainly has no match.
func (k *known) excludes(text *index.Text) bool { return slices.ContainsFunc(k.queries, text.Lacks) }

// visitFile has the engine search a file, unless nothing has changed it since its trigrams were taken
// and they say that there is no match. It is looked up by what the kernel says of it now.
func (s *search) visitFile(ctx context.Context, e engine, f *walk.File) {
	text := s.textOf(f)
	if text != nil && (text.Binary || s.known.excludes(text)) && e.pass(f.Name(), text.Binary) {
		return
	}
	e.visit(ctx, f, text)
}

// textOf returns what is known of the text of a file; nil: nothing that would be of use.
func (s *search) textOf(f *walk.File) *index.Text {
	if s.env.Index == nil || len(s.known.queries) == 0 && selection.Textual(f.Name()) {
		return nil
	}
	now, err := f.Stamp()
	if err != nil {
		return nil
	}
	text := s.env.Index.Text(now)
	if text == nil {
		s.known.mu.Lock()
		defer s.known.mu.Unlock()
		s.known.unknown.Add(f.Path(), now)
	}
	return text
}
