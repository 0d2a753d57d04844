package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/cluster/log"
)

// flaky answers each request only now and then, before or after it was done.
type flaky struct {
	log.Log
	n atomic.Int64
}

func (f *flaky) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	switch n := f.n.Add(1); {
	case n%4 == 1:
		return 0, log.ErrUnknown
	case n%4 == 3:
		_, _ = f.Log.Append(ctx, w, prev, data)
		return 0, log.ErrUnknown
	case n%8 == 2:
		return 0, log.ErrBusy
	}
	return f.Log.Append(ctx, w, prev, data)
}

func TestOutages(t *testing.T) {
	s, ctx := Store{Log: &flaky{Log: &log.Memory{}}}, t.Context()
	l := take(t, s, "n1")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { ok(t, l.Append(ctx, []byte("x"))) })
	}
	wg.Wait()
	if v := open(t, s); v.Count() != 10 || v.Diverged() != 0 || v.Epoch() != 1 {
		t.Errorf("%d payloads of 10, epoch %d, diverged at %d", v.Count(), v.Epoch(), v.Diverged())
	}
}

// down answers nothing, until it is up.
type down struct {
	log.Log
	up atomic.Bool
}

func (d *down) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	if d.up.Load() {
		return d.Log.Append(ctx, w, prev, data)
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

// What was under way when the caller gave up is stored before what it asks for
// next.
func TestCallerGivesUp(t *testing.T) {
	d := &down{Log: &log.Memory{}}
	d.up.Store(true)
	s := Store{Log: d}
	l := take(t, s, "n1")
	d.up.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- l.Append(ctx, []byte("a")) }()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d.up.Store(true)
	ok(t, l.Append(t.Context(), []byte("b")))
	if got := payloads(t, open(t, s)); got != "0:a 1:b " && got != "0:b " {
		t.Error(got)
	}
}

func TestLostAppendsArePutBack(t *testing.T) {
	memory := &log.Memory{}
	s, ctx := Store{Log: memory}, t.Context()
	l := take(t, s, "n1")
	for _, p := range []string{"a", "b", "c"} {
		ok(t, l.Append(ctx, []byte(p)))
	}
	memory.Lose(ws, 2)
	ok(t, l.Append(ctx, []byte("d")))
	if v := open(t, s); payloads(t, v) != "0:a 1:b 2:c 3:d " || v.Diverged() != 0 {
		t.Errorf("%s, diverged at %d", payloads(t, v), v.Diverged())
	}
	memory.Lose(ws, 100)
	ok(t, l.Verify(ctx))
	if v := open(t, s); payloads(t, v) != "0:a 1:b 2:c 3:d " || v.Epoch() != 1 {
		t.Errorf("after all was lost: %s", payloads(t, v))
	}
	ok(t, l.Base(ctx, []byte("abcd")))
	ok(t, l.Append(ctx, []byte("e")))
	memory.Lose(ws, 100)
	ok(t, l.Append(ctx, []byte("f")))
	if v := open(t, s); payloads(t, v) != "base 4:abcd 4:e 5:f " || v.Diverged() != 0 {
		t.Errorf("after all since the base was lost: %s", payloads(t, v))
	}
	if _, _, putBack := l.Held(); putBack != 2+5+2 {
		t.Errorf("put back: %d", putBack)
	}
}

// A replica that has lost nothing has what was put back twice, also if the owner died before it had put back all.
func TestPutBackIsReadOnce(t *testing.T) {
	memory := &log.Memory{}
	s, ctx := Store{Log: memory}, t.Context()
	l := take(t, s, "n1")
	ok(t, l.Base(ctx, []byte("base")))
	ok(t, l.Append(ctx, []byte("a")))
	ok(t, l.Append(ctx, []byte("b")))
	var all [][]byte
	for segment, err := range memory.Read(ctx, ws, 0) {
		ok(t, err)
		all = append(all, segment.Data)
	}
	for again := range len(all) + 1 {
		whole := Store{Log: &log.Memory{}}
		var end log.Pos
		for _, data := range slices.Concat(all, all[:again]) {
			var err error
			end, err = whole.Log.Append(ctx, ws, end, data)
			ok(t, err)
		}
		v := open(t, whole)
		if got := payloads(t, v); got != "base 0:base 0:a 1:b " || v.Diverged() != 0 || v.Position() != end {
			t.Errorf("%d of %d put back: %s, diverged at %d, the end is %d of %d", again, len(all), got, v.Diverged(), v.Position(), end)
		}
		_, err := v.Take(ctx, "n2")
		ok(t, err)
	}
}

// The log has lost a base and what follows, and ends with what the base was written behind.
func TestBaseIsPutBack(t *testing.T) {
	memory := &unpurged{}
	s, ctx := Store{Log: memory}, t.Context()
	l := take(t, s, "n1")
	ok(t, l.Append(ctx, []byte("a")))
	ok(t, l.Base(ctx, []byte("base")))
	ok(t, l.Append(ctx, []byte("b")))
	memory.Lose(ws, 2)
	ok(t, l.Append(ctx, []byte("c")))
	if v := open(t, s); payloads(t, v) != "base 1:base 1:b 2:c " || v.Diverged() != 0 {
		t.Errorf("%s, diverged at %d", payloads(t, v), v.Diverged())
	}
}

// unpurged keeps what is purged, as a server may that was away.
type unpurged struct{ log.Memory }

func (*unpurged) Purge(context.Context, log.Workspace, log.Pos) error { return nil }

// The successor does not know what the log has lost: the owner before does.
func TestFencedWithLoss(t *testing.T) {
	memory := &log.Memory{}
	s, ctx := Store{Log: memory}, t.Context()
	first := take(t, s, "n1")
	ok(t, first.Append(ctx, []byte("a")))
	memory.Lose(ws, 1)
	second := take(t, s, "n2")
	ok(t, second.Append(ctx, []byte("b")))
	fencedBy(t, first.Append(ctx, []byte("c")), "n2", 2, true)
	memory.Lose(ws, 2) // the takeover too
	third := take(t, s, "n3")
	fencedBy(t, second.Append(ctx, []byte("c")), "n3", 2, true)
	ok(t, third.Append(ctx))
}

func TestBrokenChainIsReported(t *testing.T) {
	s, ctx := store(), t.Context()
	l := take(t, s, "n1")
	ok(t, l.Append(ctx, []byte("a")))
	ok(t, l.Append(ctx, []byte("b")))
	holed := Store{Log: &log.Memory{}}
	end, n := log.Pos(0), 0
	for segment, err := range s.Log.Read(ctx, ws, 0) {
		ok(t, err)
		if n++; n == 2 {
			continue // a is missing
		}
		end, err = holed.Log.Append(ctx, ws, end, segment.Data)
		ok(t, err)
	}
	v := open(t, holed)
	if v.Diverged() == 0 || payloads(t, v) != "1:b " {
		t.Errorf("diverged at %d, payloads %s", v.Diverged(), payloads(t, v))
	}
	_, err := v.Take(ctx, "n2")
	ok(t, err)
	if v := open(t, holed); v.Diverged() != 0 {
		t.Error("a new owner does not end the divergence")
	}
}
