// Pages that were fetched a short while ago, and fetches under way, by who may know of them. It does not know how a page is
// fetched.

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

// What is kept. keptFor is the tool's contract; the sizes are ours: some hundred pages of documentation.
const (
	keptFor   = 15 * time.Minute
	keptBytes = 64 << 20
	keptEach  = keptBytes / 8
)

// A cache keeps pages for a while, in bounded memory, and has those who want the same page at once fetch it once. It is
// safe for concurrent use.
type cache struct {
	now func() time.Time

	mu      sync.Mutex
	pages   map[string]*page
	order   []string // of pages, the oldest first
	bytes   int      // of all pages
	flights map[string]*flight
}

// A flight is a fetch under way. The rest is set before done is closed.
type flight struct {
	done chan struct{}
	page *page
	err  error
	// lost: who fetched was stopped, which says nothing of the page. The next one fetches.
	lost bool
}

func newCache() *cache {
	return &cache{now: time.Now, pages: map[string]*page{}, flights: map[string]*flight{}}
}

// placeOf is what a page is kept under: its URL, for one principal, under one set of settings about hosts. How old a page is
// would else tell one principal what another has fetched, and a page could come out under settings that would not have let
// it in.
func placeOf(env *tools.Env, at *url.URL) string {
	return fmt.Sprintf("%q %x %s", env.Principal, sha256.Sum256(fmt.Appendf(nil, "%q", env.Reach)), at)
}

// get returns the page, from the store if cached, else by fetch. What fetch gives is not to be changed afterwards.
func (s *cache) get(ctx context.Context, place string, fetch func() (*page, error)) (p *page, cached bool, err error) {
	for {
		p, f, mine := s.look(place)
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
		if !f.lost && f.err == nil { // an error may be the other call's alone
			return f.page, false, nil
		}
	}
}

// look finds a page that is fresh, or a flight, and says whether the caller is to fly it.
func (s *cache) look(place string) (p *page, f *flight, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if p := s.pages[place]; p != nil {
		return p, nil, false
	}
	if f := s.flights[place]; f != nil {
		return nil, f, false
	}
	f = &flight{done: make(chan struct{}), lost: true}
	s.flights[place] = f
	return nil, f, true
}

// fly fetches. The others are let go even when fetch panics.
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

// put keeps a page if it may be. mu is held.
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

// drop lets the oldest go. mu is held.
func (s *cache) drop() {
	s.bytes -= s.pages[s.order[0]].size()
	delete(s.pages, s.order[0])
	s.order = s.order[1:]
}
