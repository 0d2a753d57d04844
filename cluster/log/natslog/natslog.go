// Package natslog keeps the segments of workspaces in streams of NATS
// JetStream: one message a segment, one subject a workspace, published with
// the sequence that the subject is expected to have last.
//
// How durable a segment is depends on the server: sync_interval must be
// "always", and its version 2.15.2 or newer.
//
// It does not know what a segment means.
package natslog

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
)

// DefaultShards is how many streams the workspaces are divided among.
const DefaultShards = 128

// What the server answers to a publish.
const (
	wrongLastSequence jetstream.ErrorCode = 10071 // the subject has another last message
	inProcess         jetstream.ErrorCode = 10164 // another message to the subject is being stored
)

// shardsKey is where a stream notes how many streams there are.
const shardsKey = "toold_shards"

// Config is how the streams are made that do not exist yet.
type Config struct {
	Shards   int // 0: DefaultShards; the same in every node, for ever
	Replicas int // 0: 1
	Storage  jetstream.StorageType
	Prefix   string // of subjects and streams, one token; "": toold
	// Doubted, if not nil, is called when messages are missing in a server that leads a stream, with an error that names it. It must
	// return soon.
	Doubted func(error)
}

// Log is a [log.Log] in NATS JetStream.
type Log struct {
	js     jetstream.JetStream
	config Config

	mu      sync.Mutex
	streams map[int]jetstream.Stream // those that were used, by shard
	tried   map[place][]string       // servers that lack something before it, and those that were asked to lead in their place
}

// New returns a log on a connection, which the caller closes. It does not
// contact the server: a stream is made when a workspace of its is first used.
func New(js jetstream.JetStream, config Config) *Log {
	if config.Shards == 0 {
		config.Shards = DefaultShards
	}
	if config.Replicas == 0 {
		config.Replicas = 1
	}
	if config.Prefix == "" {
		config.Prefix = "toold"
	}
	return &Log{js: js, config: config, streams: map[int]jetstream.Stream{}, tried: map[place][]string{}}
}

// address returns the shard and the subject of a workspace.
func (l *Log) address(w log.Workspace) (int, string) {
	principal, name := sha256.Sum256([]byte(w.Principal)), sha256.Sum256([]byte(w.Name))
	both := sha256.Sum256(append(principal[:], name[:]...))
	shard := int(binary.BigEndian.Uint64(both[:]) % uint64(l.config.Shards))
	return shard, fmt.Sprintf("%s.w.%d.%s.%s", l.config.Prefix, shard, token(principal), token(name))
}

// token returns the first 160 bits of a hash as one token of a subject.
func token(hash [sha256.Size]byte) string {
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash[:20]))
}

func (l *Log) streamName(shard int) string { return fmt.Sprintf("%s-w-%d", l.config.Prefix, shard) }

// stream returns the stream of a shard, and makes it if it does not exist.
func (l *Log) stream(ctx context.Context, shard int) (jetstream.Stream, error) {
	l.mu.Lock()
	s := l.streams[shard]
	l.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := l.js.Stream(ctx, l.streamName(shard))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = l.js.CreateStream(ctx, l.streamConfig(shard))
	}
	if err != nil {
		return nil, err
	}
	if err := l.check(s.CachedInfo().Config); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[shard] = s
	return s, nil
}

func (l *Log) streamConfig(shard int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: l.streamName(shard), Subjects: []string{fmt.Sprintf("%s.w.%d.*.*", l.config.Prefix, shard)},
		Description: "The logs of toold's workspaces, one subject each.",
		Storage:     l.config.Storage, Replicas: l.config.Replicas, Discard: jetstream.DiscardNew,
		// Reads go to the leader only: another replica may not have yet what was acknowledged.
		AllowDirect: false,
		Metadata:    map[string]string{shardsKey: strconv.Itoa(l.config.Shards)},
	}
}

// check refuses a stream on which the log cannot keep its promises.
func (l *Log) check(c jetstream.StreamConfig) error {
	if n := c.Metadata[shardsKey]; n != strconv.Itoa(l.config.Shards) {
		return fmt.Errorf("the stream %s was made for %q shards, and %d are configured: workspaces would not be found", c.Name, n, l.config.Shards)
	}
	if c.AllowDirect || c.Discard != jetstream.DiscardNew || c.Retention != jetstream.LimitsPolicy || c.MaxAge != 0 || c.MaxMsgsPerSubject > 0 {
		return fmt.Errorf("the stream %s answers from any replica, or removes messages by itself", c.Name)
	}
	return nil
}

// Append is [log.Log.Append].
func (l *Log) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	if err := log.CheckSegment(w, data); err != nil {
		return 0, err
	}
	shard, subject := l.address(w)
	if _, err := l.stream(ctx, shard); err != nil {
		return 0, unknown(err)
	}
	ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data},
		jetstream.WithExpectStream(l.streamName(shard)), jetstream.WithExpectLastSequencePerSubject(uint64(prev)))
	if err == nil {
		return log.Pos(ack.Sequence), nil
	}
	switch code(err) {
	case inProcess:
		return 0, log.ErrBusy
	case wrongLastSequence:
		return 0, l.fenced(ctx, w, prev)
	default:
		return 0, unknown(err)
	}
}

