package lease

import (
	"errors"
	"testing"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

// What is in a log is read without a panic, and refused with one of the two
// errors or taken as a segment that a chain can go on from.
func FuzzSegment(f *testing.F) {
	r := reader{w: ws}
	w := r.writer("n1", newID)
	payload := []*clusterv1.Payload{
		{Body: &clusterv1.Payload_Data{Data: []byte("payload")}}, {Body: &clusterv1.Payload_Blob{Blob: &clusterv1.Blob{Digest: make([]byte, 32), Size: 7}}},
	}
	links := append(w.owned(true), w.changes(payload)...)
	links = append(append(append(links, w.snapshotted("s")...), w.base(payload)...), w.release()...)
	for i, l := range links {
		f.Add(l.data, links[max(0, i-1)].data)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := reader{w: ws}
		for i, data := range [][]byte{first, second} {
			if err := r.read(log.Segment{Pos: log.Pos(i + 1), Data: data}); err != nil {
				if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrCollision) {
					t.Fatalf("another error: %v", err)
				}
				return
			}
		}
		c, w := r.chain(), r.writer("n2", newID)
		c.add(w.owned(r.diverged != 0))
		prev, data, more := c.request()
		if last := c.links[len(c.links)-2]; !more || prev != last.pos || w.epoch <= last.header.epoch {
			t.Fatalf("takes over epoch %d behind %d with %d", last.header.epoch, prev, w.epoch)
		}
		if _, err := decode(data); err != nil {
			t.Fatal(err)
		}
		c.ends(log.Segment{Pos: 9, Data: second})
	})
}
