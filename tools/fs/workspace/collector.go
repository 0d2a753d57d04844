// Snapshots that are taken one by one while a call runs, each just before the path is changed.

package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/tools/fs/pathname"
)

// Collecting is how a Collector works. Its functions are called one at a time.
type Collecting struct {
	Snapshotter
	// New is how many paths at most are recorded as absent.
	New int
	// Also returns directories beside the roots and the session's own in which changes are recorded.
	Also func() []string
	// LeaveOut reports whether a path is not recorded. goes: it is removed, moved or replaced; then
	// a gap with a path is recorded instead.
	LeaveOut func(real string, goes bool) (Gap, bool)
	// Taken is called with each snapshot before the change goes on, and Missed with each gap.
	Taken  func(real string, s Snapshot)
	Missed func(Gap)
}

// Limits of one call. The numbers are our own: the gaps are for people to read, and most calls that
// change files spend some milliseconds.
const (
	maxGaps       = 64
	maxCollecting = 10 * time.Second
)

// A Collector records what a call finds at the paths that it changes. It is safe for concurrent use.
type Collector struct {
	view *View
	how  Collecting

	mu      sync.Mutex
	walk    *snapshotWalk
	out     SnapshotSet
	closed  map[string]string // paths at and below which nothing is recorded any more, each with the reason; empty: it was absent
	entries int               // paths that may still be recorded
	absent  int               // of which nothing exists
	spent   time.Duration
	full    string // why nothing more can be stored; empty: it can
	ended   bool
}

// Collect returns a Collector for the call of the view. before is what is recorded already; the
// limits of the Snapshotter hold for both together.
func (v *View) Collect(how Collecting, before SnapshotSet) *Collector {
	c := &Collector{
		view: v, how: how, walk: &snapshotWalk{view: v, snapshotter: how.Snapshotter, left: how.Bytes},
		out: SnapshotSet{Snapshots: map[string]Snapshot{}}, closed: map[string]string{}, entries: how.Entries - len(before.Snapshots), absent: how.New,
	}
	for real, s := range before.Snapshots {
		if s.Kind != Unkept { // it may be kept now that the call is known to change it
			c.out.Snapshots[real] = s
		}
		if s.Kind == Absent {
			c.closed[real] = ""
		}
		if c.walk.left > 0 {
			c.walk.left = max(c.walk.left-s.Size, 1)
		}
	}
	for _, gap := range before.Gaps {
		c.closed[gap.Real] = gap.Why
	}
	return c
}

// End ends the recording and returns what was recorded, including what Collect was given.
func (c *Collector) End() SnapshotSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.walk.close()
	return c.out
}

// Unnamed records that something was changed and that it is not known what.
func (c *Collector) Unnamed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.miss(Gap{Real: c.view.ws.roots[0], Why: "a program hid the name of what it changed"})
	}
}

// Before records what is at a real path that is about to be changed. goes: the entry is removed,
// moved or replaced.
func (c *Collector) Before(real string, goes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.clock()()
	if !c.ended {
		c.record(real, goes)
	}
}

// BeforeMove records what is at both real paths before an entry is moved from one to the other. A
// directory is moved with everything in it: that is recorded as a whole or not at all.
func (c *Collector) BeforeMove(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.clock()()
	if c.ended {
		return
	}
	if info, err := os.Lstat(from); err == nil && info.IsDir() {
		c.walk.close() // it may be what is moved
		below, ok := c.tree(from)
		if !ok {
			return
		}
		c.makes(below, to)
	}
	c.record(from, true)
	c.record(to, true)
}

// BeforeSwap does what BeforeMove does for two entries that take each other's place.
func (c *Collector) BeforeSwap(a, b string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.clock()()
	c.walk.close()
	if c.ended {
		return
	}
	belowA, ok := c.tree(a)
	if !ok {
		return
	}
	if belowB, ok := c.tree(b); ok {
		c.makes(belowA, b)
		c.makes(belowB, a)
		c.record(a, true)
		c.record(b, true)
	}
}

// clock returns a function that adds the time since to what the recording has taken.
func (c *Collector) clock() func() {
	since := time.Now()
	return func() {
		if c.spent += time.Since(since); c.spent > maxCollecting && c.full == "" {
			c.full = fmt.Sprintf("recording what the call changes took more than %v", maxCollecting)
		}
	}
}

