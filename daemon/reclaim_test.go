package daemon

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

func TestShortOfMemory(t *testing.T) {
	const plenty = "MemTotal:       16300000 kB\nMemFree:          500000 kB\nMemAvailable:   14000000 kB\n"
	const little = "MemTotal:       16300000 kB\nMemFree:          500000 kB\nMemAvailable:     600000 kB\n"
	const calm = "some avg10=0.12 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	const waiting = "some avg10=31.50 avg60=2.00 avg300=0.00 total=9\nfull avg10=12.00 avg60=0.00 avg300=0.00 total=3\n"
	for _, c := range []struct {
		pressure, memory string
		want             bool
	}{
		{calm, plenty, false},
		{calm, little, true},
		{waiting, plenty, true},
		{"", plenty, false},
		{"", "", false},
		{"some avg10=", "MemAvailable:", false},
		{"nonsense", "MemTotal: 1 kB", false},
	} {
		if got := shortOfMemory([]byte(c.pressure), []byte(c.memory)); got != c.want {
			t.Errorf("short of memory with\n%s%s: %v, want %v", c.pressure, c.memory, got, c.want)
		}
	}
}

func TestLull(t *testing.T) {
	var l lull
	for i, c := range []struct {
		allocated uint64
		want      bool
	}{
		{3 << 20, false},                       // it has just started
		{3<<20 + 50<<10, true},                 // and does nothing
		{3<<20 + 150<<10, false},               // and goes on doing nothing
		{9 << 20, false},                       // it works
		{9<<20 + quietBytes, false},            // still a little
		{9<<20 + quietBytes + 1, true},         // no more
		{9<<20 + quietBytes + 1 + 5000, false}, // what the collection allocates
		{9<<20 + quietBytes + 900<<10, false},  // too little to be worth a collection
		{9<<20 + quietBytes + 900<<10 + 1, false},
	} {
		if got := l.begins(c.allocated); got != c.want {
			t.Errorf("step %d: a lull begins: %v, want %v", i, got, c.want)
		}
	}
}

// TestAttachesAreCollected: what many streams needed to attach is collected without waiting until the daemon is quiet.
func TestAttachesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collections := func() uint32 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.NumForcedGC
		}
		r := newReclaimer()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go r.run(ctx)
		synctest.Wait()
		before := collections()
		for range attachesCollected - 1 {
			r.attached()
		}
		synctest.Wait()
		if after := collections(); after != before {
			t.Errorf("%d collections before %d streams have attached", after-before, attachesCollected)
		}
		r.attached()
		synctest.Wait()
		if after := collections(); after != before+1 {
			t.Errorf("%d collections after %d streams have attached", after-before, attachesCollected)
		}
	})
}
