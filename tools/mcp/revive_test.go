//go:build !no_mcp

// Servers that are not there when they are wanted: killed while nobody looked, resting between two starts, or given up.

package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

// TestKilledIdle: a call to a server that was killed just before is carried out by the next one, without a pause that grows.
func TestKilledIdle(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	r.serve(entry)
	const rounds = 8 // the pauses of so many restarts are longer than soon
	ctx, cancel := context.WithTimeoutCause(t.Context(), soon, tools.ErrTimeout)
	defer cancel()
	for round := range rounds {
		if got := r.text("mcp__fake__echo", `{"text":"before"}`); got != "before" {
			t.Fatalf("round %d: before gave %q", round, got)
		}
		idle := time.NewTimer(150 * time.Millisecond) // one that was just heard of is not asked
		<-idle.C
		victim := pid(t, dir)
		_ = syscall.Kill(victim, syscall.SIGKILL)
		result, err := r.call(ctx, "mcp__fake__echo", `{"text":"after"}`, nil)
		if err != nil || textOf(result) != "after" || pid(t, dir) == victim {
			t.Fatalf("round %d: the call gave %q, %v", round, textOf(result), err)
		}
	}
}

// TestNoPing: a server that does not know what a ping is, or does not answer one, is sent its calls all the same.
func TestNoPing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"refuse-ping", "ignore-ping"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			entry, dir := r.fake("fake", mode)
			r.serve(entry)
			for range 2 {
				idle := time.NewTimer(150 * time.Millisecond)
				<-idle.C
				if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
					t.Errorf("the call gave %q", got)
				}
			}
			if !there(filepath.Join(dir, "pinged")) || len(r.told("mcp_server_gone")) != 0 {
				t.Errorf("told was %q", r.told("mcp_server_gone"))
			}
		})
	}
}

// TestRevive: a server that was given up is started when it is wanted, and says why it does not.
func TestRevive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entry, dir := r.fake("fake", "sick")
	r.serve(entry)
	if err := r.set.Revive(t.Context(), "fake"); code(err) != "server_unavailable" {
		t.Errorf("one that does not start gave %v", err)
	}
	r.until("it is given up", func() bool { return len(r.told("mcp_server_failed")) == 2 })
	if err := r.set.Revive(t.Context(), "fake"); code(err) != "server_unavailable" || r.status("fake").State != mcp.Failed {
		t.Errorf("one that was given up gave %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "healed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.set.Revive(t.Context(), "fake"); err != nil {
			t.Errorf("one that starts now gave %v", err)
		}
		if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
			t.Errorf("its call gave %q", got)
		}
	}
	if err := r.set.Revive(t.Context(), "other"); code(err) != "server_unavailable" {
		t.Errorf("one that is not served gave %v", err)
	}
}

// TestIdleStops: a server without calls is stopped, also one that is shared, and the next call of a session starts it.
func TestIdleStops(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		fleet, room := &mcp.Fleet{IdleTimeout: time.Millisecond}, tooltest.NewRoom(t)
		r, other := newRigOf(t, fleet, room), newRigOf(t, fleet, room)
		entry, dir := r.fake("fake", "good")
		entry.Shared = shared
		r.set.Serve([]mcp.Entry{entry})
		if shared {
			other.set.Serve([]mcp.Entry{entry})
		}
		for range 2 {
			r.until("it is stopped", func() bool { return r.status("fake").State == mcp.IdleStopped && !alive(pid(t, dir)) })
			if !r.set.Resting() || len(r.set.Tools()) != 15 || !there(filepath.Join(dir, "ended")) {
				t.Errorf("resting: %t, with %d tools", r.set.Resting(), len(r.set.Tools()))
			}
			before := starts(t, dir)
			if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" || starts(t, dir) != before+1 {
				t.Errorf("the next call gave %q, after %d starts", got, starts(t, dir)-before)
			}
		}
		if shared {
			r.set.Close()
			if got := other.text("mcp__fake__echo", `{"text":"b"}`); got != "b" {
				t.Errorf("the other session gets %q", got)
			}
		}
		if gone := r.told("mcp_server_gone"); len(gone) > 0 {
			t.Errorf("told was %q", gone)
		}
	}
}

// TestKeptRunning: a server whose entry asks for that is not stopped, and neither is one that a call uses.
func TestKeptRunning(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, &mcp.Fleet{IdleTimeout: time.Millisecond}, tooltest.NewRoom(t))
	kept, dir := r.fake("kept", "good")
	kept.IdleTimeout = -1
	other, busy := r.fake("other", "good")
	r.serve(kept)
	r.set.Serve([]mcp.Entry{kept, other})
	r.until("the other one is stopped", func() bool { return r.status("other").State == mcp.IdleStopped })
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.call(ctx, "mcp__other__wait", `{}`, nil)
		done <- err
	}()
	r.until("a call is under way", func() bool { return there(filepath.Join(busy, "waiting")) })
	if r.set.Resting() || r.status("other").State != mcp.Ready || r.status("kept").State != mcp.Ready || !alive(pid(t, dir)) {
		t.Errorf("the servers are %+v", r.set.Servers())
	}
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) {
		t.Errorf("the call gave %v", err)
	}
	r.until("it is stopped again", func() bool { return r.status("other").State == mcp.IdleStopped })
	if r.status("kept").State != mcp.Ready || starts(t, dir) != 1 {
		t.Errorf("the one that stays is %+v, started %d times", r.status("kept"), starts(t, dir))
	}
}
