// Package quota bounds what a principal uses of a cluster at once: sessions that are attached, and calls that may run. What each
// node holds of it stands in the bucket toold_quota, an account for each principal, which nodes change by compare-and-set.
//
// What a node holds is leased: it renews that, and what was not renewed for two minutes is free again, so that a lost node
// holds nothing for ever. The clocks of nodes differ by less than a minute. It does not know what a session or a call is.
package quota

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/members"
)

const bucketName = "toold_quota"

// What a node holds is renewed at intervals, and free when it was not renewed for longer than lost.
const (
	renewEvery = 20 * time.Second
	lost       = 2 * time.Minute
)

// Amounts are numbers of what is counted. As limits 0 is none.
type Amounts struct {
	Sessions int `json:"sessions,omitempty"` // that a stream is attached to
	Calls    int `json:"calls,omitempty"`    // that may run at once
}

// Limits are those of one principal. Nil: that of the nodes; 0 is none.
type Limits struct {
	Sessions *int `json:"sessions,omitempty"`
	Calls    *int `json:"calls,omitempty"`
}

// over returns the amounts of the nodes with those of the principal in their place.
func (l Limits) over(nodes Amounts) Amounts {
	if l.Sessions != nil {
		nodes.Sessions = *l.Sessions
	}
	if l.Calls != nil {
		nodes.Calls = *l.Calls
	}
	return nodes
}

// An account is what the bucket has of a principal.
type account struct {
	Principal string           `json:"principal"`
	Limits    Limits           `json:"limits,omitzero"` // of this principal
	Nodes     map[string]share `json:"nodes,omitempty"`
}

// A share is what a node holds.
type share struct {
	Amounts
	Renewed time.Time `json:"renewed"`
}

// An Exceeded is the error of what a principal is refused since it has reached a limit.
type Exceeded struct {
	What  string // "sessions" or "calls"
	Limit int
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("your limit of %d %s in the whole cluster is reached", e.Limit, e.What)
}

// Accounts are those of all principals, as one node uses them. Its methods are safe for concurrent use.
type Accounts struct {
	// Alive reports whether another node lives, as far as this one knows: what one holds that does not is free at once. Nil: all
	// do. It is set before the accounts are used.
	Alive func(node string) bool

	bucket jetstream.KeyValue
	node   string
	limits Amounts
	now    func() time.Time
	end    context.CancelFunc
	loop   sync.WaitGroup
	dirty  chan struct{} // holds one element if something was released

	mu         sync.Mutex // guards principals
	principals map[string]*principal
}

// A principal is what this node holds for one.
type principal struct {
	turn     chan struct{}  // has one slot, which is filled while the rest is used, and while the bucket is changed
	sessions map[string]int // how many hold each session
	unnamed  int            // sessions without a name yet
	calls    int
	dirty    bool // the bucket has something else

	failures atomic.Uint64 // how often the bucket could not be changed
	failure  error         // why, the last time
}

func (p *principal) lock()   { p.turn <- struct{}{} }
func (p *principal) unlock() { <-p.turn }

// lockToAsk is lock for what changes the bucket. Who has waited for another's request that has failed shares its failure, which may have
// taken seconds.
func (p *principal) lockToAsk(ctx context.Context) error {
	before := p.failures.Load()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.failures.Load() == before {
		return nil
	}
	defer p.unlock()
	return p.failure
}

func (p *principal) amounts() Amounts { return Amounts{len(p.sessions) + p.unnamed, p.calls} }

// Open returns the accounts for a node, with the limits of principals that have none of their own. The caller closes it.
func Open(ctx context.Context, js jetstream.JetStream, replicas int, node string, limits Amounts) (*Accounts, error) {
	bucket, err := members.Bucket(ctx, js, bucketName, replicas, 0)
	if err != nil {
		return nil, err
	}
	a := &Accounts{bucket: bucket, node: node, limits: limits, now: time.Now, dirty: make(chan struct{}, 1), principals: map[string]*principal{}}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	a.end = end
	a.loop.Go(func() { a.renewAtTimes(running) })
	return a, nil
}

// Close ends the renewals, after it has released what this node still holds, if that is possible at once.
func (a *Accounts) Close() {
	a.end()
	a.loop.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for name := range a.all() {
		_ = a.change(ctx, name, func(account *account) error { delete(account.Nodes, a.node); return nil })
	}
}

func (a *Accounts) of(name string) *principal {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.principals[name]
	if p == nil {
		p = &principal{turn: make(chan struct{}, 1), sessions: map[string]int{}}
		a.principals[name] = p
	}
	return p
}

func (a *Accounts) all() map[string]*principal {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]*principal{}
	for name, p := range a.principals {
		all[name] = p
	}
	return all
}

// take adds to what the principal holds, if the limits allow that. The caller has the turn. grow gets what is free of each, and returns
// what is added.
func (a *Accounts) take(ctx context.Context, name string, p *principal, grow func(free Amounts) (Amounts, error)) (taken Amounts, err error) {
	err = a.change(ctx, name, func(account *account) error {
		limits := account.Limits.over(a.limits)
		held := p.amounts()
		free := Amounts{limits.Sessions - held.Sessions, limits.Calls - held.Calls}
		for node, other := range account.Nodes {
			if node != a.node && (a.Alive == nil || a.Alive(node)) {
				free.Sessions, free.Calls = free.Sessions-other.Sessions, free.Calls-other.Calls
			}
		}
		if limits.Sessions == 0 {
			free.Sessions = unlimited
		}
		if limits.Calls == 0 {
			free.Calls = unlimited
		}
		if taken, err = grow(free); err != nil {
			if exceeded, is := errors.AsType[*Exceeded](err); is {
				exceeded.Limit = map[string]int{"sessions": limits.Sessions, "calls": limits.Calls}[exceeded.What]
			}
			return err
		}
		account.Nodes[a.node] = share{Amounts{held.Sessions + taken.Sessions, held.Calls + taken.Calls}, a.now()}
		return nil
	})
	if _, refused := errors.AsType[*Exceeded](err); err != nil && !refused {
		p.dirty = true // it may have been stored all the same
		if ctx.Err() == nil {
			p.failure = err
			p.failures.Add(1)
		} // else it is that of one caller
	}
	return taken, err
}