// record takes the snapshot of a path, unless it is known or not to be recorded.
func (c *Collector) record(real string, goes bool) {
	if _, known := c.out.Snapshots[real]; known || !c.isOurs(real) {
		return
	}
	if _, closed := c.isClosed(real); closed {
		return
	}
	if gap, out := c.how.LeaveOut(real, goes); out {
		if gap.Real != "" {
			c.miss(gap)
		}
		return
	}
	c.take(real)
}

// isClosed reports whether nothing is recorded of a path any more, because of it or a directory
// above it. why is the reason; empty: nothing was there.
func (c *Collector) isClosed(real string) (why string, closed bool) {
	for {
		if why, closed := c.closed[real]; closed {
			return why, true
		}
		if real == "/" {
			return "", false
		}
		real = filepath.Dir(real)
	}
}

// isOurs reports whether changes of a path are recorded at all.
func (c *Collector) isOurs(real string) bool {
	place := c.view.ws.Place(real)
	return place == InRoot || place == Scratch || place != Hidden && pathname.WithinAny(c.how.Also(), real)
}

// take takes the snapshot of a path, within the limits.
func (c *Collector) take(real string) {
	if c.full != "" {
		c.close(filepath.Dir(real), c.full)
		return
	}
	s, err := c.walk.snapshot(real)
	switch {
	case err != nil:
		c.full = fmt.Sprintf("it could not be stored: %v", Cause(err))
		c.close(filepath.Dir(real), c.full)
		return
	case s.Kind == Absent:
		if c.absent--; c.absent < 0 {
			c.close(filepath.Dir(real), fmt.Sprintf("the call made more than %d files and directories", c.how.New))
			return
		}
		c.closed[real] = "" // whatever it will hold is the call's
	default:
		if c.entries--; c.entries < 0 {
			c.close(filepath.Dir(real), fmt.Sprintf("more than %d files and directories would have to be kept", c.how.Entries))
			return
		}
	}
	c.add(real, s)
}

func (c *Collector) add(real string, s Snapshot) {
	c.out.Snapshots[real] = s
	c.how.Taken(real, s)
}

// close ends the recording of what lies in a directory.
func (c *Collector) close(dir, why string) {
	if len(c.out.Gaps) >= maxGaps {
		dir = pathname.Deepest(c.view.ws.anchors, dir)
	}
	c.closed[dir] = why
	c.miss(Gap{Real: dir, Why: why})
}

// miss records a gap once.
func (c *Collector) miss(gap Gap) {
	if len(c.out.Gaps) <= maxGaps && !slices.Contains(c.out.Gaps, gap) {
		c.out.Gaps = append(c.out.Gaps, gap)
		c.how.Missed(gap)
	}
}

// tree records everything below a directory that is about to be moved. It returns the paths there,
// relative to the directory and with a slash in front. ok is false if nothing is recorded: there is
// too much, or the directory lies elsewhere. Where nothing was before the call, there is nothing to
// record: ok is true, without paths.
func (c *Collector) tree(from string) (below []string, ok bool) {
	if why, closed := c.isClosed(from); closed {
		return nil, why == ""
	}
	if _, known := c.out.Snapshots[from]; !known && !c.isOurs(from) {
		c.miss(Gap{Real: from, Why: "it lies outside the workspace"})
		return nil, false
	}
	e := takingSnapshots{walk: c.walk, out: SnapshotSet{Snapshots: map[string]Snapshot{}}, entries: c.entries, bytes: c.walk.left}
	e.tree(context.Background(), from, takeAll)
	for _, gap := range e.out.Gaps {
		c.close(gap.Real, gap.Why)
		return nil, false
	}
	for _, real := range e.paths {
		if _, known := c.out.Snapshots[real]; !known {
			c.take(real)
		}
		below = append(below, real[len(from):])
	}
	return below, true
}

// makes records that what is not known at names below a directory does not exist there yet.
func (c *Collector) makes(below []string, to string) {
	if !c.isOurs(to) {
		return
	}
	for _, name := range below {
		if _, known := c.out.Snapshots[to+name]; !known {
			c.add(to+name, Snapshot{Kind: Absent})
		}
	}
}
