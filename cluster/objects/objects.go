// Package objects keeps what is too large for a log: files by name, in the
// object store of NATS, in one that speaks S3, or in a directory.
//
// It does not know what it keeps.
package objects

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Store keeps objects. Its methods are safe for concurrent use. Names consist
// of letters, digits, dots and slashes.
type Store interface {
	// Put stores what r returns up to io.EOF, in the place of what had the name. It returns when the object
	// survives what the store promises to survive; after an error nothing is stored.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens an object. It returns an error that wraps fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// List returns the names that begin with a prefix, which ends with a slash, in no order. It ends with the first error.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Below returns the part of a store whose names begin with a prefix, which ends with a slash. It has them without the prefix.
// A workspace's own part is below its ID.
func Below(store Store, prefix string) Store { return below{store, prefix} }

type below struct {
	store  Store
	prefix string
}

func (b below) Put(ctx context.Context, name string, r io.Reader) error {
	return b.store.Put(ctx, b.prefix+name, r)
}

func (b below) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return b.store.Get(ctx, b.prefix+name)
}

func (b below) Delete(ctx context.Context, name string) error {
	return b.store.Delete(ctx, b.prefix+name)
}

func (b below) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range b.store.List(ctx, b.prefix+prefix) {
			if !yield(strings.TrimPrefix(name, b.prefix), err) {
				return
			}
		}
	}
}

// Payloads is what the names of payloads begin with that are too large for a log.
const Payloads = "payloads/"

// Blobs stores bytes by their SHA-256 below a prefix: it is a lease.Blobs.
type Blobs struct {
	Store  Store
	Prefix string
}

func (b Blobs) name(digest [32]byte) string { return b.Prefix + hex.EncodeToString(digest[:]) }

// Put stores data.
func (b Blobs) Put(ctx context.Context, digest [32]byte, data []byte) error {
	return b.Store.Put(ctx, b.name(digest), bytes.NewReader(data))
}

// Get returns what was stored.
func (b Blobs) Get(ctx context.Context, digest [32]byte) ([]byte, error) {
	r, err := b.Store.Get(ctx, b.name(digest))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Delete removes what was stored.
func (b Blobs) Delete(ctx context.Context, digest [32]byte) error {
	return b.Store.Delete(ctx, b.name(digest))
}

// Dir keeps objects as files in a directory, for tests and for a shared volume.
type Dir string

func (d Dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Put writes a file beside the other, syncs it and renames it.
func (d Dir) Put(_ context.Context, name string, r io.Reader) error {
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has been renamed, unless something failed
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Get opens a file.
func (d Dir) Get(_ context.Context, name string) (io.ReadCloser, error) { return os.Open(d.path(name)) }

// Delete removes a file.
func (d Dir) Delete(_ context.Context, name string) error {
	if err := os.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List walks the directory.
func (d Dir) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := filepath.WalkDir(d.path(prefix), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed meanwhile, or never there
				return nil
			case err != nil || ctx.Err() != nil:
				return errors.Join(err, ctx.Err())
			case !entry.Type().IsRegular():
				return nil
			}
			name, err := filepath.Rel(string(d), path)
			if err == nil && !yield(filepath.ToSlash(name), nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield("", err)
		}
	}
}

// NATS is an object store of JetStream. Objects of more than some hundred MiB belong in S3.
type NATS struct{ Bucket jetstream.ObjectStore }

// Bucket returns the NATS store of that name. If it does not exist it is made with that many replicas; 0: 1.
func Bucket(ctx context.Context, js jetstream.JetStream, name string, replicas int) (NATS, error) {
	bucket, err := js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		bucket, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, Replicas: max(replicas, 1)})
	}
	return NATS{bucket}, err
}

// Put stores an object. What had the name before is removed by the server.
func (n NATS) Put(ctx context.Context, name string, r io.Reader) error {
	_, err := n.Bucket.Put(ctx, jetstream.ObjectMeta{Name: name}, r)
	return err
}

// Get opens an object; the bytes are compared with the digest that the bucket has of them.
func (n NATS) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := n.Bucket.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
	}
	return r, err
}

// Delete removes an object.
func (n NATS) Delete(ctx context.Context, name string) error {
	if err := n.Bucket.Delete(ctx, name); !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	return nil
}

// List reads the names of the whole bucket, since NATS has no other list.
func (n NATS) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all, err := n.Bucket.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		for _, object := range all {
			if strings.HasPrefix(object.Name, prefix) && !yield(object.Name, nil) {
				return
			}
		}
	}
}
