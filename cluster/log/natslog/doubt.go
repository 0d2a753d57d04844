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
	_, info, err := l.lead(ctx, w)
	if err != nil {
		return err
	}
	shard, _ := l.address(w)
	return l.doubt(ctx, place{shard, uint64(at)}, info, server)
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
			return l.doubt(ctx, place{shard, last}, info, server)
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

// doubt has a replica lead in the place of a server that was not doubted for this place.
func (l *Log) doubt(ctx context.Context, p place, info *jetstream.StreamInfo, server string) error {
	if info.Cluster.Leader != server {
		return fmt.Errorf("%w: another server leads the stream %s since", log.ErrUnknown, info.Config.Name)
	}
	l.mu.Lock()
	if !slices.Contains(l.doubted[p], server) {
		l.doubted[p] = append(l.doubted[p], server)
	}
	doubted := l.doubted[p]
	l.mu.Unlock()
	others := slices.DeleteFunc(info.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return slices.Contains(doubted, r.Name) })
	if len(others) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: the server %s has lost messages of the stream %s before %d", log.ErrUnknown, server, info.Config.Name, p.at)
	if i := slices.IndexFunc(others, func(r *jetstream.PeerInfo) bool { return !r.Offline }); i < 0 {
		err = fmt.Errorf("%w, and %s, which may have them, cannot be reached", err, others[0].Name)
	} else if failed := l.askToLead(ctx, info.Config.Name, others[i].Name); failed != nil {
		return unknown(failed)
	} else {
		err = fmt.Errorf("%w, so %s is asked to lead it", err, others[i].Name)
	}
	if l.config.Doubted != nil {
		l.config.Doubted(err)
	}
	return err
}

func (l *Log) askToLead(ctx context.Context, stream, server string) error {
	body, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": server}})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	_, err = l.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, body)
	return err
}
