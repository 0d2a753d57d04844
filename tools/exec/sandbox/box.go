// A Box is what a call starts its processes with.

package sandbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A Box starts the processes of one call, each under the call's policy, and gathers what they were
// denied. Its fields are set before the first use; after that it is safe for concurrent use. Deriving
// a policy looks at many places, so it can be put off until a process starts: see Fill.
type Box struct {
	Runner *Runner
	Policy Policy
	Filter Filter   // of the environment of its processes
	Set    []string // NAME=value: variables that each process gets, whatever its Command has
	// After is called when a process and everything that it had started have ended, before Done is
	// closed. Its result is added to the denials of the process. It may be called concurrently.
	// nil: no call.
	After func() []Denial
	// Ask is each process's Command.Ask.
	Ask func(context.Context, Host) Answer
	// Secret asks a user for the hidden line that a program of the call waits for, until the context
	// ends; ok is false if there is none. nil: it is not asked for.
	Secret func(context.Context, Prompt) (secret []byte, ok bool)

	// Before is called before a process changes a file where it may write, in Full, and the process
	// waits until it returns. What the processes of others change is not reported. It may be called
	// concurrently, also after After where processes go on. nil: no call.
	Before func(Alteration)

	// Began is called with each process that was started, before Start returns it. It may be called
	// concurrently. nil: no call.
	Began func(*Process)

	// Fill sets what of the fields above is not set yet. Ready calls it once; until then Policy
	// permits no more than it may. nil: all are set.
	Fill  func(*Box)
	ready sync.Once

	of *Box // the box that this one was made from by Under; nil: none

	used atomic.Bool

	mu      sync.Mutex
	denials []Denial
	created []string
	peak    int64
}

// Ready returns b with all its fields set. Code that reads Policy calls it first.
func (b *Box) Ready() *Box {
	if b.Fill != nil {
		b.ready.Do(func() { b.Fill(b) })
	}
	return b
}

// Start starts c under the policy, as Runner.Start does.
func (b *Box) Start(c Command) (*Process, error) {
	b.Ready()
	c.Policy, c.Ask, c.ended, c.after, c.before = b.Policy, b.Ask, b.note, b.After, b.Before
	p, err := b.Runner.Start(c)
	for box := b; box != nil && err == nil; box = box.of {
		box.used.Store(true)
	}
	if err == nil && b.Began != nil {
		b.Began(p)
	}
	return p, err
}

// Prepare starts a shell beforehand for the next call that starts one like c, see [Runner.Prepare].
func (b *Box) Prepare(c Command) {
	c.Policy = b.Ready().Policy
	b.Runner.Prepare(c)
}

// Under returns a box for processes of the same call that need another policy. What it starts
// counts for b.Used; its denials are not b's.
func (b *Box) Under(p Policy) *Box {
	b.Ready()
	return &Box{Runner: b.Runner, Policy: p, Filter: b.Filter, Ask: b.Ask, Before: b.Before, of: b}
}

// Used reports whether b, or a box that was made from it, has started a process.
func (b *Box) Used() bool { return b.used.Load() }

// Environ returns the environment of a process that is started with base, a list of NAME=value. set
// replaces the variables of the same names.
func (b *Box) Environ(base []string, set ...string) []string {
	return b.Filter.Environ(base, slices.Concat(b.Ready().Set, set)...)
}

func (b *Box) note(exit Exit) {
	b.mu.Lock()
	b.denials, b.created = append(b.denials, exit.Denials...), append(b.created, exit.Created...)
	b.mu.Unlock()
	for box := b; box != nil; box = box.of {
		box.mu.Lock()
		box.peak = max(box.peak, exit.MaxRSS)
		box.mu.Unlock()
	}
}

// PeakMemory returns the peak memory of the largest process that has ended, also of boxes that were
// made from b, in bytes; 0: it is not known.
func (b *Box) PeakMemory() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// AddBefore calls f, unless it is nil, after what Before calls already.
func (b *Box) AddBefore(f func(Alteration)) {
	switch first := b.Before; {
	case first == nil:
		b.Before = f
	case f != nil:
		b.Before = func(a Alteration) { first(a); f(a) }
	}
}

// Report adds denials of others than the processes of the box.
func (b *Box) Report(denials []Denial) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denials = append(b.denials, denials...)
}

// Created returns Exit.Created of the processes that have ended.
func (b *Box) Created() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.created)
}

// Denials returns what the processes that have ended were denied.
func (b *Box) Denials() []Denial {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.denials)
}