// fenced returns the error for an append behind a segment that is not the last.
func (l *Log) fenced(ctx context.Context, w log.Workspace, prev log.Pos) error {
	last, err := l.Last(ctx, w)
	if err != nil {
		return err
	}
	if last.Pos < prev {
		_ = l.checkEnd(ctx, w) // for the stream's other workspaces: this one's owner knows what is missing
	}
	if last.Pos == prev { // this answer and that of the append are of different times
		return fmt.Errorf("%w: it has refused an append behind %d, and ends there", log.ErrUnknown, prev)
	}
	return &log.FencedError{Last: last}
}

// Last is [log.Log.Last].
func (l *Log) Last(ctx context.Context, w log.Workspace) (log.Segment, error) {
	if err := w.Check(); err != nil {
		return log.Segment{}, err
	}
	shard, subject := l.address(w)
	s, err := l.stream(ctx, shard)
	if err != nil {
		return log.Segment{}, unknown(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	return segment(m, err)
}

// Read is [log.Log.Read]. Each segment is asked for by itself, from the
// stream's leader: no consumer has to be made, and none can be behind.
func (l *Log) Read(ctx context.Context, w log.Workspace, from log.Pos) iter.Seq2[log.Segment, error] {
	return func(yield func(log.Segment, error) bool) {
		if err := w.Check(); err != nil {
			yield(log.Segment{}, err)
			return
		}
		shard, subject := l.address(w)
		s, err := l.stream(ctx, shard)
		if err != nil {
			yield(log.Segment{}, unknown(err))
			return
		}
		for next := max(from, 1); ; {
			m, err := s.GetMsg(ctx, uint64(next), jetstream.WithGetMsgSubject(subject))
			found, err := segment(m, err)
			if err == nil && found.Pos == 0 {
				err = l.checkEnd(ctx, w)
			}
			if err == nil && found.Pos == 0 || !yield(found, err) || err != nil {
				return
			}
			next = found.Pos + 1
		}
	}
}

// Workspaces returns the workspaces that the log has, in no order. nameOf returns whose a segment is, if the segment has
// that, since subjects have hashes only. It ends with the first error.
func (l *Log) Workspaces(ctx context.Context, nameOf func(segment []byte) (log.Workspace, bool)) iter.Seq2[log.Workspace, error] {
	return func(yield func(log.Workspace, error) bool) {
		for shard := range l.config.Shards {
			s, err := l.js.Stream(ctx, l.streamName(shard))
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				continue
			}
			var info *jetstream.StreamInfo
			if err == nil {
				info, err = s.Info(ctx, jetstream.WithSubjectFilter(">"))
			}
			if err != nil {
				yield(log.Workspace{}, err)
				return
			}
			for subject := range info.State.Subjects {
				w, err := named(ctx, s, subject, nameOf)
				if errors.Is(err, jetstream.ErrMsgNotFound) {
					continue // it was removed meanwhile
				}
				if !yield(w, err) || err != nil {
					return
				}
			}
		}
	}
}

// named returns the workspace of a subject, from the first of its segments that has it.
func named(ctx context.Context, s jetstream.Stream, subject string, nameOf func([]byte) (log.Workspace, bool)) (log.Workspace, error) {
	for next := uint64(1); ; {
		m, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
		if err != nil {
			return log.Workspace{}, err
		}
		if w, is := nameOf(m.Data); is {
			return w, nil
		}
		next = m.Sequence + 1
	}
}

// segment returns a message as a segment, the zero one if there is no message.
func segment(m *jetstream.RawStreamMsg, err error) (log.Segment, error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return log.Segment{}, nil
	}
	if err != nil {
		return log.Segment{}, unknown(err)
	}
	return log.Segment{Pos: log.Pos(m.Sequence), Data: m.Data}, nil
}

// Purge is [log.Log.Purge].
func (l *Log) Purge(ctx context.Context, w log.Workspace, before log.Pos) error {
	if err := w.Check(); err != nil {
		return err
	}
	// The server would remove the last segment too.
	last, err := l.Last(ctx, w)
	if err != nil {
		return err
	}
	if err := log.CheckPurge(last, before); err != nil {
		return err
	}
	shard, subject := l.address(w)
	s, err := l.stream(ctx, shard)
	if err != nil {
		return unknown(err)
	}
	if before <= 1 { // 0 would remove everything
		return nil
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(uint64(before))); err != nil {
		return unknown(err)
	}
	return nil
}

func code(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// unknown wraps an error that does not tell whether anything was done.
func unknown(err error) error { return fmt.Errorf("%w: %w", log.ErrUnknown, err) }
