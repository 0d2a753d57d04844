// Package background holds the background tasks of a session.
package background

import (
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/spool"
)

// A Task is a process that outlives its call.
type Task struct{}

// A Set is a session's tasks.
type Set struct{}

// NewSet makes an empty set; ended is called once for each task that ends.
func NewSet(ended func(*Task)) *Set { return &Set{} }

// Adopt takes over a running process.
func (s *Set) Adopt(id, command string, p *sandbox.Process, out *spool.Output) (*Task, error) {
	return &Task{}, nil
}

// Get finds a task.
func (s *Set) Get(id string) (*Task, bool) { return nil, false }

// List gives all tasks, oldest first.
func (s *Set) List() []*Task { return nil }

// Close kills all and waits.
func (s *Set) Close() {}
