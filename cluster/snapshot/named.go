package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/toold/toold/cluster/objects"
)

// Named snapshots are in a part of the object store that belongs to no workspace: the archive, and an object with its reference.
const named = "named/"

// ErrUnknown is returned for a name that no snapshot has.
var ErrUnknown = errors.New("there is no snapshot of that name")

// Nominate stores a copy of a snapshot under a name, in the place of the one that had it. all is the whole object store, from the
// part of it that has the snapshot.
func Nominate(ctx context.Context, all, from objects.Store, reference, name string) error {
	archive, err := from.Get(ctx, Name(reference))
	if err != nil {
		return err
	}
	err = all.Put(ctx, named+Name(reference), archive)
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	return all.Put(ctx, nameObject(name), strings.NewReader(reference))
}

func nameObject(name string) string {
	sum := sha256.Sum256([]byte(name))
	return named + "names/" + hex.EncodeToString(sum[:])
}

// CopyNamed copies the named snapshots of an object store to another, and returns how many it has copied. Of a name that the other
// has already it copies nothing.
func CopyNamed(ctx context.Context, from, to objects.Store) (n int, err error) {
	for name, err := range from.List(ctx, named+"names/") {
		if err != nil {
			return n, err
		}
		there, err := to.Get(ctx, name)
		if err == nil {
			if err := there.Close(); err != nil {
				return n, err
			}
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		if err := copyNamed(ctx, from, to, name); err != nil {
			return n, fmt.Errorf("a named snapshot: %w", err)
		}
		n++
	}
	return n, nil
}

// copyNamed copies the archive of a name before the name itself.
func copyNamed(ctx context.Context, from, to objects.Store, name string) error {
	reference, err := readObject(ctx, from, name)
	if err != nil {
		return err
	}
	archive, err := from.Get(ctx, named+Name(string(reference)))
	if err != nil {
		return err
	}
	err = to.Put(ctx, named+Name(string(reference)), archive)
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	return to.Put(ctx, name, bytes.NewReader(reference))
}

func readObject(ctx context.Context, store objects.Store, name string) ([]byte, error) {
	object, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(object)
	return data, errors.Join(err, object.Close())
}

// CheckNamed returns an error that wraps [ErrUnknown] if no snapshot has the name.
func CheckNamed(ctx context.Context, all objects.Store, name string) error {
	object, err := all.Get(ctx, nameObject(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err != nil {
		return err
	}
	return object.Close()
}

// LoadNamed replaces one of the directories of a named snapshot below base, as Load does, and empties the others. It returns an
// error that wraps [ErrUnknown] if there is no such snapshot.
func LoadNamed(ctx context.Context, all objects.Store, name, base string, dirs map[string]string, wanted string) error {
	reference, err := readObject(ctx, all, nameObject(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err != nil {
		return err
	}
	if err := Load(ctx, objects.Below(all, named), string(reference), base, dirs); err != nil {
		return err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, dir := range dirs {
		if name != wanted {
			err = errors.Join(err, Empty(root, dir))
		}
	}
	return err
}
