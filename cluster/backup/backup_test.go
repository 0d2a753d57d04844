package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
)

var w = log.Workspace{Principal: "token:anna", Name: "project"}

func newPlace(t *testing.T) Place {
	t.Helper()
	return Place{Log: &log.Memory{}, Objects: objects.Dir(t.TempDir())}
}

func (p Place) store() lease.Store {
	return lease.Store{Log: p.Log, Blobs: payloads(objects.Below(p.Objects, w.ID()+"/"))}
}

var large = bytes.Repeat([]byte("large"), 200_000)

// fill makes a workspace with a snapshot, and payloads before and after it, one of which is too large for the log.
func fill(t *testing.T, p Place) *lease.Lease {
	t.Helper()
	view, err := lease.Open(t.Context(), p.store(), w)
	if err != nil {
		t.Fatal(err)
	}
	l, err := view.Take(t.Context(), "a")
	if err == nil {
		err = errors.Join(l.Append(t.Context(), []byte("one")), p.put(t, "first"), l.Snapshot(t.Context(), "first"), l.Append(t.Context(), large))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (p Place) put(t *testing.T, reference string) error {
	return objects.Below(p.Objects, w.ID()+"/").Put(t.Context(), snapshot.Name(reference), strings.NewReader("files of "+reference))
}

// TestCopy: a copy, and the copy of the copy, have the payloads and the files.
func TestCopy(t *testing.T) {
	cluster, kept, again := newPlace(t), newPlace(t), newPlace(t)
	l := fill(t, cluster)
	for range 2 { // the second one finds everything done
		if err := Copy(t.Context(), w, cluster, kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(t.Context(), []byte("after the backup")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Restore(t.Context(), w, kept, again); err != nil {
			t.Fatal(err)
		}
	}
	view, err := lease.Open(t.Context(), again.store(), w)
	if err != nil {
		t.Fatal(err)
	}
	if view.Count() != 2 || !view.Restored() || !view.Released() || view.Diverged() == 0 {
		t.Errorf("%d payloads, restored %v, released %v, diverged at %d", view.Count(), view.Restored(), view.Released(), view.Diverged())
	}
	var got [][]byte
	for payload, err := range view.Payloads(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, payload.Data)
	}
	if len(got) != 2 || string(got[0]) != "one" || !bytes.Equal(got[1], large) {
		t.Errorf("%d payloads", len(got))
	}
	saved, _ := view.Snapshot()
	r, err := objects.Below(again.Objects, w.ID()+"/").Get(t.Context(), snapshot.Name(saved.Reference))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); string(text) != "files of first" || err != nil {
		t.Errorf("the files are %q, %v", text, err)
	}
}

// TestCopyExists: a workspace of the same name that goes on elsewhere is not touched.
func TestCopyExists(t *testing.T) {
	cluster, kept, other := newPlace(t), newPlace(t), newPlace(t)
	fill(t, cluster)
	fill(t, other)
	if err := Copy(t.Context(), w, cluster, kept); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), w, kept, other); !errors.Is(err, ErrExists) {
		t.Errorf("the error is %v", err)
	}
	if err := Restore(t.Context(), w, kept, cluster); !errors.Is(err, ErrExists) { // where the backup is from
		t.Errorf("the error is %v", err)
	}
	if view, err := lease.Open(t.Context(), other.store(), w); err != nil || view.Restored() || view.Owner() != "a" {
		t.Errorf("the owner is %q, %v", view.Owner(), err)
	}
}

// TestRestoreBrokenOff: what a restore has left undone is done by the next one.
func TestRestoreBrokenOff(t *testing.T) {
	cluster, kept, again := newPlace(t), newPlace(t), newPlace(t)
	fill(t, cluster)
	if err := Copy(t.Context(), w, cluster, kept); err != nil {
		t.Fatal(err)
	}
	broken := again
	broken.Log = &brokenLog{Log: again.Log, left: 2}
	if err := Restore(t.Context(), w, kept, broken); err == nil {
		t.Error("it did not break off")
	}
	if err := Restore(t.Context(), w, kept, again); err != nil {
		t.Fatal(err)
	}
	if view, err := lease.Open(t.Context(), again.store(), w); err != nil || !view.Restored() || view.Count() != 2 {
		t.Errorf("%d payloads, %v", view.Count(), err)
	}
}

