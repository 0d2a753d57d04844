package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

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

// Owners append while each server of a cluster is killed and started again. All
// that was acknowledged is there, in order, once.
func TestServersAreKilled(t *testing.T) {
	servers := natstest.StartProcesses(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	_, js := natstest.ConnectCluster(t, urls...)
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
		v := openUntil(t, store, w)
		next := 0
		for p, err := range v.Payloads(t.Context()) {
			if err != nil || string(p.Data) != fmt.Sprint(next) {
				t.Fatalf("%v: payload %d is %q: %v", w, next, p.Data, err)
			}
			next++
		}
		if next < n || v.Diverged() != 0 || v.Epoch() != 1 {
			t.Errorf("%v: %d payloads of at least %d, diverged at %d, epoch %d", w, next, n, v.Diverged(), v.Epoch())
		}
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
