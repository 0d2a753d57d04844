package journal_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toold/toold/daemon/journal"
)

func entry(call string, durability journal.Durability) journal.Entry {
	return journal.Entry{Kind: 3, Call: call, Turn: 4, Body: make([]byte, 300), Durability: durability}
}

// BenchmarkAppend has so many writers in so many logs; each waits for its
// record before it goes on. The goal is that synced/writers=64 makes at least 8
// times the records of synced/writers=1.
func BenchmarkAppend(b *testing.B) {
	for _, d := range []struct {
		name       string
		durability journal.Durability
	}{{"committed", journal.Committed}, {"synced", journal.Synced}} {
		for _, c := range []struct{ writers, logs int }{{1, 1}, {64, 1}, {64, 64}, {100, 1}, {100, 100}} {
			b.Run(fmt.Sprintf("%s/writers=%d/logs=%d", d.name, c.writers, c.logs), func(b *testing.B) {
				s := open(b, b.TempDir())
				logs := make([]*journal.Log, c.logs)
				for i := range logs {
					logs[i] = create(b, s, fmt.Sprint(i))
				}
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for w := range c.writers {
					wg.Go(func() {
						for n := w; n < b.N; n += c.writers {
							if _, err := logs[w%c.logs].Append(entry(fmt.Sprint("toolu_", n/3), d.durability)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// BenchmarkOneLog is a session with so many records on their way, and a reader
// that follows.
func BenchmarkOneLog(b *testing.B) {
	for _, inFlight := range []int{1, 192} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			l := create(b, open(b, b.TempDir()), "a")
			c := l.Follow(0)
			defer c.Close()
			b.ReportAllocs()
			b.ResetTimer()
			for sent, read := 0, 0; read < b.N; {
				for ; sent < b.N && sent-read < inFlight; sent++ {
					l.Enqueue(entry(fmt.Sprint("toolu_", sent/3), journal.Committed))
				}
				records, err := c.Next()
				if err != nil {
					b.Fatal(err)
				}
				if read += len(records); len(records) == 0 {
					<-c.Wake()
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func fill(b *testing.B, records int) *journal.Log {
	b.Helper()
	l := create(b, open(b, b.TempDir()), "a")
	var last *journal.Pending
	for n := range records {
		last = l.Enqueue(entry(fmt.Sprint("toolu_", n/3), journal.Committed))
	}
	if _, err := last.Wait(); err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkReplay reads 30,000 records (10,000 calls) from the database; the
// figure is per record.
func BenchmarkReplay(b *testing.B) {
	const records = 30000
	l := fill(b, records)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		c := l.Follow(0)
		for {
			got, err := c.Next()
			if err != nil {
				b.Fatal(err)
			}
			if n += len(got); len(got) == 0 {
				break
			}
		}
		c.Close()
	}
}

// BenchmarkReadTail is a reader that has caught up: 200 records at a time, from
// memory; another one that does not read keeps them there.
func BenchmarkReadTail(b *testing.B) {
	const batch = 200
	l := create(b, open(b, b.TempDir()), "a")
	keeper := l.Follow(0)
	defer keeper.Close()
	entries := make([]journal.Entry, batch)
	for i := range entries {
		entries[i] = entry("", journal.Committed)
	}
	if _, err := l.Append(entries...); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := l.Follow(0)
		got, err := c.Next()
		if err != nil || len(got) != batch {
			b.Fatal(len(got), err)
		}
		c.Close()
	}
}

// BenchmarkFind looks for a call with three records, and for one that was
// never there, in a log of 10,000 calls.
func BenchmarkFind(b *testing.B) {
	l := fill(b, 30000)
	for name, call := range map[string]string{"there": "toolu_5000", "never": "toolu_new"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Find(call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// appendAll has so many writers append durably to the logs in turn, n entries
// altogether, and gives the time that it took.
func appendAll(b *testing.B, logs []*journal.Log, writers, n int) time.Duration {
	b.Helper()
	since := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				if _, err := logs[w%len(logs)].Append(entry(fmt.Sprint("toolu_", i/3), journal.Synced)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(since)
}

// BenchmarkGroupCommit measures one writer that waits for each sync and a
// hundred that share them, by turns in one run. Their ratio should be 8 at
// least, on a disk: run it with TMPDIR on one.
func BenchmarkGroupCommit(b *testing.B) {
	for _, sessions := range []int{1, 100} {
		b.Run(fmt.Sprintf("logs=%d", sessions), func(b *testing.B) {
			s := open(b, b.TempDir())
			logs := make([]*journal.Log, sessions)
			for i := range logs {
				logs[i] = create(b, s, fmt.Sprint(i))
			}
			const each = 200
			var alone, together time.Duration
			rounds := 0
			for b.Loop() {
				alone += appendAll(b, logs, 1, each)
				together += appendAll(b, logs, 100, 20*each)
				rounds++
			}
			one := float64(rounds*each) / alone.Seconds()
			many := float64(rounds*20*each) / together.Seconds()
			b.ReportMetric(one, "alone/s")
			b.ReportMetric(many, "together/s")
			b.ReportMetric(many/one, "ratio")
		})
	}
}

// BenchmarkReadOnlyBesideSyncs is a session whose entries need no sync, beside
// others that sync without a pause.
func BenchmarkReadOnlyBesideSyncs(b *testing.B) {
	for _, others := range []int{0, 1, 8} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			s := open(b, b.TempDir())
			var stop atomic.Bool
			var wg sync.WaitGroup
			for i := range others {
				l := create(b, s, fmt.Sprint("other", i))
				wg.Go(func() {
					for !stop.Load() {
						if _, err := l.Append(entry("", journal.Synced)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			mine := create(b, s, "mine")
			var took []time.Duration
			for b.Loop() {
				since := time.Now()
				if _, err := mine.Append(entry("", journal.Committed)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(since))
			}
			stop.Store(true)
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
