// Package quota counts what clients have the daemon hold in memory: bytes, by kind, of each
// session, of all sessions of a principal, and of the whole daemon. It refuses what would exceed
// one of the three limits. It does not know what the bytes are, nor who holds them.
package quota

import (
	"fmt"
	"sync"
)

// A Kind is something that clients have the daemon hold.
type Kind uint8

// The kinds. Each has limits of its own, so that none takes another's share.
const (
	Buffers Kind = iota // texts in editors
	Options             // options and environments of sessions
	Tools               // definitions of tools that clients run
	kinds
)

// String returns what error messages call the kind.
func (k Kind) String() string {
	return [...]string{"editor buffers", "session options and environments", "client tool definitions"}[k]
}

// A Scope is who shares a limit.
type Scope uint8

// The scopes, from the narrowest to the widest.
const (
	Session Scope = iota
	Principal
	Daemon
	scopes
)

// String returns the name of the scope, for programs.
func (s Scope) String() string { return [...]string{"session", "principal", "daemon"}[s] }

// Limits are the most bytes of one kind, by scope.
type Limits [scopes]int64

// Exceeded is the error of a reservation that would pass a limit. Nothing was reserved.
type Exceeded struct {
	Kind   Kind
	Scope  Scope // the narrowest whose limit would be passed
	Limit  int64 // bytes
	Held   int64 // bytes that the scope holds already
	Wanted int64 // bytes that were to be added
}

// Error returns what was exceeded, for logs; the daemon has its own words for clients.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("%s of the %s: %d bytes and %d more pass the limit of %d", e.Kind, e.Scope, e.Held, e.Wanted, e.Limit)
}

// A Ledger holds the accounts of all sessions. It is safe for concurrent use, and locks itself for
// a few additions only, so callers may have locked their own state.
type Ledger struct {
	limits   [kinds]Limits
	released func(bytes int64)

	mu         sync.Mutex // guards the rest, and the accounts
	daemon     counts
	principals map[string]*principal
}

type counts [kinds]int64

type principal struct {
	counts
	accounts int // that are open
}

// New returns an empty ledger. A kind without limits holds nothing. released is called, with no
// lock of the ledger held, when bytes have been released.
func New(limits map[Kind]Limits, released func(bytes int64)) *Ledger {
	l := &Ledger{released: released, principals: map[string]*principal{}}
	for kind, of := range limits {
		l.limits[kind] = of
	}
	return l
}

// An Account is what one session holds. Its methods are safe for concurrent use.
type Account struct {
	ledger *Ledger
	name   string
	of     *principal
	held   counts
	closed bool
}

// Open returns an account of a session of the principal's, which holds nothing yet. The caller
// closes it.
func (l *Ledger) Open(name string) *Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.principals[name]
	if of == nil {
		of = &principal{}
		l.principals[name] = of
	}
	of.accounts++
	return &Account{ledger: l, name: name, of: of}
}

// Fits returns what Hold would return now, and reserves nothing.
func (a *Account) Fits(kind Kind, bytes int64) *Exceeded {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.fitsLocked(kind, bytes)
}

// Hold sets how many bytes of the kind the session holds, and returns nil. Holding less never
// fails. Otherwise it returns which limit would be exceeded, and changes nothing.
func (a *Account) Hold(kind Kind, bytes int64) (over *Exceeded) {
	a.ledger.change(func() (less int64) {
		if over = a.fitsLocked(kind, bytes); over == nil {
			less = a.setLocked(kind, bytes)
		}
		return less
	})
	return over
}

// Restore does what Hold does, past any limit: for what was taken before the daemon was restarted.
func (a *Account) Restore(kind Kind, bytes int64) {
	a.ledger.change(func() int64 { return a.setLocked(kind, bytes) })
}

// Close releases everything that the session holds. It holds nothing from then on; closing it again
// has no effect.
func (a *Account) Close() {
	a.ledger.change(func() (less int64) {
		if a.closed {
			return 0
		}
		for kind := range kinds {
			less += a.setLocked(kind, 0)
		}
		a.closed = true
		if a.of.accounts--; a.of.accounts == 0 {
			delete(a.ledger.principals, a.name)
		}
		return less
	})
}

// fitsLocked returns the limit that bytes would pass; nil: none. The caller has locked the ledger.
func (a *Account) fitsLocked(kind Kind, bytes int64) *Exceeded {
	more := bytes - a.held[kind]
	if more <= 0 {
		return nil
	}
	for scope, held := range [scopes]int64{a.held[kind], a.of.counts[kind], a.ledger.daemon[kind]} {
		if limit := a.ledger.limits[kind][scope]; held+more > limit {
			return &Exceeded{Kind: kind, Scope: Scope(scope), Limit: limit, Held: held, Wanted: more}
		}
	}
	return nil
}

// setLocked makes bytes what the session holds, and returns by how many that is less. The caller
// has locked the ledger.
func (a *Account) setLocked(kind Kind, bytes int64) (less int64) {
	if a.closed {
		return 0
	}
	less = a.held[kind] - bytes
	a.held[kind] -= less
	a.of.counts[kind] -= less
	a.ledger.daemon[kind] -= less
	return max(0, less)
}

// change runs f while the ledger is locked, and then reports the bytes that f has released.
func (l *Ledger) change(f func() (less int64)) {
	l.mu.Lock()
	less := f()
	l.mu.Unlock()
	if less > 0 {
		l.released(less)
	}
}
