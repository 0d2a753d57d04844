package natslog

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
)

// TestDoubt: a workspace waits for a replica that may have what others have lost, and no longer than until each was doubted. What was
// read from another server than the one that leads now says nothing about it. That a replica leads is shown by TestReplicaLosesItsEnd.
func TestDoubt(t *testing.T) {
	var reported int
	l := New(nil, Config{Doubted: func(error) { reported++ }})
	doubt := func(at uint64, leader, read string, others ...string) error {
		info := &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: leader}}
		for _, name := range others {
			info.Cluster.Replicas = append(info.Cluster.Replicas, &jetstream.PeerInfo{Name: name, Offline: true})
		}
		return l.doubt(t.Context(), place{1, at}, info, read)
	}
	for _, c := range []struct {
		at           uint64
		leader, read string
		others       []string
		want         string // in the error; empty: none
		reports      int
	}{
		{at: 5, read: ""},
		{at: 7, leader: "a", read: "b", others: []string{"b"}, want: "another server leads"},
		{at: 7, leader: "a", read: "a", others: []string{"b"}, want: "and b, which may have them, cannot be reached", reports: 1},
		{at: 7, leader: "b", read: "b", others: []string{"a"}},
		{at: 8, leader: "b", read: "b", others: []string{"a"}, want: "and a, which", reports: 1},
	} {
		reported = 0
		err := doubt(c.at, c.leader, c.read, c.others...)
		if reported != c.reports || (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, log.ErrUnknown) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, reported %d times", c, err, reported)
		}
	}
}
