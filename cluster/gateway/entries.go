// The index as a whole, for an administrator: copying it, and removing a workspace.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/members"
)

// ExportIndex writes the index, an entry on each line.
func ExportIndex(ctx context.Context, js jetstream.JetStream, w io.Writer) error {
	return eachEntry(ctx, js, func(_ jetstream.KeyValue, e entry) error { return json.NewEncoder(w).Encode(e) })
}

// ImportIndex adds entries that ExportIndex has written. Where the index has another one already, that stays.
func ImportIndex(ctx context.Context, js jetstream.JetStream, replicas int, r io.Reader) error {
	bucket, err := members.Bucket(ctx, js, indexBucket, replicas, indexLife)
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(r); ; {
		var e entry
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := bucket.Create(ctx, e.key(), text); err != nil && !members.Conflict(err) {
			return err
		}
	}
}

// RemoveFromIndex removes a workspace with its sessions. It reports whether there was any of it.
func RemoveFromIndex(ctx context.Context, js jetstream.JetStream, principal, workspace string) (found bool, err error) {
	err = eachEntry(ctx, js, func(bucket jetstream.KeyValue, e entry) error {
		if e.Principal != principal || e.Workspace != workspace {
			return nil
		}
		found = true
		return bucket.Purge(ctx, e.key())
	})
	return found, err
}

// eachEntry calls do with each entry. A cluster that no gateway has served yet has none.
func eachEntry(ctx context.Context, js jetstream.JetStream, do func(jetstream.KeyValue, entry) error) error {
	bucket, err := js.KeyValue(ctx, indexBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := bucket.ListKeys(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = keys.Stop() }()
	for key := range keys.Keys() {
		found, err := bucket.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // it was removed meanwhile
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(found.Value(), &e)
		}
		if err == nil {
			err = do(bucket, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
