// A cache of recent pages and of fetches in progress, by who may see them.

package webfetch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/toold/toold/tools"
)

// Limits of the cache. keptFor is part of the tool's contract; the sizes are our own: some hundred
// pages of documentation.
const (
	keptFor   = 15 * time.Minute
	keptBytes = 64 << 20
	keptEach  = keptBytes / 8
)

// A cache keeps pages for a while, in bounded memory, and makes concurrent requests for the same
// page share one fetch. It is safe for concurrent use.
type cache struct {
	now func() time.Time

	mu      sync.Mutex
	pages   map[string]*page
	order   []string // of pages, the oldest first
	bytes   int      // of all pages
	flights map[string]*flight
}

// A flight is a fetch in progress. The other fields are set before done is closed.
type flight struct {
	done chan struct{}
	page *page
	err  error
	// lost is set if the fetching call was stopped, which has no meaning for the page. The next
	// call fetches.
	lost bool
}

func newCache() *cache {
	return &cache{now: time.Now, pages: map[string]*page{}, flights: map[string]*flight{}}
}

// placeOf returns the key of a page: its URL, the principal, and the settings about hosts.
// Otherwise the age of a page would show one principal what another has fetched, and a page could
// be returned under settings that deny its host.
func placeOf(env *tools.Env, at *url.URL) string {
	return fmt.Sprintf("%q %x %s", env.Principal, sha256.Sum256(fmt.Appendf(nil, "%q", env.Reach)), at)
}

// get returns the page, from the cache or else from fetch. The result of fetch must not be modified
// afterwards.
func (s *cache) get(ctx context.Context, place string, fetch func() (*page, error)) (p *page, cached bool, err error) {
	for {
		s.mu.Lock()
		s.expire()
		p, f := s.pages[place], s.flights[place]
		mine := p == nil && f == nil
		if mine {
			f = &flight{done: make(chan struct{}), lost: true}
			s.flights[place] = f
		}
		s.mu.Unlock()
		switch {
		case p != nil:
			return p, true, nil
		case mine:
			p, err := s.fly(ctx, place, f, fetch)
			return p, false, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if !f.lost && f.err == nil { // an error may concern only the other call
			return f.page, false, nil
		}
	}
}

// fly fetches. The waiting calls continue even if fetch panics.
func (s *cache) fly(ctx context.Context, place string, f *flight, fetch func() (*page, error)) (*page, error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.flights, place)
		if f.err == nil && f.page != nil {
			s.put(place, f.page)
		}
		close(f.done)
	}()
	f.page, f.err = fetch()
	f.lost = ctx.Err() != nil
	return f.page, f.err
}

// put stores a page if it may be. mu is held.
func (s *cache) put(place string, p *page) {
	if !p.keep || p.size() > keptEach {
		return
	}
	p.fetched = s.now()
	s.pages[place] = p
	s.order = append(s.order, place)
	s.bytes += p.size()
	for s.bytes > keptBytes {
		s.drop()
	}
}

// expire drops what is too old. mu is held.
func (s *cache) expire() {
	for len(s.order) > 0 && s.now().Sub(s.pages[s.order[0]].fetched) >= keptFor {
		s.drop()
	}
}

// drop drops the oldest. mu is held.
func (s *cache) drop() {
	s.bytes -= s.pages[s.order[0]].size()
	delete(s.pages, s.order[0])
	s.order = s.order[1:]
}
