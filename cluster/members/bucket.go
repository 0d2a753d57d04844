// The bucket of nodes: their addresses, for those who have not heard them yet,
// and whether they are to be drained.

package members

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const nodesBucket = "toold_nodes"

// An entry is a node in the bucket.
type entry struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Drain   bool   `json:"drain,omitempty"`
}

// keyOf returns a node's key: its name as hexadecimal, since a key may not begin
// or end with a dot.
func keyOf(name string) string { return hex.EncodeToString([]byte(name)) }

// Bucket returns a bucket of JetStream. If it does not exist, it is made with
// that many replicas, 0: 1, and entries are kept for life after they were written,
// 0: for ever.
//
// What it returns is read at the bucket's leader. NATS' own buckets are read at
// any replica, where an entry that was just written may be missing.
func Bucket(ctx context.Context, js jetstream.JetStream, name string, replicas int, life time.Duration) (jetstream.KeyValue, error) {
	bucket, err := js.KeyValue(ctx, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return bucket, err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, MaxAge: life, Replicas: max(replicas, 1),
		Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true, AllowDirect: false,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // which another program has made meanwhile
		return nil, err
	}
	return js.KeyValue(ctx, name)
}

// Register notes a node's address. Whether it is to be drained stays as it was.
func Register(ctx context.Context, config Config, name, address string) error {
	return change(ctx, config, name, func(e *entry) { e.Address = address })
}

// Drain notes whether a node is to be drained. The node learns it by
// [Members.DrainWanted].
func Drain(ctx context.Context, config Config, name string, drain bool) error {
	return change(ctx, config, name, func(e *entry) { e.Drain = drain })
}

// Forget removes a node that will not come back. One that lives would be back with its next announcement, so the caller has
// made sure that it does not.
func Forget(ctx context.Context, config Config, name string) error {
	bucket, err := Bucket(ctx, config.JetStream, nodesBucket, config.Replicas, 0)
	if err != nil {
		return err
	}
	return bucket.Delete(ctx, keyOf(name))
}

// change makes a change to a node's entry, again if another program was faster.
func change(ctx context.Context, config Config, name string, edit func(*entry)) error {
	bucket, err := Bucket(ctx, config.JetStream, nodesBucket, config.Replicas, 0)
	if err != nil {
		return err
	}
	for {
		e, revision := entry{Name: name}, uint64(0)
		switch found, err := bucket.Get(ctx, keyOf(name)); {
		case err == nil:
			revision = found.Revision()
			_ = json.Unmarshal(found.Value(), &e) // one that cannot be read is replaced
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		e.Name = name
		edit(&e)
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if revision == 0 {
			_, err = bucket.Create(ctx, keyOf(name), text)
		} else {
			_, err = bucket.Update(ctx, keyOf(name), text, revision)
		}
		if !Conflict(err) {
			return err
		}
	}
}

// Conflict reports whether a compare-and-set of a bucket has failed since another
// program was faster.
func Conflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// DrainWanted reports whether an administrator wants a node to be drained.
func (m *Members) DrainWanted(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[name] != nil && m.nodes[name].drain
}

// Drained reports whether a node has announced that it is drained and has no
// workspaces. An administrator's request is not enough: what the node has
// announced before may be older.
func (m *Members) Drained(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.nodes[name]
	return known != nil && known.Draining && known.Load.Workspaces == 0
}

// readAll reads what the bucket holds at the beginning.
func (m *Members) readAll(entries jetstream.KeyWatcher) {
	for found := range entries.Updates() {
		if found == nil { // that was all
			return
		}
		m.apply(found)
	}
}

// follow reads the bucket's changes until ctx ends.
func (m *Members) follow(ctx context.Context, entries jetstream.KeyWatcher) {
	defer func() { _ = entries.Stop() }()
	for {
		select {
		case found, ok := <-entries.Updates():
			if !ok {
				return
			}
			if found != nil {
				m.apply(found)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (m *Members) apply(found jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.notify()
	if found.Operation() != jetstream.KeyValuePut {
		if name, err := hex.DecodeString(found.Key()); err == nil {
			delete(m.nodes, string(name))
		}
		return
	}
	var e entry
	if err := json.Unmarshal(found.Value(), &e); err != nil || keyOf(e.Name) != found.Key() {
		return
	}
	known := m.member(e.Name)
	known.drain = e.Drain
	if known.heard.IsZero() {
		known.Address = e.Address
	}
}
