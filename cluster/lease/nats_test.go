package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/natslog"
	"github.com/toold/toold/cluster/natstest"
)

func TestMain(m *testing.M) {
	if !natstest.Main() {
		os.Exit(m.Run())
	}
}

// startServers returns a cluster of three, and a connection to it.
func startServers(t *testing.T) ([]*natstest.Process, jetstream.JetStream) {
	t.Helper()
	servers := natstest.StartProcesses(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	_, js := natstest.ConnectCluster(t, urls...)
	return servers, js
}

// Owners append while each server of a cluster is killed and started again. All
// that was acknowledged is there, in order, once.
func TestServersAreKilled(t *testing.T) {
	servers, js := startServers(t)
	store := lease.Store{Log: natslog.New(js, natslog.Config{Shards: 2, Replicas: 3})}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[log.Workspace]int{}
	turn := make(chan log.Workspace) // one element for each acknowledged append
	for i := range 4 {
		w := log.Workspace{Principal: "p", Name: fmt.Sprint(i)}
		l := takeUntil(t, store, w, "n1")
		wg.Go(func() {
			for n := 0; ; n++ {
				if err := l.Append(ctx, fmt.Append(nil, n)); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(w, err)
					}
					return
				}
				mu.Lock()
				acknowledged[w] = n + 1
				mu.Unlock()
				select {
				case turn <- w:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	appends := func(n int) {
		for range n {
			<-turn
		}
	}
	appends(20)
	for _, s := range servers {
		s.Kill()
		appends(60)
		s.Start(t)
		appends(60)
	}
	stop()
	wg.Wait()
	for w, n := range acknowledged {
		holds(t, store, w, n, 1)
	}
}

// stream is the only one of the tests with one shard.
const stream = "toold-w-0"

// TestReplicaLosesItsEnd has a server lead whose files were damaged, which NATS takes for current: nothing is lost, whether the
// owner lives or not.
func TestReplicaLosesItsEnd(t *testing.T) {
	servers, js := startServers(t)
	var doubted atomic.Int32
	newStore := func() lease.Store {
		return lease.Store{Log: natslog.New(js, natslog.Config{Shards: 1, Replicas: 3, Doubted: func(error) { doubted.Add(1) }})}
	}
	store := newStore()
	w := log.Workspace{Principal: "p", Name: "w"}
	first := takeUntil(t, store, w, "n1")
	for n := range 100 {
		appendNext(t, first, n)
	}
	damaged := (natstest.Leader(t, js, stream) + 1) % 3
	damage(t, servers[damaged])
	natstest.Lead(t, js, stream, damaged)
	second := takeUntil(t, store, w, "n2") // n1 is dead
	holds(t, store, w, 100, 2)
	natstest.Lead(t, js, stream, damaged)
	appendNext(t, second, 100)
	for i := range servers {
		natstest.Lead(t, js, stream, i)
		holds(t, store, w, 101, 2)
	}
	if doubted.Load() != 2 {
		t.Errorf("a server was doubted %d times, not for its end and for the gap later", doubted.Load())
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lease.Restored(t.Context(), store, w); err != nil {
		t.Fatal(err)
	}
	doubted.Store(0)
	servers[damaged].Kill() // the gap is meant, and one server is away: neither keeps a command from reading
	if v := openUntil(t, newStore(), w); !v.Restored() || v.Diverged() == 0 || doubted.Load() != 0 {
		t.Errorf("restored %v, diverged at %d, %d servers were doubted", v.Restored(), v.Diverged(), doubted.Load())
	}
}

func appendNext(t *testing.T, l *lease.Lease, n int) {
	t.Helper()
	if err := l.Append(t.Context(), fmt.Append(nil, n)); err != nil {
		t.Fatal(err)
	}
}

// damage shuts a server down, cuts off the end of what it has of the stream, and starts it again.
func damage(t *testing.T, server *natstest.Process) {
	t.Helper()
	server.Stop(t)
	blocks, err := filepath.Glob(filepath.Join(server.Dir, "jetstream", "$G", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	info, err := os.Stat(blocks[0])
	if err == nil {
		err = os.Truncate(blocks[0], info.Size()*9/10)
	}
	if err != nil {
		t.Fatal(err)
	}
	server.Start(t)
}

// holds checks that a workspace has the payloads that are the numbers below n.
func holds(t *testing.T, s lease.Store, w log.Workspace, n int, epoch uint64) {
	t.Helper()
	v := openUntil(t, s, w)
	next := 0
	for p, err := range v.Payloads(t.Context()) {
		if err != nil || string(p.Data) != fmt.Sprint(next) {
			t.Fatalf("payload %d is %q: %v", next, p.Data, err)
		}
		next++
	}
	if next < n || v.Diverged() != 0 || v.Epoch() != epoch {
		t.Errorf("%d payloads of at least %d, diverged at %d, epoch %d", next, n, v.Diverged(), v.Epoch())
	}
}

// openUntil opens a workspace while the servers have no leader now and then.
func openUntil(t *testing.T, s lease.Store, w log.Workspace) *lease.View {
	for {
		v, err := lease.Open(t.Context(), s, w)
		if err == nil {
			return v
		}
		if !errors.Is(err, log.ErrUnknown) {
			t.Fatal(err)
		}
	}
}

func takeUntil(t *testing.T, s lease.Store, w log.Workspace, owner string) *lease.Lease {
	l, err := openUntil(t, s, w).Take(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
