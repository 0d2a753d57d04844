package quota_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/toold/toold/daemon/quota"
)

var small = map[quota.Kind]quota.Limits{
	quota.Buffers: {quota.Session: 10, quota.Principal: 15, quota.Daemon: 22},
	quota.Options: {quota.Session: 5, quota.Principal: 5, quota.Daemon: 5},
}

func TestHold(t *testing.T) {
	var released int64
	l := quota.New(small, func(bytes int64) { released += bytes })
	accounts := map[string]*quota.Account{"a1": l.Open("a"), "a2": l.Open("a"), "b": l.Open("b")}
	for _, step := range []struct {
		account string
		kind    quota.Kind
		bytes   int64
		want    quota.Exceeded // zero: it is held
	}{
		{"a1", quota.Buffers, 11, quota.Exceeded{Scope: quota.Session, Limit: 10, Held: 0, Wanted: 11}},
		{"a1", quota.Buffers, 10, quota.Exceeded{}},
		{"a1", quota.Buffers, 11, quota.Exceeded{Scope: quota.Session, Limit: 10, Held: 10, Wanted: 1}},
		{"a2", quota.Buffers, 6, quota.Exceeded{Scope: quota.Principal, Limit: 15, Held: 10, Wanted: 6}},
		{"a2", quota.Buffers, 5, quota.Exceeded{}},
		{"a1", quota.Options, 5, quota.Exceeded{}},
		{"b", quota.Buffers, 8, quota.Exceeded{Scope: quota.Daemon, Limit: 22, Held: 15, Wanted: 8}},
		{"b", quota.Options, 1, quota.Exceeded{Kind: quota.Options, Scope: quota.Daemon, Limit: 5, Held: 5, Wanted: 1}},
		{"b", quota.Tools, 1, quota.Exceeded{Kind: quota.Tools, Scope: quota.Session, Wanted: 1}},
		{"a1", quota.Buffers, 4, quota.Exceeded{}},
		{"b", quota.Buffers, 8, quota.Exceeded{}},
	} {
		a := accounts[step.account]
		fits, over := a.Fits(step.kind, step.bytes), a.Hold(step.kind, step.bytes)
		got := quota.Exceeded{}
		if over != nil {
			got = *over
		}
		if got != step.want || (fits == nil) != (over == nil) {
			t.Errorf("%+v: %v, fits %v", step, over, fits)
		}
	}
	if released != 6 {
		t.Errorf("%d bytes were given back, want 6", released)
	}
	accounts["a2"].Restore(quota.Buffers, 100) // past the limits; only what is less gets through now
	if err := accounts["b"].Hold(quota.Buffers, 9); err == nil {
		t.Error("more is held when the daemon has too much already")
	}
	if err := accounts["a2"].Hold(quota.Buffers, 99); err != nil {
		t.Errorf("less is refused: %v", err)
	}
	for range 2 {
		for _, a := range accounts {
			a.Close()
		}
	}
	if released != 6+1+99+4+5+8 {
		t.Errorf("%d bytes were given back in all", released)
	}
	if err := l.Open("a").Hold(quota.Buffers, 10); err != nil {
		t.Errorf("something is left of closed accounts: %v", err)
	}
}

// TestHoldAtOnce: whatever many sessions reserve at the same time, no limit is passed and nothing is left at the end.
func TestHoldAtOnce(t *testing.T) {
	l := quota.New(small, func(int64) {})
	var working sync.WaitGroup
	for n := range 8 {
		working.Go(func() {
			chance := rand.New(rand.NewPCG(1, uint64(n)))
			for range 200 {
				a := l.Open(string(rune('a' + n%3)))
				for range 5 {
					_ = a.Hold(quota.Buffers, chance.Int64N(12))
				}
				a.Close()
			}
		})
	}
	working.Wait()
	if err := l.Open("a").Hold(quota.Buffers, 10); err != nil {
		t.Error(err)
	}
	if err := l.Open("b").Hold(quota.Buffers, 10); err != nil {
		t.Error(err)
	}
	if err := l.Open("c").Hold(quota.Buffers, 3); err == nil {
		t.Error("23 bytes are held of 22")
	}
}
