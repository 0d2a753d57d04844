package natslog

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
)

// TestSuccessor: each replica that can be reached is asked to lead once for each place. That one leads then is shown by
// TestReplicaLosesItsEnd.
func TestSuccessor(t *testing.T) {
	l := New(nil, Config{})
	for _, c := range []struct {
		at     uint64
		leader string
		others []string // -: it cannot be reached
		want   string
	}{
		{5, "", nil, ""},
		{7, "a", []string{"-b", "c"}, "c"},
		{7, "c", []string{"a", "-b"}, ""},
		{7, "c", []string{"a", "b"}, "b"},
		{7, "b", []string{"a", "c"}, ""},
		{8, "b", []string{"a", "c"}, "a"},
		{8, "c", []string{"a", "b"}, ""}, // it leads, although a was asked to
	} {
		info := &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: c.leader}}
		for _, name := range c.others {
			reached, offline := strings.CutPrefix(name, "-")
			info.Cluster.Replicas = append(info.Cluster.Replicas, &jetstream.PeerInfo{Name: reached, Offline: offline})
		}
		if got := l.successor(place{1, c.at}, info); got != c.want {
			t.Errorf("%+v: %q is asked to lead", c, got)
		}
	}
	read := &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: "b"}}
	if err := l.doubt(t.Context(), nil, place{1, 9}, read, "a", ""); !errors.Is(err, log.ErrElsewhere) {
		t.Errorf("what was read from a server that leads no more: %v", err)
	}
}
