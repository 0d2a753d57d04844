//go:build !no_mcp

package mcp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleTime: a server is idle when no call has used it for the whole time, however long a call takes.
func TestIdleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Minute
		s := &server{idle: idle, quiet: time.NewTimer(idle), wake: make(chan struct{}, 1), changed: make(chan struct{}), status: Status{State: Ready}}
		l := &link{gone: make(chan struct{}), relist: make(chan struct{}, 1), broken: make(chan struct{}, 1)}
		ended := make(chan bool)
		go func() { ended <- s.lasts(context.Background(), l) }()
		runs := func(want bool) {
			t.Helper()
			synctest.Wait()
			select {
			case <-ended:
				if want {
					t.Fatal("the server is stopped too soon")
				}
			default:
				if !want {
					t.Fatal("the server is not stopped")
				}
			}
		}
		time.Sleep(idle - 1)
		one := s.use()
		time.Sleep(time.Hour)
		two := s.use()
		one()
		time.Sleep(time.Hour)
		runs(true)
		signal(s.wake) // the call has asked for a start that was not needed
		two()
		time.Sleep(idle - 1)
		runs(true)
		if s.stopped() {
			t.Error("it counts as stopped")
		}
		time.Sleep(time.Nanosecond)
		runs(false)
		if s.status.State != IdleStopped || !s.rests() || len(s.wake) != 0 {
			t.Errorf("its state is %s, and it would start again: %d", s.status.State, len(s.wake))
		}
		done := s.use()
		if s.rests() {
			t.Error("a server that a call waits for rests")
		}
		done()
	})
}

// TestIdleTimeouts: the entry's time goes before the fleet's, and that before the usual one.
func TestIdleTimeouts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fleet, entry, want time.Duration }{
		{0, 0, DefaultIdleTimeout},
		{time.Second, 0, time.Second},
		{time.Second, time.Hour, time.Hour},
		{-1, 0, 1<<63 - 1},
		{time.Second, -1, 1<<63 - 1},
	} {
		f := &Fleet{IdleTimeout: test.fleet}
		set := f.Set("somebody", Host{})
		s := f.newServer(Entry{Name: "not__fit", IdleTimeout: test.entry}, set) // which starts nothing
		if s.idle != test.want {
			t.Errorf("of %s and %s it is %s", test.fleet, test.entry, s.idle)
		}
		s.end()
		set.Close()
	}
}
