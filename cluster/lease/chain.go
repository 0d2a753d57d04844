// The decisions of an owner: what it appends next, and what an answer of the
// log means. Pure: no I/O, no clock, no goroutines.

package lease

import (
	"bytes"
	"crypto/sha256"

	"github.com/toold/toold/cluster/log"
)

// keepBytes is how much a lease keeps of its segments, to put back what a log
// loses. A workspace gets a base long before.
const keepBytes = 64 << 20

// mostOutdated is how often an owner asks again if the log's end is from before
// all that the owner keeps. A leader that has been replaced answers so for a
// while. It may also be a loss that cannot be put back.
const mostOutdated = 8

// chain is an owner's own copy of a workspace's log: what was there when it took
// the workspace over, since the last base, and what it has appended.
//
// An owner appends behind its own chain only. If the log ends anywhere else the
// lease is over, whatever the reason.
type chain struct {
	links []link
	next  int // links[:next] are known to be stored in this order
	floor int // links[floor:] have their data
	base  int // links[base] begins a base that the log may be cut at; 0: none
	bytes int // of the data of links

	before   log.Pos // where the log ends if it has none of links
	putBack  int     // how many links were appended again that had been acknowledged
	outdated int     // how many ends in a row were from before the chain
	fenced   *Fenced
}

type link struct {
	pos    log.Pos // 0: not stored yet
	hash   [sha256.Size]byte
	data   []byte // nil: not kept
	header header
}

func newLink(pos log.Pos, data []byte, h header) link {
	return link{pos: pos, hash: sha256.Sum256(data), data: data, header: h}
}

// add puts segments behind all others, to be stored.
func (c *chain) add(links []link) {
	for _, l := range links {
		c.links = append(c.links, l)
		c.bytes += len(l.data)
	}
	for c.bytes > keepBytes && c.floor < c.next {
		c.drop()
	}
}

// drop forgets the data of the oldest link that has it.
func (c *chain) drop() {
	c.bytes -= len(c.links[c.floor].data)
	c.links[c.floor].data = nil
	c.floor++
}

// request returns what is to be appended now, and false if the log has all of the
// chain or the lease is over.
func (c *chain) request() (prev log.Pos, data []byte, more bool) {
	if c.fenced != nil || c.next == len(c.links) {
		return 0, nil, false
	}
	prev = c.before
	if c.next > 0 {
		prev = c.links[c.next-1].pos
	}
	return prev, c.links[c.next].data, true
}

// stored is the answer that the requested segment is stored.
func (c *chain) stored(pos log.Pos) {
	c.links[c.next].pos = pos
	c.next++
}

// ends is the answer that the log ends with last, and not where the request
// expects it. It reports whether that has changed what is to be requested.
//
// It may be outdated: then the next request is refused as well, and its answer
// is closer to the truth. Only an append decides.
func (c *chain) ends(last log.Segment) bool {
	at, own := c.find(last)
	if !own && last.Pos < c.links[0].pos && c.outdated < mostOutdated {
		c.outdated++
		return false
	}
	c.outdated = 0
	switch {
	case !own && !c.isBefore(last):
		c.fence(last)
		return true
	case at+1 >= c.floor:
		return c.resume(at, last.Pos)
	default: // what is to be put back is not kept
		c.fence(last)
		c.fenced.Diverged = true
		return true
	}
}

// find returns the index of the segment in the chain, -1 for an empty log and for a segment that is not there.
func (c *chain) find(last log.Segment) (at int, own bool) {
	if last.Pos == 0 {
		return -1, true
	}
	hash := sha256.Sum256(last.Data)
	for i := len(c.links) - 1; i >= 0; i-- {
		if c.links[i].hash == hash {
			return i, true
		}
	}
	return -1, false
}

// isBefore reports whether a segment is the one that the chain's base was written behind, so that the log has lost the base.
func (c *chain) isBefore(last log.Segment) bool {
	first, hash := c.links[0], sha256.Sum256(last.Data)
	if !first.header.begins || first.data == nil {
		return false
	}
	base, err := decode(first.data)
	return err == nil && bytes.Equal(base.GetPrevious(), hash[:])
}

// resume continues behind the link at an index, which is the end of the log.
func (c *chain) resume(at int, pos log.Pos) bool {
	end := &c.before
	if at >= 0 {
		end = &c.links[at].pos
	} else if !c.links[0].header.begins {
		c.fenced = &Fenced{Diverged: true} // the log is empty, and its beginning is not kept
		return true
	}
	changed := c.next != at+1 || *end != pos
	*end = pos
	c.putBack += max(0, c.next-(at+1))
	c.next = at + 1
	return changed
}

func (c *chain) fence(last log.Segment) {
	c.fenced = &Fenced{}
	h, err := decode(last.Data)
	if err != nil {
		return
	}
	own := c.links[len(c.links)-1].header
	taken := own.kind == kindOwned && c.next < len(c.links) // only the takeover itself has failed
	c.fenced.Owner, c.fenced.Epoch = h.GetOwner(), h.GetEpoch()
	c.fenced.Diverged = !taken && (h.GetEpoch() <= own.epoch || h.GetFirstPayload() < c.acknowledged())
}

// acknowledged returns how many payloads Append has stored.
func (c *chain) acknowledged() uint64 {
	for i := c.next - 1; i >= 0; i-- {
		if !c.links[i].header.more {
			return c.links[i].header.payloadsAfter
		}
	}
	return 0
}

// mark notes that a base begins with the next link that is added.
func (c *chain) mark() { c.base = len(c.links) }

// cut returns the position of the base, before which the log may be purged.
// The base is stored.
func (c *chain) cut() log.Pos { return c.links[c.base].pos }

// forget drops what is before the base: the log does not have it any more.
func (c *chain) forget() {
	for c.floor < c.base {
		c.drop()
	}
	c.links = append([]link(nil), c.links[c.base:]...)
	c.next, c.floor, c.base = c.next-c.base, c.floor-c.base, 0
}
