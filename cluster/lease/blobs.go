package lease

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
)

// refer returns the payloads as a segment holds them. Those that are too large
// are stored in the object store first, through its outages.
func (l *Lease) refer(ctx context.Context, payloads [][]byte) ([]*clusterv1.Payload, error) {
	refs := make([]*clusterv1.Payload, len(payloads))
	for i, data := range payloads {
		refs[i] = &clusterv1.Payload{Body: &clusterv1.Payload_Data{Data: data}}
		if len(data) <= inlineBytes {
			continue
		}
		if l.store.Blobs == nil {
			return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(data))
		}
		digest := sha256.Sum256(data)
		if err := l.put(ctx, digest, data); err != nil {
			return nil, err
		}
		blob := &clusterv1.Blob{Digest: digest[:], Size: uint64(len(data))}
		refs[i] = &clusterv1.Payload{Body: &clusterv1.Payload_Blob{Blob: blob}}
	}
	return refs, nil
}

// put stores a blob. It returns an error only if ctx has ended.
func (l *Lease) put(ctx context.Context, digest [sha256.Size]byte, data []byte) error {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := l.store.Blobs.Put(ctx, digest, data)
		if err == nil {
			return nil
		}
		if ended := pause(ctx, wait); ended != nil {
			return fmt.Errorf("%w: the object store: %w", ended, err)
		}
	}
}

// noteBlobs notes what may be in the object store for payloads. The caller holds the turn.
func (l *Lease) noteBlobs(payloads ...*clusterv1.Payload) {
	for _, p := range payloads {
		if blob := p.GetBlob(); blob != nil {
			l.blobs[[sha256.Size]byte(blob.GetDigest())] = true
		}
	}
}

// purge removes what is before the base. The log has acknowledged the base, so that this lease was not
// fenced by then, and everything that is named before it is superseded. Blobs go only once the log has
// removed what names them.
func (l *Lease) purge(ctx context.Context, base []*clusterv1.Payload) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if l.store.Log.Purge(ctx, l.w, l.chain.cut()) != nil {
		return
	}
	l.chain.forget()
	if l.store.Blobs == nil {
		return
	}
	outdated := l.blobs
	l.blobs = map[[sha256.Size]byte]bool{}
	l.noteBlobs(base...)
	for digest := range outdated {
		if !l.blobs[digest] && l.store.Blobs.Delete(ctx, digest) != nil {
			l.blobs[digest] = true
		}
	}
}

// MemoryBlobs are [Blobs] that end with their process. The zero value is
// empty.
type MemoryBlobs struct {
	mu    sync.Mutex
	blobs map[[sha256.Size]byte][]byte
}

// Put is [Blobs.Put].
func (m *MemoryBlobs) Put(ctx context.Context, digest [sha256.Size]byte, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[[sha256.Size]byte][]byte{}
	}
	m.blobs[digest] = bytes.Clone(data)
	return ctx.Err()
}

// Get is [Blobs.Get].
func (m *MemoryBlobs) Get(ctx context.Context, digest [sha256.Size]byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("there is no blob %x", digest)
	}
	return bytes.Clone(data), ctx.Err()
}

// Delete is [Blobs.Delete].
func (m *MemoryBlobs) Delete(ctx context.Context, digest [sha256.Size]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, digest)
	return ctx.Err()
}

// Len returns how many blobs there are.
func (m *MemoryBlobs) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.blobs)
}
