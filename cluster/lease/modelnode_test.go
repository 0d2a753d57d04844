package lease

import (
	"encoding/binary"
	"fmt"
	"slices"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

// record is what a journal has of a call.
type record struct {
	seq, kind, call int
	value           uint32 // so that no two are equal by accident
}

const (
	acceptedRecord = iota
	startedRecord
	resultRecord
)

func (r record) payload() *clusterv1.Payload {
	data := binary.BigEndian.AppendUint32(nil, uint32(r.seq))
	data = binary.BigEndian.AppendUint32(append(data, byte(r.kind)), uint32(r.call))
	return &clusterv1.Payload{Body: &clusterv1.Payload_Data{Data: binary.BigEndian.AppendUint32(data, r.value)}}
}

func recordOf(data []byte) record {
	n := binary.BigEndian.Uint32
	return record{seq: int(n(data)), kind: int(data[4]), call: int(n(data[5:])), value: n(data[9:])}
}

type nodeState int

const (
	idle nodeState = iota
	reading
	taking
	owning
	releasing
)

// node is a node with the workspace's journal, as long as it lives.
type node struct {
	world  *world
	name   string
	life   int // how often it has died
	paused bool
	state  nodeState

	chain  chain
	writer writer
	asked  int  // how many requests it has sent
	waits  bool // for the answer to the last one

	records []record // acknowledged
	pending []record // in the chain, but not acknowledged
	queue   []record // not in the chain yet
	known   map[int]int
	effects []int // calls that are running
	based   bool  // the last thing in the chain is a base
}

func (n *node) identity() string { return fmt.Sprint(n.name, " life ", n.life) }

// act does one of the things that the node may do next.
func (n *node) act() {
	w := n.world
	switch {
	case n.paused:
	case n.state == idle || n.state == reading && w.one(10):
		if w.one(40*w.calm) || w.one(20) && w.log.holder == "" {
			n.read()
		}
	case n.state == owning && len(n.effects) > 0 && w.one(3):
		n.perform()
	case n.state == owning && len(n.records) > 0 && w.one(3):
		n.show(n.records[w.rng.IntN(len(n.records))])
	case n.state == owning && w.one(2) && len(w.client.seen) < len(n.records):
		n.show(n.records[len(w.client.seen)])
	case n.state != reading:
		n.push()
	}
}

// read asks the log for all it has.
func (n *node) read() {
	n.state = reading
	n.world.send(nil, func() {
		segments := n.world.log.read()
		n.world.send(n, func() {
			if n.state == reading {
				n.take(segments)
			}
		})
	})
}

// take builds the journal from what was read, and begins to take over.
func (n *node) take(segments []log.Segment) {
	r := reader{w: ws}
	for _, s := range segments {
		if err := r.read(s); err != nil {
			n.world.breaks("an owner can read the log", "%v", err)
			return
		}
	}
	if r.diverged != 0 {
		n.world.count("divergence seen by a reader")
		if n.world.rules.lose == 0 {
			n.world.breaks("no divergence without loss", "a reader sees one at %d", r.diverged)
		}
	}
	n.chain, n.writer = r.chain(), r.writer(n.name, n.newID)
	n.records, n.pending, n.queue, n.effects, n.known = nil, nil, nil, nil, map[int]int{}
	for _, p := range r.payloads {
		n.learn(recordOf(p.GetData()))
	}
	n.writer.room = 60 // three records
	n.chain.add(n.writer.owned(r.diverged != 0))
	n.state, n.waits, n.based = taking, false, false
}

func (n *node) newID() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n.world.rng.Uint64()), n.world.rng.Uint64())
}

// learn adds a record that was read.
func (n *node) learn(r record) {
	if r.seq != len(n.records) {
		n.world.breaks("no record is missing", "after %d records comes %v", len(n.records), r)
	}
	n.records = append(n.records, r)
	n.known[r.call] = max(n.known[r.call], r.kind)
}

// took goes on with what was under way: what was started is never run again.
func (n *node) took() {
	n.world.count("takeovers")
	n.state = owning
	calls := map[int]bool{}
	for _, r := range n.records {
		n.world.acknowledge(r) // the owner before may not have had the answer
		if calls[r.call] {
			continue
		}
		calls[r.call] = true
		switch n.known[r.call] {
		case acceptedRecord:
			n.note(startedRecord, r.call)
		case startedRecord:
			n.world.count("interrupted")
			n.note(resultRecord, r.call)
		}
	}
}

// note queues a record with the next number.
func (n *node) note(kind, call int) {
	seq := len(n.records) + len(n.pending) + len(n.queue)
	n.queue = append(n.queue, record{seq: seq, kind: kind, call: call, value: n.world.rng.Uint32()})
	n.known[call] = kind
}

// accept is a client's call. The same one may come again.
func (n *node) accept(call int) {
	if n.state != owning {
		return
	}
	if _, known := n.known[call]; !known {
		n.note(acceptedRecord, call)
	}
}

// perform runs one of the started calls.
func (n *node) perform() {
	i := n.world.rng.IntN(len(n.effects))
	call := n.effects[i]
	n.effects = slices.Delete(n.effects, i, i+1)
	n.world.count("effects")
	if n.world.log.holder != n.identity() {
		n.world.count("effects of an owner that had been replaced")
	}
	if n.world.effects[call]++; n.world.effects[call] > 1 {
		n.world.breaks("at most one effect a call", "call %d has %d", call, n.world.effects[call])
	}
	n.note(resultRecord, call)
}

