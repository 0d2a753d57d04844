// Rates: how many calls that concern the same a principal may begin in a time.

package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/pool"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// rateWait is how long a call waits for its place; part of the contract.
const rateWait = 5 * time.Second

// rateLimiters are the bounds in use.
type rateLimiters struct {
	mu   sync.Mutex
	kept map[rateKey]*rate.Limiter
}

// rateKey is whose calls of what are bounded, and how: with another bound the count begins again.
type rateKey struct {
	who     access.Principal
	subject string
	events  int
	per     time.Duration
}

// limiter returns the bound: as many at once as there may be in the span, and from then on evenly
// spread.
func (p *rateLimiters) limiter(key rateKey) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.kept[key]
	if found == nil {
		p.tidy()
		found = rate.NewLimiter(rate.Limit(float64(key.events)/key.per.Seconds()), key.events)
		p.kept[key] = found
	}
	return found
}

// tidy forgets bounds that are as if they were new.
func (p *rateLimiters) tidy() {
	for key, limiter := range p.kept {
		if limiter.Tokens() >= float64(key.events) {
			delete(p.kept, key)
		}
	}
}

// rateLimited is what programs are told of a call that came too soon.
type rateLimited struct {
	Subject    string  `json:"subject"`
	RetryAfter float64 `json:"retry_after_seconds"`
}

// Pace waits until the call may begin. The error is a fault rate_limited when that would take too
// long, else the cause of ctx.
func (i *intake) Pace(ctx context.Context, c *pipeline.Call) error {
	var held []*rate.Reservation
	wait, last := time.Duration(0), settings.Rate{}
	for _, r := range i.s.judge.latest().settings.Rates {
		if !concerns(r.Subject, c) {
			continue
		}
		place := i.s.daemon.rates.limiter(rateKey{i.s.meta.owner(), r.Subject, r.Events, r.Per}).Reserve()
		held = append(held, place)
		if delay := place.Delay(); delay > wait {
			wait, last = delay, r
		}
	}
	if wait == 0 {
		return nil
	}
	back := func() {
		for _, place := range held {
			place.Cancel()
		}
	}
	if wait > rateWait {
		back()
		return fault.Failedf("rate_limited", "The call was not started: %s may be called %d times in %s (limits.rate in %s). Send it again under a new id in %.0f s.",
			last.Subject, last.Events, last.Per, last.Origin, wait.Seconds()+0.5).With(rateLimited{last.Subject, wait.Seconds()})
	}
	if err := sleep(ctx, wait); err != nil {
		back()
		return fmt.Errorf("waiting for its place: %w", err)
	}
	return nil
}

// concerns reports whether a bound is about the call: its tool, its MCP server, or a host that it
// contacts.
func concerns(subject string, c *pipeline.Call) bool {
	return pool.Names(subject, c.Name) || slices.Contains(c.Hosts(), subject)
}
