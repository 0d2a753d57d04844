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
	fmt.Printf("\nidle daemon: %.1f MiB; idle session with its stream: %s; idle session without: %s (of %d)\n",
		float64(before.resident)/(1<<20), attached.perSession(before), detached.perSession(before), idleSessions)
	return nil
}

// perSession describes how a daemon's memory has grown for each session.
func (m memory) perSession(before memory) string {
	each := func(before, after int64) float64 { return float64(after-before) / idleSessions / (1 << 10) }
	return fmt.Sprintf("%.1f KiB, of which %.1f KiB are its own and not pages of the program", each(before.resident, m.resident), each(before.own, m.own))
}

// A memory is what a daemon holds, in bytes. What it maps of its program's file comes and goes as the program runs.
type memory struct{ resident, own int64 }

// lull is how long the daemon is left alone before its memory is read. It looks every 10 seconds whether it has become
// quiet, and then gives back what it needed to work; a session without a client rests after 10 more.
const lull = 35 * time.Second

// settled returns the daemon's memory once it was left alone for a while.
func settled(ctx context.Context, daemon *wire.Server) (m memory, err error) {
	select {
	case <-time.After(lull):
	case <-ctx.Done():
		return memory{}, ctx.Err()
	}
	if m.resident, err = daemon.Memory("VmRSS"); err == nil {
		m.own, err = daemon.Memory("RssAnon")
	}
	return m, err
}
