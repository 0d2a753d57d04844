// Package scheduler decides when each call of a session may run.
//
// A [Plan] is the order of one session's calls and does nothing by itself: no
// goroutines, no clock, no I/O. A [Scheduler] is one goroutine that owns the
// plans of one principal's sessions and so can share the principal's slots
// between them without a lock. A [Queue] is one session's handle on it.
//
// The package does not know gRPC, tools, permissions or files, nor why a
// call is stopped: it orders tasks that say of themselves whether they are
// concurrent, and hands causes through without looking into them.
package scheduler

// This file is what the package asks of its caller, and the causes that it makes itself.

import (
	"context"
	"errors"
)

// A Task is one call, ready to be ordered. Exactly one of Run and Skip is
// called, once. ID, Turn and Concurrent always return the same.
type Task interface {
	// ID is unique among the session's open tasks, whatever their turn.
	ID() string
	// Turn numbers the model message that the call belongs to. Turns of a
	// session count upwards from 1, not necessarily without gaps.
	Turn() uint64
	// Concurrent says whether the call may run beside other concurrent ones.
	Concurrent() bool

	// Run does the call, on a goroutine of its own; it must not panic. The
	// context carries no values and no deadline and is cancelled with the cause
	// of the first stop that reaches the task while it runs. A task that reads
	// that cause once, when its act is over, and finds none, has finished: a
	// later stop changes nothing. The task is running until Run returns.
	//
	// While the task asks somebody it needs no slot: outside gives the slot
	// back, runs wait, and returns when the task has a slot again, with nil.
	// When the context is done it returns the cause instead, without a slot,
	// and does not begin to wait; wait itself has to watch ctx. Only Run's own
	// goroutine calls outside, and never from within wait.
	//
	// A concurrent task that turns out to do what a serial one does calls alone
	// before it does that. alone gives the slot back and returns, with nil, when
	// the task has a slot again and no other call of its lane runs; until the
	// task has ended none does, and none starts. It returns the cause when the
	// context is done. Only Run's own goroutine calls it, and never from within
	// wait. A serial task has been alone from the start.
	//
	// A non-nil abort is the cause with which the siblings, the calls of the
	// same turn and the same parent, are aborted. Whether the session's policy
	// wants that has been judged by the task.
	Run(ctx context.Context, outside func(wait func()) error, alone func() error) (abort error)

	// Skip says that the task will never run, and why. It is called on the
	// scheduler's loop (or by Queue.Add, once the scheduler is closed), so it
	// must not block and must not call the scheduler.
	Skip(cause error)
}

// Causes that come from the order itself rather than from a caller.
var (
	// ErrClosed stops and skips what is open when the Scheduler is closed.
	ErrClosed = errors.New("the scheduler is closed")
	// ErrTurnEnded skips a task of a turn whose end has already been told.
	ErrTurnEnded = errors.New("its turn has already ended")
	// ErrParentNotRunning skips a task added under a parent that is waiting,
	// unknown or has ended, and stops or skips a parent's tasks when it ends.
	ErrParentNotRunning = errors.New("the call that it is nested in is not running")
	// ErrDuplicate skips a task whose ID an open task already has.
	ErrDuplicate = errors.New("another open call has the same id")
)
