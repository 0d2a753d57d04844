package daemon

// The gate of a TCP listener: how many connections there are, of strangers and of those who have shown who they are. A
// flood of strangers costs others nothing but the oldest strangers. It does not know how anybody shows who he is.

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// The bounds are ours: far above what clients need, far below what file descriptors and memory allow.
const (
	maxStrangers   = 64               // connections on which nobody has shown yet who he is
	maxStrangersAt = 16               // of those, from one address
	maxGuests      = 1024             // connections of those who have
	maxGuestsAt    = 256              // of those, from one address
	maxGuestsOf    = 128              // of those, of one principal
	strangerTime   = 10 * time.Second // so long has a stranger
	tokenTick      = 5 * time.Second  // so often a token file is looked at that nobody asks for
)

// A gate counts. Its methods are safe for concurrent use.
type gate struct {
	mu        sync.Mutex // guards the rest
	strangers []*visitor // the oldest first
	guests    map[*visitor]principal
	of        map[principal]int
	at        map[netip.Prefix]int
}

func newGate() *gate {
	return &gate{guests: map[*visitor]principal{}, of: map[principal]int{}, at: map[netip.Prefix]int{}}
}

// enter takes a new connection in. Where there are too many of its kind, the oldest has to go.
func (g *gate) enter(v *visitor) {
	g.mu.Lock()
	g.strangers = append(g.strangers, v)
	gone := g.surplus(v.from)
	v.patience = time.AfterFunc(strangerTime, func() { g.expire(v) })
	g.mu.Unlock()
	if gone != nil {
		_ = gone.Close()
	}
}

// surplus gives the stranger that has to go: the oldest from where the newest came, or, where strangers are too many
// altogether, from where most come.
func (g *gate) surplus(newest netip.Prefix) *visitor {
	count := map[netip.Prefix]int{}
	for _, s := range g.strangers {
		count[s.from]++
	}
	from := newest
	if count[newest] <= maxStrangersAt {
		if len(g.strangers) <= maxStrangers {
			return nil
		}
		for at, n := range count {
			if n > count[from] {
				from = at
			}
		}
	}
	return g.strangers[slices.IndexFunc(g.strangers, func(s *visitor) bool { return s.from == from })]
}

// expire ends a connection whose time is up.
func (g *gate) expire(v *visitor) {
	g.mu.Lock()
	stranger := slices.Contains(g.strangers, v)
	g.mu.Unlock()
	if stranger {
		_ = v.Close()
	}
}

// welcome makes a stranger a guest. shown is his token, if he came with one.
func (g *gate) welcome(v *visitor, who principal, shown token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shown.name != "" {
		v.shown[shown] = struct{}{}
	}
	at := slices.Index(g.strangers, v)
	if at < 0 {
		return nil // he is one, or has left
	}
	if len(g.guests) >= maxGuests || g.at[v.from] >= maxGuestsAt || g.of[who] >= maxGuestsOf {
		return refuse(codes.ResourceExhausted, "too_many_connections",
			"There are too many connections: at most %d of one principal, %d from one address, %d altogether. Use one connection for many requests.", maxGuestsOf, maxGuestsAt, maxGuests)
	}
	g.strangers = slices.Delete(g.strangers, at, at+1)
	v.patience.Stop()
	g.guests[v] = who
	g.of[who]++
	g.at[v.from]++
	return nil
}

// expel ends the connections on which a token was shown that does not count any more.
func (g *gate) expel(valid []token) {
	counts := map[token]bool{}
	for _, t := range valid {
		counts[t] = true
	}
	var gone []*visitor
	g.mu.Lock()
	for v := range g.guests {
		for shown := range v.shown {
			if !counts[shown] {
				gone = append(gone, v)
				break
			}
		}
	}
	g.mu.Unlock()
	for _, v := range gone {
		_ = v.Close()
	}
}

// keep sees to it that tokens which were taken out of the file count no more, until ctx ends.
func (d *door) keep(ctx context.Context) {
	tick := time.NewTicker(tokenTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			known, _ := d.tokens.tokens() // none of a file that cannot be used; who sends one is told
			d.gate.expel(known)
		case <-ctx.Done():
			return
		}
	}
}

// leave forgets a connection that has ended.
func (g *gate) leave(v *visitor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v.patience.Stop()
	g.strangers = slices.DeleteFunc(g.strangers, func(s *visitor) bool { return s == v })
	who, guest := g.guests[v]
	if !guest {
		return
	}
	delete(g.guests, v)
	if g.of[who]--; g.of[who] == 0 {
		delete(g.of, who)
	}
	if g.at[v.from]--; g.at[v.from] == 0 {
		delete(g.at, v.from)
	}
}
