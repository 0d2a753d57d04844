package node

import (
	"sync/atomic"
	"time"
)

// Counts are what a node has done since it was opened.
type Counts struct {
	Taken, NotTaken, GivenUp, Lost uint64 // workspaces
	Snapshots, SnapshotsFailed     uint64
	Appends                        uint64        // requests of journals that the log has acknowledged
	Appending                      time.Duration // how long all of them took together
}

// counters are Counts under way.
type counters struct {
	taken, notTaken, givenUp, lost, snapshots, snapshotsFailed, appends atomic.Uint64
	appending                                                           atomic.Int64
	results                                                             outcomes
}

// Counts returns what the node has done so far.
func (n *Node) Counts() Counts {
	c := &n.counters
	return Counts{
		Taken: c.taken.Load(), NotTaken: c.notTaken.Load(), GivenUp: c.givenUp.Load(), Lost: c.lost.Load(),
		Snapshots: c.snapshots.Load(), SnapshotsFailed: c.snapshotsFailed.Load(),
		Appends: c.appends.Load(), Appending: time.Duration(c.appending.Load()),
	}
}

// saved counts a try to store files.
func (c *counters) saved(err error) {
	if err != nil {
		c.snapshotsFailed.Add(1)
		return
	}
	c.snapshots.Add(1)
}
