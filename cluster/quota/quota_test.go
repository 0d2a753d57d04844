package quota

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/natstest"
)

func open(t *testing.T, js jetstream.JetStream, node string, limits Amounts) *Accounts {
	t.Helper()
	a, err := Open(t.Context(), js, 1, node, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func session(t *testing.T, a *Accounts, name string) *Session {
	t.Helper()
	s, err := a.Session(t.Context(), "ann", name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func refused(t *testing.T, a *Accounts, name string) {
	t.Helper()
	_, err := a.Session(t.Context(), "ann", name)
	if exceeded, is := errors.AsType[*Exceeded](err); !is || exceeded.What != "sessions" {
		t.Errorf("%s takes the session %q: %v", a.node, name, err)
	}
}

// TestSessions: sessions of a principal count once in the whole cluster, with or without a name at first.
func TestSessions(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	a, b := open(t, js, "a", Amounts{Sessions: 2}), open(t, js, "b", Amounts{Sessions: 2})
	one := session(t, a, "one")
	unnamed := session(t, b, "")
	refused(t, a, "three")
	refused(t, b, "")
	_ = session(t, a, "one") // another stream of the same session
	unnamed.Name("two")
	back := session(t, b, "two") // comes back, and the stream of before is not noticed to be gone yet
	unnamed.Release()
	refused(t, a, "three")
	back.Release()
	back.Release()
	b.renew(t.Context(), false)
	three := session(t, a, "three")
	if _, err := b.Session(t.Context(), "bob", ""); err != nil {
		t.Errorf("another principal: %v", err)
	}
	one.Release()
	three.Release()
	a.renew(t.Context(), false)
	refusedTwice := session(t, b, "")
	refusedTwice.Name("x")
	refused(t, b, "y") // of "one" a stream is still attached
	if held, _, err := Use(t.Context(), js, 1, "ann"); err != nil || held.Sessions != 2 {
		t.Errorf("%+v are held, %v", held, err)
	}
}

// TestUnnamedIsOneThatIsKnown: two streams that turn out to be of one session count once.
func TestUnnamedIsOneThatIsKnown(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	a := open(t, js, "a", Amounts{Sessions: 2})
	_ = session(t, a, "one")
	same := session(t, a, "")
	refused(t, a, "two")
	same.Name("one")
	_ = session(t, a, "two")
	refused(t, a, "three")
}

// TestCalls: what is free is taken, and then nothing; limits of a principal go before those of nodes.
func TestCalls(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	a, b := open(t, js, "a", Amounts{Calls: 10}), open(t, js, "b", Amounts{Calls: 10})
	take := func(a *Accounts, most, want int) func() {
		t.Helper()
		n, release, err := a.Calls(t.Context(), "ann", most)
		if n != want || (want == 0) != (err != nil) {
			t.Errorf("%d of %d calls are taken, %v; want %d", n, most, err, want)
		}
		return release
	}
	first := take(a, 8, 8)
	_ = take(b, 8, 2)
	_ = take(b, 1, 0)
	if err := SetLimits(t.Context(), js, 1, "ann", Limits{Calls: new(11)}); err != nil {
		t.Fatal(err)
	}
	_ = take(b, 8, 1)
	first()
	first()
	a.renew(t.Context(), false)
	_ = take(b, 80, 8)
	if _, limits, err := Use(t.Context(), js, 1, "ann"); err != nil || limits.Calls == nil || *limits.Calls != 11 || limits.Sessions != nil {
		t.Errorf("the limits are %v, %v", limits, err)
	}
}

// TestLimitsOfOne: only what is named is changed, and a negative limit, under which nothing could begin, is refused.
func TestLimitsOfOne(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	a := open(t, js, "a", Amounts{Sessions: 1, Calls: 2})
	set := func(limits Limits) {
		t.Helper()
		if err := SetLimits(t.Context(), js, 1, "ann", limits); err != nil {
			t.Fatal(err)
		}
	}
	set(Limits{Sessions: new(0)})
	for _, name := range []string{"one", "two", "three"} {
		_ = session(t, a, name)
	}
	if n, _, err := a.Calls(t.Context(), "ann", 5); n != 2 || err != nil {
		t.Errorf("%d calls, %v; want the nodes' limit", n, err)
	}
	for _, wrong := range []Limits{{Sessions: new(-3)}, {Sessions: new(5), Calls: new(-1)}} {
		if err := SetLimits(t.Context(), js, 1, "ann", wrong); err == nil || !strings.Contains(err.Error(), "is not possible") {
			t.Errorf("the error is %v", err)
		}
	}
	set(Limits{Calls: new(3)})
	if n, _, err := a.Calls(t.Context(), "ann", 5); n != 1 || err != nil {
		t.Errorf("%d more calls, %v; want 1 of 3", n, err)
	}
	if _, limits, err := Use(t.Context(), js, 1, "ann"); err != nil || limits.Sessions == nil || *limits.Sessions != 0 || *limits.Calls != 3 {
		t.Errorf("the limits are %v, %v", limits, err)
	}
	if err := ResetLimits(t.Context(), js, 1, "ann"); err != nil {
		t.Fatal(err)
	}
	refused(t, a, "four")
}

// TestLostNode: what a node holds is free when it has not renewed it for long, and not before.
func TestLostNode(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	gone, a := open(t, js, "gone", Amounts{Sessions: 1}), open(t, js, "a", Amounts{Sessions: 1})
	_ = session(t, gone, "one")
	gone.end() // it renews nothing any more
	gone.loop.Wait()
	a.end() // which reads the time
	a.loop.Wait()
	begun := time.Now()
	a.now = func() time.Time { return begun.Add(lost - time.Second) }
	refused(t, a, "two")
	a.Alive = func(node string) bool { return node != "gone" }
	session(t, a, "at once").Release()
	a.Alive = nil
	a.now = func() time.Time { return begun.Add(lost + time.Minute) }
	_ = session(t, a, "two")
}

// TestAccountsEnd: an account that holds nothing and has no limits is removed, and may begin again. What is flushed is free at once.
func TestAccountsEnd(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	a, b := open(t, js, "a", Amounts{Sessions: 1}), open(t, js, "b", Amounts{Sessions: 1})
	for range 2 {
		one := session(t, a, "one")
		refused(t, b, "two")
		one.Release()
		a.Flush(t.Context(), "ann")
		if _, err := a.bucket.Get(t.Context(), keyOf("ann")); !errors.Is(err, jetstream.ErrKeyNotFound) {
			t.Errorf("the account of nothing: %v", err)
		}
	}
	_ = session(t, b, "two")
	if err := SetLimits(t.Context(), js, 1, "bob", Limits{Sessions: new(3)}); err != nil {
		t.Fatal(err)
	}
	a.Flush(t.Context(), "bob")
	if _, limits, err := Use(t.Context(), js, 1, "bob"); err != nil || limits.Sessions == nil {
		t.Errorf("the limits of a principal that holds nothing: %v, %v", limits, err)
	}
}

// A deafBucket answers no read until it is told to fail.
type deafBucket struct {
	jetstream.KeyValue
	asked atomic.Int32
	fail  chan struct{}
}

func (d *deafBucket) Get(ctx context.Context, _ string) (jetstream.KeyValueEntry, error) {
	d.asked.Add(1)
	select {
	case <-d.fail:
		return nil, errors.New("no answer")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOutage: requests of a principal that come while another of its requests waits for the bucket share that one's failure. A later one
// asks again.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := &deafBucket{fail: make(chan struct{})}
		a := &Accounts{bucket: bucket, now: time.Now, dirty: make(chan struct{}, 1), principals: map[string]*principal{}}
		var all sync.WaitGroup
		var failed atomic.Int32
		ask := func() {
			if _, err := a.Session(t.Context(), "ann", ""); err != nil {
				failed.Add(1)
			}
		}
		for range 3 {
			all.Go(ask)
			all.Go(func() {
				if _, _, err := a.Calls(t.Context(), "ann", 1); err != nil {
					failed.Add(1)
				}
			})
		}
		synctest.Wait()
		close(bucket.fail)
		all.Wait()
		if failed.Load() != 6 || bucket.asked.Load() != 1 {
			t.Errorf("%d of 6 requests have failed, and the bucket was asked %d times", failed.Load(), bucket.asked.Load())
		}
		ask()
		if bucket.asked.Load() != 2 {
			t.Error("a request after the failure did not ask")
		}

		// Whose client has gone fails alone.
		bucket.fail = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() { _, _ = a.Session(ctx, "ann", "") })
		synctest.Wait()
		all.Go(ask)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if bucket.asked.Load() != 4 {
			t.Errorf("the bucket was asked %d times, want 4: a request has shared the end of another's client", bucket.asked.Load())
		}
		close(bucket.fail)
		all.Wait()
	})
}

// TestNodesAtOnce: nodes that ask at the same time take no more together than there is.
func TestNodesAtOnce(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	var all sync.WaitGroup
	var taken atomic.Int32
	for _, node := range []string{"a", "b", "c"} {
		a := open(t, js, node, Amounts{Sessions: 7})
		for range 5 {
			all.Go(func() {
				if _, err := a.Session(t.Context(), "ann", ""); err == nil {
					taken.Add(1)
				}
			})
		}
	}
	all.Wait()
	if taken.Load() != 7 {
		t.Errorf("%d sessions were taken, and there may be 7", taken.Load())
	}
}