// TestRestoreOfADeleted: a workspace that was deleted where the backup is from is not brought back unasked. Once its name is free it is,
// with the numbers of before, also if the first restore breaks off.
func TestRestoreOfADeleted(t *testing.T) {
	cluster, kept := newPlace(t), newPlace(t)
	l := fill(t, cluster)
	if err := errors.Join(l.Append(t.Context(), []byte("three")), Copy(t.Context(), w, cluster, kept)); err != nil {
		t.Fatal(err)
	}
	own := objects.Below(cluster.Objects, w.ID()+"/")
	err := lease.Delete(t.Context(), cluster.store(), w)
	for name, failed := range own.List(t.Context(), "") {
		err = errors.Join(err, failed, own.Delete(t.Context(), name))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), w, kept, cluster); !errors.Is(err, ErrDeleted) {
		t.Errorf("the error is %v", err)
	}
	if err := lease.Renew(t.Context(), cluster.store(), w); err != nil {
		t.Fatal(err)
	}
	broken := cluster
	limited, cancel := context.WithCancel(t.Context()) // a lease waits for its log
	defer cancel()
	broken.Log = &brokenLog{Log: cluster.Log, left: 3, then: cancel}
	if err := Restore(limited, w, kept, broken); err == nil {
		t.Error("it did not break off")
	}
	if view, err := lease.Open(t.Context(), cluster.store(), w); err != nil || !view.Deleted() {
		t.Errorf("a node may take over what was restored in part: %q, %v", view.Owner(), err)
	}
	if err := Restore(t.Context(), w, kept, cluster); err != nil {
		t.Fatal(err)
	}
	view, err := lease.Open(t.Context(), cluster.store(), w)
	if err != nil || !view.Restored() || view.Count() != 3 || view.Diverged() == 0 {
		t.Fatalf("%d payloads, restored %v, diverged at %d, %v", view.Count(), view.Restored(), view.Diverged(), err)
	}
	if saved, is := view.Snapshot(); !is || saved != (lease.Snapshot{Reference: "first", Payloads: 1}) {
		t.Errorf("the snapshot is %+v", saved)
	}
	var got [][]byte
	for payload, err := range view.Payloads(t.Context()) {
		if err != nil || payload.Index != uint64(len(got)) || payload.Base {
			t.Fatalf("%+v, %v", payload.Index, err)
		}
		got = append(got, payload.Data)
	}
	if len(got) != 3 || string(got[0]) != "one" || !bytes.Equal(got[1], large) || string(got[2]) != "three" {
		t.Errorf("%d payloads", len(got))
	}
	if err := Restore(t.Context(), w, kept, cluster); err != nil { // which finds everything done
		t.Error(err)
	}
}

// TestRestoreOfAUsed: a workspace that a node begins after Restore has looked is left to the node, wherever Restore is by then.
func TestRestoreOfAUsed(t *testing.T) {
	for first := range 3 { // the mark, then each object
		cluster, kept := newPlace(t), newPlace(t)
		fill(t, cluster)
		err := errors.Join(Copy(t.Context(), w, cluster, kept), lease.Delete(t.Context(), cluster.store(), w), lease.Renew(t.Context(), cluster.store(), w))
		if err != nil {
			t.Fatal(err)
		}
		var node *lease.Lease
		watched := cluster
		watched.Objects = &watchedStore{cluster.Objects, first, func() {
			view, err := lease.Open(t.Context(), cluster.store(), w)
			if err == nil && view.Deleted() {
				return // as a node does
			}
			if err == nil {
				node, err = view.Take(t.Context(), "b")
			}
			if err = errors.Join(err, node.Append(t.Context(), []byte("new"))); err != nil {
				t.Error(err)
			}
		}}
		err = Restore(t.Context(), w, kept, watched)
		if node == nil && err != nil || node != nil && (!errors.Is(err, ErrExists) || node.Append(t.Context(), []byte("more")) != nil) {
			t.Errorf("before object %d the node has taken %v, and the error is %v", first, node != nil, err)
		}
		if (first == 0) != (node != nil) {
			t.Errorf("before object %d the node has taken %v", first, node != nil)
		}
	}
}

