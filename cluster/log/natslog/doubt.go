package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
)

// place is a sequence in the stream of a shard.
type place struct {
	shard int
	at    uint64
}

// Copy is [log.Replicated.Copy]: the server that leads the workspace's stream.
func (l *Log) Copy(ctx context.Context, w log.Workspace) (string, error) {
	_, info, err := l.lead(ctx, w)
	if err != nil {
		return "", err
	}
	return info.Cluster.Leader, nil
}

// Doubt is [log.Replicated.Doubt]: another replica is asked to lead the workspace's stream.
//
// NATS takes a server whose files were damaged for current if the record of what the replicas have agreed on is whole: it may lead, has
// less than it has acknowledged, and is not repaired (seen with 2.15.2).
func (l *Log) Doubt(ctx context.Context, w log.Workspace, at log.Pos, server string) error {
	s, info, err := l.lead(ctx, w)
	if err != nil {
		return err
	}
	shard, _ := l.address(w)
	return l.doubt(ctx, s, place{shard, uint64(at)}, info, server, "lacks messages of a workspace, unless all servers have lost them")
}

// lead returns the workspace's stream and what its leader knows of it, if it has one.
func (l *Log) lead(ctx context.Context, w log.Workspace) (jetstream.Stream, *jetstream.StreamInfo, error) {
	shard, _ := l.address(w)
	s, err := l.stream(ctx, shard)
	if err != nil {
		return nil, nil, unknown(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return nil, nil, unknown(err)
	}
	if info.Cluster == nil { // a server alone
		info.Cluster = &jetstream.ClusterInfo{}
	} else if info.Cluster.Leader == "" {
		return nil, nil, unknown(fmt.Errorf("the stream %s has no leader", info.Config.Name))
	}
	return s, info, nil
}

// checkEnd doubts the leader of a workspace's stream if it has lost the stream's last message. No workspace's last message is ever
// removed, so that its absence proves a loss.
func (l *Log) checkEnd(ctx context.Context, w log.Workspace) error {
	var last uint64
	var server string
	for {
		s, info, err := l.lead(ctx, w)
		if err != nil || info.State.LastSeq == 0 {
			return err
		}
		if info.State.LastSeq == last && info.Cluster.Leader == server { // else it may have been removed, behind a newer one
			shard, _ := l.address(w)
			return l.doubt(ctx, s, place{shard, last}, info, server, "has lost the last messages")
		}
		last, server = info.State.LastSeq, info.Cluster.Leader
		switch _, err := s.GetMsg(ctx, last); {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return unknown(err)
		}
	}
}

// leaderTime is how long a stream may be without a leader after another one was asked to lead.
const leaderTime = 10 * time.Second

// doubt has a replica lead in the place of a server, and waits until one does. Each replica is asked once for a place.
func (l *Log) doubt(ctx context.Context, s jetstream.Stream, p place, info *jetstream.StreamInfo, server, what string) error {
	if info.Cluster.Leader != server {
		return log.ErrElsewhere
	}
	next := l.successor(p, info)
	if next == "" {
		return nil
	}
	if l.config.Doubted != nil {
		l.config.Doubted(fmt.Errorf("the server %s %s (stream %s, before message %d), and %s is asked to lead the stream", server, what, info.Config.Name, p.at, next))
	}
	body, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": next}})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if _, err := l.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+info.Config.Name, body); err != nil {
		return unknown(err)
	}
	return awaitAnother(ctx, s, server)
}

// successor returns a replica that was neither asked to lead nor doubted for a place, and can be reached; "" if there is none.
func (l *Log) successor(p place, info *jetstream.StreamInfo) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	tried := append(l.tried[p], info.Cluster.Leader)
	i := slices.IndexFunc(info.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Offline && !slices.Contains(tried, r.Name) })
	if i < 0 {
		return ""
	}
	next := info.Cluster.Replicas[i].Name
	l.tried[p] = append(tried, next)
	return next
}

// awaitAnother waits until another server leads, and returns [log.ErrElsewhere] then.
func awaitAnother(ctx context.Context, s jetstream.Stream, server string) error {
	ctx, cancel := context.WithTimeout(ctx, leaderTime)
	defer cancel()
	for {
		once, end := context.WithTimeout(ctx, time.Second) // a stream without a leader does not answer
		info, err := s.Info(once)
		end()
		if err == nil && info.Cluster != nil && info.Cluster.Leader != "" && info.Cluster.Leader != server {
			return log.ErrElsewhere
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return unknown(ctx.Err())
		}
	}
}
