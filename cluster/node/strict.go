// Workspaces with strict effects: what an owner runs ends before the next owner runs anything, also when the owner has no contact
// to anything or is stopped. Process 1 of the container ends everything when no append that was begun in the last
// Config.StrictLives has been acknowledged, and who takes the workspace over waits for Config.StrictWait.
//
// An append that was acknowledged was stored after it was begun, and before whatever another owner has appended. So what the old owner
// runs ends within StrictLives of the takeover, if the clocks of both machines run equally fast.

package node

import (
	"context"
	"time"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/lease"
)

// How long what runs in a workspace with strict effects lives without an append that is acknowledged, and how long the next
// owner waits before it runs anything.
const (
	StrictLives = 10 * time.Second
	StrictWait  = 15 * time.Second
)

// So many times in StrictLives it is looked whether an append is due, which is when none was acknowledged since the last time.
const provesInLife = 5

// awaitPredecessor returns when nothing can be running any more that the last owner has started. It is called once the lease
// is taken.
func (u *unit) awaitPredecessor(ctx context.Context, view *lease.View) error {
	if !u.creation.StrictEffects || view.Owner() == "" || view.Released() {
		return nil
	}
	u.log.Info("waiting until nothing of the last owner can be running")
	select {
	case <-time.After(u.node.StrictWait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lives returns how long the container may live and from when on. The workspace is this node's then.
func (u *unit) lives() (lives time.Duration, since container.Instant, err error) {
	if !u.creation.StrictEffects {
		return 0, 0, nil
	}
	since = container.Now()
	return u.node.StrictLives, since, u.lease.Prove(u.lost)
}

// proveOwnership appends from time to time, so that the container lives on, unless its daemon does, until done is closed.
func (u *unit) proveOwnership(done <-chan struct{}) {
	ctx, cancel := context.WithCancel(u.lost)
	defer cancel()
	ticks := time.NewTicker(u.node.StrictLives / provesInLife)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if container.Now() < u.container.LastBeat().Add(u.node.StrictLives/provesInLife) {
				continue // what the daemon has appended proves it
			}
			if err := u.mirror.prove(ctx); err != nil {
				u.mirror.fail(err)
				return
			}
		case <-done:
			return
		}
	}
}

// prove appends nothing but that the workspace is still this node's.
func (m *mirrorServer) prove(ctx context.Context) error {
	begun := container.Now()
	if err := m.lease.Prove(ctx); err != nil {
		return err
	}
	m.acknowledged(begun)
	return nil
}