// A watchedStore calls something before it stores an object for that time.
type watchedStore struct {
	objects.Store
	left int
	then func()
}

func (s *watchedStore) Put(ctx context.Context, name string, r io.Reader) error {
	if s.left--; s.left == -1 {
		s.then()
	}
	return s.Store.Put(ctx, name, r)
}

// TestRestoreOfADeletion: a backup of a workspace that had been deleted brings back the deletion, and nothing else.
func TestRestoreOfADeletion(t *testing.T) {
	cluster, kept, fresh := newPlace(t), newPlace(t), newPlace(t)
	fill(t, cluster)
	if err := errors.Join(lease.Delete(t.Context(), cluster.store(), w), Copy(t.Context(), w, cluster, kept)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []Place{cluster, fresh} {
		if err := Restore(t.Context(), w, kept, to); err != nil {
			t.Errorf("the error is %v", err)
		}
		if view, err := lease.Open(t.Context(), to.store(), w); err != nil || !view.Deleted() {
			t.Errorf("it is not deleted any more (%v)", err)
		}
	}
	if err := lease.Renew(t.Context(), cluster.store(), w); err != nil {
		t.Fatal(err)
	}
	err := Restore(t.Context(), w, kept, cluster)
	if view, failed := lease.Open(t.Context(), cluster.store(), w); err != nil || failed != nil || !view.IsNew() {
		t.Errorf("a name that is free again is taken (%v, %v)", err, failed)
	}
}

// TestCopyElsewhere: a log whose copies differ is read until one has everything.
func TestCopyElsewhere(t *testing.T) {
	cluster, kept := newPlace(t), newPlace(t)
	fill(t, cluster)
	elsewhere := &elsewhereLog{Log: cluster.Log, left: tries + 1}
	if err := Copy(t.Context(), w, Place{Log: elsewhere, Objects: cluster.Objects}, kept); err != nil {
		t.Fatal(err)
	}
	if view, err := lease.Open(t.Context(), kept.store(), w); err != nil || view.Count() != 2 || elsewhere.left != 0 {
		t.Errorf("%d payloads, %v, %d copies were not read", view.Count(), err, elsewhere.left)
	}
}

// An elsewhereLog is to be read from another copy so many times.
type elsewhereLog struct {
	log.Log
	left int
}

func (e *elsewhereLog) Read(ctx context.Context, w log.Workspace, from log.Pos) iter.Seq2[log.Segment, error] {
	if e.left == 0 {
		return e.Log.Read(ctx, w, from)
	}
	e.left--
	return func(yield func(log.Segment, error) bool) { yield(log.Segment{}, log.ErrElsewhere) }
}

// A brokenLog takes only so many segments, and calls then with the first one that it refuses.
type brokenLog struct {
	log.Log
	left int
	then func() // nil: nothing is called
}

func (b *brokenLog) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	if b.left--; b.left < 0 {
		if b.then != nil {
			b.then()
		}
		return 0, errors.New("the log is broken")
	}
	return b.Log.Append(ctx, w, prev, data)
}

// TestCopyWithoutAnObject: what the log names and the store does not have is an error, and no log is written.
func TestCopyWithoutAnObject(t *testing.T) {
	cluster, kept := newPlace(t), newPlace(t)
	l := fill(t, cluster)
	if err := l.Snapshot(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if err := Copy(t.Context(), w, cluster, kept); err == nil || !strings.Contains(err.Error(), "snapshot") {
		t.Errorf("the error is %v", err)
	}
	if last, err := kept.Log.Last(t.Context(), w); err != nil || last.Pos != 0 {
		t.Errorf("the copy ends at %d, %v", last.Pos, err)
	}
}
