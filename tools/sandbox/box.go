package sandbox

// What a call starts its processes with.

import (
	"slices"
	"sync"
)

// A Box starts the processes of one call, each under the call's policy, and gathers what they were denied. The fields are
// set before the first use. The methods may be used from any goroutine.
type Box struct {
	Runner *Runner
	Policy Policy
	Filter Filter   // of the environment of its processes
	Set    []string // NAME=value: what each of them has whatever else it is given
	// After is called when a process has ended with all that it had started, before Done is closed; what it returns counts as
	// denied to that process. It may be called by several goroutines. nil: nothing is.
	After func() []Denial

	of *Box // that this one stands for; nil: none

	mu      sync.Mutex
	used    bool
	denials []Denial
	created []string
}

// Start starts c under the policy, as Runner.Start does.
func (b *Box) Start(c Command) (*Process, error) {
	c.Policy, c.ended, c.after = b.Policy, b.note, b.After
	p, err := b.Runner.Start(c)
	for box := b; box != nil && err == nil; box = box.of {
		box.use()
	}
	return p, err
}

func (b *Box) use() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = true
}

// Under returns a box for processes of the same call that need another policy. They count as started by b; what they were denied
// does not.
func (b *Box) Under(p Policy) *Box { return &Box{Runner: b.Runner, Policy: p, Filter: b.Filter, of: b} }

// Used reports that something was started, by b or by a box that stands for it.
func (b *Box) Used() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Environ is what a process is to be given of base, which is a list of NAME=value, with set in the place of what base says of
// the same names.
func (b *Box) Environ(base []string, set ...string) []string {
	return b.Filter.Environ(base, slices.Concat(b.Set, set)...)
}

func (b *Box) note(exit Exit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denials, b.created = append(b.denials, exit.Denials...), append(b.created, exit.Created...)
}

// Created returns Exit.Created of the processes that have ended.
func (b *Box) Created() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.created)
}

// Denials is what processes that have ended were denied.
func (b *Box) Denials() []Denial {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.denials)
}