const unlimited = 1 << 30

// SetLimits sets the limits of a principal which are not nil, and leaves the others as they are. They count for what is asked for
// from then on.
func SetLimits(ctx context.Context, js jetstream.JetStream, replicas int, who string, limits Limits) error {
	for _, n := range []*int{limits.Sessions, limits.Calls} {
		if n != nil && *n < 0 {
			return fmt.Errorf("a limit of %d is not possible: it is 1 or more, or 0 for no limit", *n)
		}
	}
	return edit(ctx, js, replicas, who, func(own *Limits) {
		if limits.Sessions != nil {
			own.Sessions = limits.Sessions
		}
		if limits.Calls != nil {
			own.Calls = limits.Calls
		}
	})
}

// ResetLimits has the limits of nodes count for a principal again.
func ResetLimits(ctx context.Context, js jetstream.JetStream, replicas int, who string) error {
	return edit(ctx, js, replicas, who, func(own *Limits) { *own = Limits{} })
}

func edit(ctx context.Context, js jetstream.JetStream, replicas int, who string, change func(*Limits)) error {
	bucket, err := members.Bucket(ctx, js, bucketName, replicas, 0)
	if err != nil {
		return err
	}
	a := &Accounts{bucket: bucket, now: time.Now}
	return a.change(ctx, who, func(account *account) error { change(&account.Limits); return nil })
}

// Use returns what a principal holds in the whole cluster, and its own limits.
func Use(ctx context.Context, js jetstream.JetStream, replicas int, who string) (held Amounts, limits Limits, err error) {
	bucket, err := members.Bucket(ctx, js, bucketName, replicas, 0)
	if err != nil {
		return held, limits, err
	}
	found, _, err := read(ctx, bucket, who)
	for _, share := range found.Nodes {
		if time.Since(share.Renewed) <= lost {
			held.Sessions, held.Calls = held.Sessions+share.Sessions, held.Calls+share.Calls
		}
	}
	return held, found.Limits, err
}

// change makes a change to an account, again if another node was faster. What was not renewed is dropped before.
func (a *Accounts) change(ctx context.Context, name string, edit func(*account) error) error {
	for {
		found, revision, err := read(ctx, a.bucket, name)
		if err != nil {
			return err
		}
		for node, share := range found.Nodes {
			if a.now().Sub(share.Renewed) > lost {
				delete(found.Nodes, node)
			}
		}
		if err := edit(&found); err != nil {
			return err
		}
		if err := write(ctx, a.bucket, found, revision); !members.Conflict(err) {
			return err
		}
	}
}

func read(ctx context.Context, bucket jetstream.KeyValue, name string) (found account, revision uint64, err error) {
	entry, err := bucket.Get(ctx, keyOf(name))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = nil
	case err == nil:
		revision = entry.Revision()
		err = json.Unmarshal(entry.Value(), &found)
	}
	if found.Nodes == nil {
		found.Nodes = map[string]share{}
	}
	found.Principal = name
	return found, revision, err
}

// write stores an account, and removes one that holds nothing and has no limits of its own.
func write(ctx context.Context, bucket jetstream.KeyValue, changed account, revision uint64) error {
	if changed.Limits == (Limits{}) && len(changed.Nodes) == 0 {
		if revision == 0 {
			return nil
		}
		return bucket.Delete(ctx, keyOf(changed.Principal), jetstream.LastRevision(revision))
	}
	text, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	if revision == 0 {
		_, err = bucket.Create(ctx, keyOf(changed.Principal), text)
	} else {
		_, err = bucket.Update(ctx, keyOf(changed.Principal), text, revision)
	}
	return err
}

// keyOf returns the first 160 bits of the SHA-256 of a name, in base32: names may hold any characters.
func keyOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
}

// renewAtTimes renews what this node holds, and writes what was released, until ctx ends.
func (a *Accounts) renewAtTimes(ctx context.Context) {
	ticks := time.NewTicker(renewEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			a.renew(ctx, true)
		case <-a.dirty:
			a.renew(ctx, false)
		case <-ctx.Done():
			return
		}
	}
}

// renew writes what this node holds: of all principals, or only where the bucket has something else. What cannot be
// written is with the next renewal.
func (a *Accounts) renew(ctx context.Context, all bool) {
	for name, p := range a.all() {
		a.renewOne(ctx, name, p, all)
	}
}

func (a *Accounts) renewOne(ctx context.Context, name string, p *principal, all bool) {
	p.lock()
	defer p.unlock()
	held := p.amounts()
	if !p.dirty && (!all || held == (Amounts{})) {
		return
	}
	err := a.change(ctx, name, func(account *account) error {
		account.Nodes[a.node] = share{held, a.now()}
		if held == (Amounts{}) {
			delete(account.Nodes, a.node)
		}
		return nil
	})
	p.dirty = err != nil
}

// Flush writes what was released of a principal, so that other nodes may take it. What cannot be written is with the next renewal.
func (a *Accounts) Flush(ctx context.Context, who string) {
	a.renewOne(ctx, who, a.of(who), false)
}

// released notes that something was. The caller has the turn.
func (a *Accounts) released(p *principal) {
	p.dirty = true
	select {
	case a.dirty <- struct{}{}:
	default: // it will be looked at
	}
}
