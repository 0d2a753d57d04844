// What a session costs that does nothing.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/toold/toold/bench/wire"
)

// idleSessions stays under the daemon's default limit of 256.
const idleSessions = 200

// measureSessions prints a fresh daemon's memory, and how it grows per session with a stream, and per session whose
// stream has gone.
func measureSessions(ctx context.Context, toold string) (err error) {
	root, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	daemon, err := wire.StartDaemon(ctx, toold, root)
	if err != nil {
		return err
	}
	defer daemon.Stop()
	before, err := settled(ctx, daemon)
	if err != nil {
		return err
	}
	streams, hangUp := context.WithCancel(ctx)
	defer hangUp()
	for n := range idleSessions {
		t, err := wire.StartTalk(streams, daemon, "idle-"+strconv.Itoa(n), root)
		if err != nil {
			return err
		}
		if _, err := t.Recv(); err != nil { // Attached
			return err
		}
	}
	attached, err := settled(ctx, daemon)
	if err != nil {
		return err
	}
	hangUp()
	detached, err := settled(ctx, daemon)
	if err != nil {
		return err
	}
	fmt.Printf("\nidle daemon: %.1f MiB; idle session with its stream: %.1f KiB; idle session without: %.1f KiB (of %d)\n",
		float64(before)/(1<<20), perSession(before, attached), perSession(before, detached), idleSessions)
	return nil
}

func perSession(before, after int64) float64 { return float64(after-before) / idleSessions / (1 << 10) }

// settled returns the daemon's resident memory once it has not changed for two seconds: its collector has caught up.
func settled(ctx context.Context, daemon *wire.Server) (int64, error) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	last := int64(-1)
	for range 30 {
		now, err := daemon.Memory("VmRSS")
		if err != nil || now == last {
			return now, err
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return last, nil
}
