package natslog_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/logtest"
	"github.com/toold/toold/cluster/log/natslog"
	"github.com/toold/toold/cluster/natstest"
)

// BenchmarkAppend appends 1 KiB to three servers in this process, each of which
// syncs every write: one writer, and 64 with a workspace each on 32 streams.
func BenchmarkAppend(b *testing.B) {
	servers := natstest.StartCluster(b, 3)
	for _, c := range []struct{ replicas, writers, shards int }{{1, 1, 1}, {3, 1, 1}, {1, 64, 32}, {3, 64, 32}} {
		b.Run(fmt.Sprintf("R%d/writers=%d", c.replicas, c.writers), func(b *testing.B) {
			_, js := natstest.ConnectCluster(b, urls(servers)...)
			l := natslog.New(js, natslog.Config{Shards: c.shards, Replicas: c.replicas, Prefix: fmt.Sprintf("r%dx%d", c.replicas, c.shards)})
			writers := make([]*writer, c.writers)
			for i := range writers {
				writers[i] = &writer{log: l, w: log.Workspace{Principal: b.Name(), Name: fmt.Sprint(i)}}
				last, err := l.Last(b.Context(), writers[i].w)
				for err != nil { // the stream has no leader yet
					last, err = l.Last(b.Context(), writers[i].w)
				}
				writers[i].prev = last.Pos
				writers[i].append(b)
				writers[i].took = nil
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, w := range writers {
				wg.Go(func() {
					for range (b.N + c.writers - 1 - i) / c.writers {
						w.append(b)
					}
				})
			}
			wg.Wait()
			report(b, writers)
		})
	}
}

type writer struct {
	log  log.Log
	w    log.Workspace
	prev log.Pos
	took []time.Duration
}

var kilobyte = make([]byte, 1<<10)

func (w *writer) append(b *testing.B) {
	start := time.Now()
	pos, err := logtest.Append(b, w.log, w.w, w.prev, fmt.Appendf(nil, "%d %s", w.prev, kilobyte))
	if err != nil {
		b.Error(err)
	}
	w.prev, w.took = pos, append(w.took, time.Since(start))
}

func report(b *testing.B, writers []*writer) {
	var all []time.Duration
	for _, w := range writers {
		all = append(all, w.took...)
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "appends/s")
}
