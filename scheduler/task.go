// Package scheduler decides when each call of a session may run.
//
// A [Plan] is the order of one session's calls and does nothing by itself: no
// goroutines, no clock, no I/O. A [Scheduler] has the plans of one principal's
// sessions under one lock, and shares the principal's slots between them. A
// [Queue] is one session's handle on it.
//
// The package does not know gRPC, tools, permissions or files, nor why a
// call is stopped: it orders tasks that report whether they are concurrent,
// or what they touch, and passes causes on without looking into them.
package scheduler

// The contract with the package's caller, and the causes that the package makes itself.

import (
	"context"
	"errors"
)

// A Task is one call that can be ordered. Exactly one of Run and Skip is called, once. ID, Turn,
// Concurrent and Aborts always return the same values.
type Task interface {
	// ID is unique among the session's open tasks, whatever their turn.
	ID() string
	// Turn numbers the model message that the call belongs to. Turns of a
	// session count upwards from 1, not necessarily without gaps.
	Turn() uint64
	// Concurrent reports whether the call may run beside other concurrent ones. It decides in the
	// Batched ordering, the next three methods in the Dependency ordering.
	Concurrent() bool
	// Touches returns what the call touches, as far as that is known when it is added. It must not
	// block.
	Touches() Footprint
	// Look returns what the call touches as things now stand. It is called on a goroutine of its
	// own while the call waits, once those that it waited for have ended, and may block. The task
	// may be skipped meanwhile. It is never called twice at the same time, and has returned before
	// Run is called.
	Look() Footprint
	// Aborts reports whether the call aborts its siblings if it fails.
	Aborts() bool

	// Run carries out the call, on its own goroutine; it must not panic. The context has no values
	// and no deadline, and is cancelled with the cause of the first stop that reaches the running
	// task. A task that reads that cause once, after it has acted, and finds none, has finished: a
	// later stop changes nothing. The task counts as running until Run returns.
	//
	// A task that asks a question needs no slot meanwhile. outside releases the slot, runs wait,
	// and returns nil when the task has a slot again. When ctx is done, outside returns its cause
	// instead, without a slot, and does not begin to wait; wait itself must watch ctx. Only Run's
	// own goroutine may call outside, and never from within wait.
	//
	// A concurrent task that turns out to be serial must call alone before it acts. alone releases
	// the slot and returns nil when the task has a slot again and no other call of its lane runs;
	// until the task has ended, no other call starts there. It returns the cause when ctx is done.
	// Only Run's own goroutine may call it, and never from within wait. A serial task is alone from
	// the start.
	//
	// A non-nil abort is the cause with which the siblings are aborted: the calls of the same turn
	// and the same parent. The task has already applied the session's abort policy.
	Run(ctx context.Context, outside func(wait func()) error, alone func() error) (abort error)

	// Skip is called if the task will never run; cause is the reason. It is called under the
	// scheduler's lock (or in Queue.Add, once the scheduler is closed), so it must not block and must
	// not call the scheduler.
	Skip(cause error)
}

// Causes of the order itself.
var (
	// ErrClosed stops and skips all open tasks when the Scheduler is closed.
	ErrClosed = errors.New("the scheduler is closed")
	// ErrTurnEnded skips a task of a turn that has already ended.
	ErrTurnEnded = errors.New("its turn has already ended")
	// ErrParentNotRunning skips a task whose parent waits, is unknown or has ended, and stops or
	// skips a parent's tasks when it ends.
	ErrParentNotRunning = errors.New("the call that it is nested in is not running")
	// ErrDuplicate skips a task whose ID an open task already has.
	ErrDuplicate = errors.New("another open call has the same id")
)
