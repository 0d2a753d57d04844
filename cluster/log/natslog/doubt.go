package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
)

// place is a sequence in the stream of a shard.
type place struct {
	shard int
	at    uint64
}

// Doubt is [log.Replicated.Doubt]: another replica is asked to lead the workspace's stream.
//
// NATS takes a server whose files were damaged for current if the record of what the replicas have agreed on is whole: it may lead, has
// less than it has acknowledged, and is not repaired (seen with 2.15.2).
func (l *Log) Doubt(ctx context.Context, w log.Workspace, at log.Pos) error {
	shard, _ := l.address(w)
	s, err := l.stream(ctx, shard)
	if err != nil {
		return unknown(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return unknown(err)
	}
	return l.doubt(ctx, place{shard, uint64(at)}, info)
}

// checkEnd doubts the leader of a workspace's stream if it has lost the stream's last message. No workspace's last message is ever
// removed, so that its absence proves a loss.
func (l *Log) checkEnd(ctx context.Context, w log.Workspace) error {
	shard, _ := l.address(w)
	s, err := l.stream(ctx, shard)
	if err != nil {
		return unknown(err)
	}
	for before := uint64(0); ; {
		info, err := s.Info(ctx)
		if err != nil {
			return unknown(err)
		}
		last := info.State.LastSeq
		if last == 0 {
			return nil
		}
		if last == before { // else it may have been removed, behind a newer one
			return l.doubt(ctx, place{shard, last}, info)
		}
		switch _, err := s.GetMsg(ctx, last); {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return unknown(err)
		}
		before = last
	}
}

// doubt makes a replica the leader that has not been doubted yet.
func (l *Log) doubt(ctx context.Context, p place, info *jetstream.StreamInfo) error {
	if info.Cluster == nil {
		return nil
	}
	l.mu.Lock()
	if !slices.Contains(l.doubted[p], info.Cluster.Leader) {
		l.doubted[p] = append(l.doubted[p], info.Cluster.Leader)
	}
	doubted := l.doubted[p]
	l.mu.Unlock()
	i := slices.IndexFunc(info.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return !slices.Contains(doubted, r.Name) })
	if i < 0 {
		return nil
	}
	next := info.Cluster.Replicas[i].Name
	body, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": next}})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if _, err := l.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+info.Config.Name, body); err != nil {
		return unknown(err)
	}
	err = fmt.Errorf("%w: the server %s has lost messages of the stream %s before %d, so %s is asked to lead it", log.ErrUnknown, info.Cluster.Leader, info.Config.Name, p.at, next)
	if l.config.Doubted != nil {
		l.config.Doubted(err)
	}
	return err
}
