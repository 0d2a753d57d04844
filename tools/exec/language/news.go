//go:build !no_lsp

// What a server sends on its own, within limits: diagnostics of files, and what it is busy with.

package language

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A publication is a server's last diagnostics of one file.
type publication struct {
	version *int32 // of the document; nil: the server sends no version
	serial  uint64 // increases with each publication of the server
	list    []wireDiagnostic
	dropped int
}

// news is what one server has sent. It is safe for concurrent use.
type news struct {
	mu      sync.Mutex
	changed chan struct{}          // closed, and replaced, when something below changes
	files   map[string]publication // by path
	serial  uint64                 // of the last publication
	kept    int                    // diagnostics in files
	loads   map[string]string      // titles of the progress reports that have begun and not ended, by token
}

func newNews() news {
	return news{changed: make(chan struct{}), files: map[string]publication{}, loads: map[string]string{}}
}

// wake wakes those who wait for a change. mu is held.
func (n *news) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// bound shortens what is too long in a diagnostic.
func (d *wireDiagnostic) bound() {
	d.Message, d.Source = printable(d.Message, 2000), printable(d.Source, 100)
}

func (n *news) publish(w wirePublication) {
	path := pathOf(w.URI)
	if path == "" {
		return
	}
	for i := range w.Diagnostics {
		w.Diagnostics[i].bound()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.files[path]; !known && len(n.files) >= maxPublished {
		return
	}
	n.serial++
	n.kept -= len(n.files[path].list)
	kept := slices.Clone(w.Diagnostics[:min(len(w.Diagnostics), maxFileDiags, maxDiagnostics-n.kept)])
	n.kept += len(kept)
	n.files[path] = publication{version: w.Version, serial: n.serial, list: kept, dropped: len(w.Diagnostics) - len(kept)}
	n.wake()
}

func (n *news) progress(p wireProgress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case p.Value.Kind == "begin" && len(n.loads) < maxProgress:
		n.loads[string(p.Token)] = printable(strings.TrimSpace(p.Value.Title), 100)
	case p.Value.Kind == "end":
		delete(n.loads, string(p.Token))
		n.wake()
	}
}

// of returns the publication for one file, and the number of the last publication for any.
func (n *news) of(path string) (publication, uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.files[path], n.serial
}

// all returns the publications for all files.
func (n *news) all() map[string]publication {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.files)
}

// busy returns one thing in progress; empty: none.
func (n *news) busy() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.loads) == 0 {
		return ""
	}
	return cmp.Or(slices.Min(slices.Collect(maps.Values(n.loads))), "working")
}

// until waits until done, which is called with the news locked, returns true. It reports false if
// the server or ctx has ended before.
func (s *server) until(ctx context.Context, done func() bool) bool {
	for {
		s.news.mu.Lock()
		is, changed := done(), s.news.changed
		s.news.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-changed:
		case <-s.gone:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// loaded waits until nothing is in progress, at most for the limit.
func (s *server) loaded(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.load)
	defer cancel()
	s.until(ctx, func() bool { return len(s.news.loads) == 0 })
}

// publishes waits for a publication about that version of the document. It reports false if the
// server or ctx has ended before.
func (s *server) publishes(ctx context.Context, path string, doc *document) bool {
	return s.until(ctx, func() bool {
		p := s.news.files[path]
		if p.version == nil {
			return p.serial > doc.shownAt
		}
		return *p.version >= doc.version
	})
}

// settle waits until nothing was published for the time of quiet, longer if publications of the
// file have no version, or until the server or ctx has ended.
func (s *server) settle(ctx context.Context, path string, quiet time.Duration) {
	if p, _ := s.news.of(path); p.version == nil {
		quiet = blindQuiet
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	timer := time.AfterFunc(quiet, end)
	defer timer.Stop()
	s.until(ctx, func() bool {
		timer.Reset(quiet)
		return false
	})
}
