// Limits on the connections of a TCP listener. A flood of unauthenticated connections closes the oldest of its own kind and
// nothing else.

package access

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
)

// The limits are ours: far above what clients need, far below what file descriptors and memory allow.
const (
	maxPending    = 64               // unauthenticated connections
	maxPendingAt  = 16               // of those, from one address
	maxAdmitted   = 1024             // authenticated connections
	maxAdmittedAt = 256              // of those, from one address
	maxAdmittedOf = 128              // of those, of one principal
	authTime      = 10 * time.Second // how long a connection may stay unauthenticated
	tokenTick     = 5 * time.Second  // how often the token file is checked
)

// connections counts the connections of a listener. Its methods are safe for concurrent use.
type connections struct {
	mu       sync.Mutex // guards the rest
	pending  []*tcpConn // unauthenticated, the oldest first
	admitted map[*tcpConn]Principal
}

func newConnections() *connections { return &connections{admitted: map[*tcpConn]Principal{}} }

// add counts a new connection. If there are too many unauthenticated ones, it closes one.
func (g *connections) add(v *tcpConn) {
	g.mu.Lock()
	g.pending = append(g.pending, v)
	gone := g.excess(v.from)
	v.timer = time.AfterFunc(authTime, func() { g.expire(v) })
	g.mu.Unlock()
	if gone != nil {
		_ = gone.Close()
	}
}

// excess returns the connection to close, nil if there is none: the oldest from the address of the newest, or, at the limit for all
// addresses, the oldest from the address with the most.
func (g *connections) excess(newest netip.Prefix) *tcpConn {
	count := map[netip.Prefix]int{}
	for _, s := range g.pending {
		count[s.from]++
	}
	from := newest
	if count[newest] <= maxPendingAt {
		if len(g.pending) <= maxPending {
			return nil
		}
		for at, n := range count {
			if n > count[from] {
				from = at
			}
		}
	}
	return g.pending[slices.IndexFunc(g.pending, func(s *tcpConn) bool { return s.from == from })]
}

// expire closes a connection that has not authenticated in time.
func (g *connections) expire(v *tcpConn) {
	g.mu.Lock()
	waiting := slices.Contains(g.pending, v)
	g.mu.Unlock()
	if waiting {
		_ = v.Close()
	}
}

// admit notes that a client has authenticated as a principal, with a token unless its name is
// empty. The error means that there are too many connections.
func (g *connections) admit(v *tcpConn, who Principal, shown token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shown.name != "" && !slices.Contains(v.shown, shown) {
		v.shown = append(v.shown, shown)
	}
	at := slices.Index(g.pending, v)
	if at < 0 {
		return nil // it is admitted already, or closed
	}
	from, of := 0, 0
	for other, principal := range g.admitted {
		if other.from == v.from {
			from++
		}
		if principal == who {
			of++
		}
	}
	if len(g.admitted) >= maxAdmitted || from >= maxAdmittedAt || of >= maxAdmittedOf {
		return apierror.New(codes.ResourceExhausted, "too_many_connections",
			"There are too many connections: at most %d of one principal, %d from one address, %d altogether. Use one connection for many requests.", maxAdmittedOf, maxAdmittedAt, maxAdmitted)
	}
	g.pending = slices.Delete(g.pending, at, at+1)
	v.timer.Stop()
	g.admitted[v] = who
	return nil
}

// evict closes the connections on which a token was sent that is not valid any more.
func (g *connections) evict(valid []token) {
	var gone []*tcpConn
	g.mu.Lock()
	for v := range g.admitted {
		if slices.ContainsFunc(v.shown, func(shown token) bool { return !slices.Contains(valid, shown) }) {
			gone = append(gone, v)
		}
	}
	g.mu.Unlock()
	for _, v := range gone {
		_ = v.Close()
	}
}

// Watch closes the connections of tokens that were removed from the token file, until ctx is done.
func (d *TCPListener) Watch(ctx context.Context) {
	tick := time.NewTicker(tokenTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			known, _ := d.tokens.tokens() // none if the file cannot be used; find returns the error to clients
			d.connections.evict(known)
		case <-ctx.Done():
			return
		}
	}
}

// remove stops counting a connection that has been closed.
func (g *connections) remove(v *tcpConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v.timer.Stop()
	g.pending = slices.DeleteFunc(g.pending, func(s *tcpConn) bool { return s == v })
	delete(g.admitted, v)
}