// show sends a record to the client.
func (n *node) show(r record) {
	w := n.world
	if w.acknowledged[r.seq] != r {
		w.breaks("what is shown was acknowledged", "%s shows %v, acknowledged is %v", n.name, r, w.acknowledged[r.seq])
	}
	if n.chain.fenced != nil {
		w.breaks("an owner that knows it is fenced shows nothing", "%s shows %v", n.name, r)
	}
	w.send(nil, func() { w.client.show(w, r) })
}

// push sends the next append, or the last one again.
func (n *node) push() {
	if n.waits && !n.world.one(25) {
		return
	}
	if _, _, more := n.chain.request(); !more {
		n.fill()
	}
	prev, _, more := n.chain.request()
	if !more {
		return
	}
	n.asked++
	n.waits = true
	n.ask(n.asked, prev, n.chain.links[n.chain.next])
}

// fill adds to the chain what is to be stored next.
func (n *node) fill() {
	w := n.world
	switch {
	case w.one(12):
		n.chain.mark()
		var all []*clusterv1.Payload
		for _, r := range n.records {
			all = append(all, r.payload())
		}
		n.chain.add(n.writer.base(all))
		n.based = true
		w.count("bases")
	case w.one(60) && !w.rules.steady:
		n.chain.add(n.writer.release())
		n.state = releasing
		n.effects, n.queue = nil, nil
	case w.one(30):
		n.chain.add(n.writer.snapshotted("s"))
	case len(n.queue) > 0:
		n.pending, n.queue = n.queue, nil
		var group []*clusterv1.Payload
		for _, r := range n.pending {
			group = append(group, r.payload())
		}
		links := n.writer.changes(group)
		if len(links) > 1 {
			w.count("groups of several parts")
		}
		n.chain.add(links)
	}
}

// ask is one append and what follows from it. Answers to an earlier request
// are for no one, as in a Lease.
func (n *node) ask(request int, prev log.Pos, k link) {
	w, by := n.world, n.identity()
	w.send(nil, func() {
		pos, stored := w.log.append(by, prev, k)
		w.send(n, func() {
			if request != n.asked {
				if stored {
					w.count("stored though unanswered")
				}
				return
			}
			if stored {
				n.chain.stored(pos)
				n.answered()
				return
			}
			w.send(nil, func() {
				last := w.log.lastKnown()
				w.send(n, func() {
					if request == n.asked && n.waits {
						n.ends(last)
					}
				})
			})
		})
	})
}

func (n *node) ends(last log.Segment) {
	before := n.chain.putBack
	n.chain.ends(last)
	if n.chain.putBack > before {
		if n.world.rules.lose > 0 {
			n.world.count("put back")
		}
		if n.world.rules.noPutBack {
			n.chain.fenced = &Fenced{Diverged: true}
		}
	}
	n.answered()
}

// answered checks the chain after an answer.
func (n *node) answered() {
	w := n.world
	n.waits = false
	n.asked++
	if f := n.chain.fenced; f != nil {
		w.count("fenced")
		if f.Diverged {
			w.count("divergence seen by an owner")
			if w.rules.lose == 0 {
				w.breaks("no divergence without loss", "%s is fenced with %v", n.name, f)
			}
		}
		n.state, n.effects = idle, nil
		return
	}
	if _, _, more := n.chain.request(); more {
		return
	}
	for _, l := range n.chain.links {
		if !w.log.stored[l.hash] {
			w.breaks("what is acknowledged was stored", "%s takes a segment for stored that never was", n.name)
		}
	}
	switch {
	case n.state == taking:
		n.took()
		return
	case n.state == releasing:
		w.count("released")
		n.state = idle
	case n.based:
		n.based = false
		n.purge()
	}
	n.acknowledge()
	if w.rules.steady && w.rules.returns > 0 && w.one(10) {
		n.readBack(w.log.all())
	}
}

// readBack reads the log as a successor would, when the owner has just stored all that it has.
func (n *node) readBack(segments []log.Segment) {
	r := reader{w: ws}
	for _, s := range segments {
		if err := r.read(s); err != nil {
			n.world.breaks("an owner can read the log", "%v", err)
		}
	}
	if r.diverged != 0 || len(r.payloads) != len(n.records) {
		n.world.breaks("what was put back is read once", "%d of %d records, diverged at %d", len(r.payloads), len(n.records), r.diverged)
	}
}

// purge removes what is before the base, as a Lease does before its next append.
func (n *node) purge() {
	w, before := n.world, n.chain.cut()
	n.asked++
	n.waits = true
	request := n.asked
	if w.rules.steady { // later it could remove what was put back at the same positions
		w.log.purge(before)
	}
	w.send(nil, func() {
		if !w.rules.steady {
			w.log.purge(before)
		}
		w.send(n, func() {
			if request == n.asked && n.waits {
				n.waits = false
				n.chain.forget()
			}
		})
	})
}

// acknowledge goes on with the records that are now stored.
func (n *node) acknowledge() {
	stored := n.pending
	n.records, n.pending = append(n.records, stored...), nil
	for _, r := range stored {
		n.world.acknowledge(r)
		switch {
		case n.state != owning:
		case r.kind == startedRecord:
			n.effects = append(n.effects, r.call)
		case r.kind == acceptedRecord:
			n.note(startedRecord, r.call)
		}
	}
}
