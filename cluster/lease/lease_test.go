package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"google.golang.org/protobuf/proto"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

var ws = log.Workspace{Principal: "ann", Name: "site.v2/ü"}

func store() Store { return Store{Log: &log.Memory{}, Blobs: &MemoryBlobs{}} }

func open(t testing.TB, s Store) *View {
	t.Helper()
	v, err := Open(t.Context(), s, ws)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func take(t testing.TB, s Store, owner string) *Lease {
	t.Helper()
	l, err := open(t, s).Take(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func payloads(t testing.TB, v *View) string {
	t.Helper()
	var text bytes.Buffer
	for p, err := range v.Payloads(t.Context()) {
		ok(t, err)
		if p.Base {
			text.WriteString("base ")
		}
		fmt.Fprintf(&text, "%d:%.8s ", p.Index, p.Data)
	}
	return text.String()
}

// fencedBy fails the test unless err is a *Fenced by this owner.
func fencedBy(t testing.TB, err error, owner string, epoch uint64, diverged bool) {
	t.Helper()
	fenced, isFenced := errors.AsType[*Fenced](err)
	if !isFenced || *fenced != (Fenced{Owner: owner, Epoch: epoch, Diverged: diverged}) {
		t.Errorf("got %v, expected to be fenced by %s in epoch %d, diverged %v", err, owner, epoch, diverged)
	}
}

func TestTakeAppendTake(t *testing.T) {
	s, ctx := store(), t.Context()
	if v := open(t, s); v.Epoch() != 0 || v.Owner() != "" || v.Position() != 0 {
		t.Errorf("a workspace that nobody had: %+v", v.reader)
	}
	first := take(t, s, "n1")
	ok(t, first.Append(ctx, []byte("a"), []byte("b")))
	ok(t, first.Append(ctx, nil))
	ok(t, first.Append(ctx))
	v := open(t, s)
	if v.Epoch() != 1 || v.Owner() != "n1" || v.Released() || v.Count() != 3 || payloads(t, v) != "0:a 1:b 2: " {
		t.Errorf("got epoch %d of %q, %d payloads %s", v.Epoch(), v.Owner(), v.Count(), payloads(t, v))
	}
	second, err := v.Take(ctx, "n2")
	ok(t, err)
	fencedBy(t, first.Append(ctx, []byte("late")), "n2", 2, false)
	fencedBy(t, first.Base(ctx), "n2", 2, false)
	fencedBy(t, first.Verify(ctx), "n2", 2, false)
	fencedBy(t, first.Release(ctx), "n2", 2, false)
	ok(t, second.Append(ctx, []byte("c")))
	ok(t, second.Release(ctx))
	ok(t, second.Release(ctx))
	if err := second.Append(ctx, []byte("d")); !errors.Is(err, ErrReleased) {
		t.Errorf("after release: %v", err)
	}
	if v := open(t, s); !v.Released() || v.Owner() != "n2" || payloads(t, v) != "0:a 1:b 2: 3:c " || v.Diverged() != 0 {
		t.Errorf("released %v by %q: %s", v.Released(), v.Owner(), payloads(t, v))
	}
	if take(t, s, "n1").Epoch() != 3 || open(t, s).Released() {
		t.Error("a workspace that was released is not taken again")
	}
}

func TestTakeOfAnOutdatedView(t *testing.T) {
	s, ctx := store(), t.Context()
	first := take(t, s, "n1")
	v, other := open(t, s), open(t, s)
	ok(t, first.Append(ctx, []byte("a")))
	_, err := v.Take(ctx, "n2")
	fencedBy(t, err, "n1", 1, false)
	ok(t, first.Append(ctx, []byte("b"))) // goes on
	_ = take(t, s, "n3")
	_, err = other.Take(ctx, "n2")
	fencedBy(t, err, "n3", 2, false)
}

// A node that has died and its next life have the same name, and know the same:
// only one of them gets the workspace.
func TestTakeTwiceByTheSameName(t *testing.T) {
	s := store()
	before, after := open(t, s), open(t, s)
	_, err := before.Take(t.Context(), "n1")
	ok(t, err)
	_, err = after.Take(t.Context(), "n1")
	fencedBy(t, err, "n1", 1, false)
}

func TestBase(t *testing.T) {
	s, ctx := store(), t.Context()
	l := take(t, s, "n1")
	ok(t, l.Append(ctx, []byte("a"), []byte("b")))
	ok(t, l.Snapshot(ctx, "snap-1"))
	ok(t, l.Append(ctx, []byte("c")))
	ok(t, l.Base(ctx, []byte("abc"), []byte("of two")))
	ok(t, l.Append(ctx, []byte("d")))
	if segments, size, putBack := l.Held(); segments != 2 || size == 0 || putBack != 0 {
		t.Errorf("held: %d segments, %d bytes", segments, size)
	}
	v := open(t, s)
	snapshot, there := v.Snapshot()
	if got := payloads(t, v); got != "base 3:abc base 3:of two 3:d " || snapshot != (Snapshot{"snap-1", 2}) || !there || v.Count() != 4 {
		t.Errorf("got %q, snapshot %v", got, snapshot)
	}
	n := 0
	for range s.Log.Read(ctx, ws, 0) {
		n++
	}
	if n != 2 {
		t.Errorf("the log has %d segments after a base and one append", n)
	}
	next := take(t, s, "n2")
	ok(t, next.Base(ctx))
	if v := open(t, s); payloads(t, v) != "" || v.Count() != 4 || v.Epoch() != 2 || v.Owner() != "n2" || v.Diverged() != 0 {
		t.Errorf("after an empty base: %q, %+v", payloads(t, v), v.reader)
	}
}

func TestLargePayloads(t *testing.T) {
	s, ctx := store(), t.Context()
	l := take(t, s, "n1")
	huge, half := bytes.Repeat([]byte("h"), 3<<20), bytes.Repeat([]byte("m"), 300<<10)
	ok(t, l.Append(ctx, half, half, huge, half, []byte("end")))
	if got := payloads(t, open(t, s)); got != "0:mmmmmmmm 1:mmmmmmmm 2:hhhhhhhh 3:mmmmmmmm 4:end " {
		t.Error(got)
	}
	for p, err := range open(t, s).Payloads(ctx) {
		ok(t, err)
		if p.Index == 2 && !bytes.Equal(p.Data, huge) {
			t.Error("the large payload came back with other bytes")
		}
	}
	ok(t, l.Base(ctx, half, half, half))
	if got := payloads(t, open(t, s)); got != "base 5:mmmmmmmm base 5:mmmmmmmm base 5:mmmmmmmm " {
		t.Error(got)
	}
	s.Blobs = nil
	if err := take(t, s, "n2").Append(ctx, huge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("without an object store: %v", err)
	}
}

// TestOutdatedBlobs: a base removes the blobs that nothing names any more, also those of earlier owners, but not while the log
// has what names them, and not where another owner has taken over.
func TestOutdatedBlobs(t *testing.T) {
	blobs := &MemoryBlobs{}
	purges := &failingPurge{Log: &log.Memory{}}
	s, ctx := Store{Log: purges, Blobs: blobs}, t.Context()
	huge := func(b string) []byte { return bytes.Repeat([]byte(b), inlineBytes+1) }
	has := func(want int, when string) {
		t.Helper()
		if got := blobs.Len(); got != want {
			t.Errorf("%s: there are %d blobs, want %d", when, got, want)
		}
	}
	l := take(t, s, "n1")
	ok(t, l.Append(ctx, huge("a"), huge("b")))
	l = take(t, s, "n2")
	ok(t, l.Append(ctx, huge("c")))
	purges.fail = true
	ok(t, l.Base(ctx, huge("b"), huge("d")))
	has(4, "the log was not cut")
	purges.fail = false
	ok(t, l.Base(ctx, huge("b"), huge("d")))
	has(2, "after the base")
	if got := payloads(t, open(t, s)); got != "base 3:bbbbbbbb base 3:dddddddd " {
		t.Error(got)
	}
	_ = take(t, s, "n3")
	if err := l.Base(ctx); err == nil {
		t.Error("a base was stored by an owner that was replaced")
	}
	has(2, "replaced")
}

type failingPurge struct {
	log.Log
	fail bool
}

func (f *failingPurge) Purge(ctx context.Context, w log.Workspace, before log.Pos) error {
	if f.fail {
		return log.ErrUnknown
	}
	return f.Log.Purge(ctx, w, before)
}

func TestNamesAreCompared(t *testing.T) {
	s := store()
	_ = take(t, s, "n1")
	for other, expected := range map[log.Workspace]error{
		{Principal: "", Name: "x"}: log.ErrInvalid, {Principal: "a\xff", Name: "x"}: log.ErrInvalid,
	} {
		if _, err := Open(t.Context(), s, other); !errors.Is(err, expected) {
			t.Errorf("%q: %v", other, err)
		}
	}
	collision := Store{Log: oneLog{s.Log}}
	if _, err := Open(t.Context(), collision, log.Workspace{Principal: "ann", Name: "other"}); !errors.Is(err, ErrCollision) {
		t.Errorf("another workspace's log: %v", err)
	}
}

// oneLog is a log in which all workspaces have the same subject.
type oneLog struct{ log.Log }

func (l oneLog) Read(ctx context.Context, _ log.Workspace, from log.Pos) iter.Seq2[log.Segment, error] {
	return l.Log.Read(ctx, ws, from)
}

func TestUnknownFormat(t *testing.T) {
	s, ctx := store(), t.Context()
	_ = take(t, s, "n1")
	last, err := s.Log.Last(ctx, ws)
	ok(t, err)
	newer, err := proto.Marshal(&clusterv1.Segment{Format: 2, Epoch: 2, Owner: "n2"})
	ok(t, err)
	for _, data := range [][]byte{newer, []byte("no segment")} {
		_, err = s.Log.Append(ctx, ws, last.Pos, data)
		ok(t, err)
		if _, err := Open(ctx, s, ws); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", data, err)
		}
		s.Log.(*log.Memory).Lose(ws, 1)
	}
}

// What a lease adds to its log, for a payload of 1 KiB.
func BenchmarkAppend(b *testing.B) {
	l := take(b, store(), "n1")
	data := make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		ok(b, l.Append(b.Context(), data))
		if segments, _, _ := l.Held(); segments > 1000 {
			ok(b, l.Base(b.Context(), data))
		}
	}
}
