// Distribution of a walk's tasks to its workers.

package walk

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A task is some files of an open directory, or a directory in one: name, with no files.
type task struct {
	dir   *openDir // kept open by the task
	files []File
	name  string
	level *level // of dir
}

// tasks are the remaining tasks, as a stack, so that few directories are open at once.
type tasks struct {
	mu     sync.Mutex
	wake   sync.Cond // L is &mu
	stack  []task
	busy   int         // tasks in progress
	closed atomic.Bool // set while mu is held
	panics any
}

// run runs all tasks, including those that are added meanwhile. It returns when none is left, or
// when it was closed and the tasks in progress are done. A panic in do is raised again here, on the
// caller's goroutine, where it can be caught.
func (s *tasks) run(workers int, do func(task)) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { s.work(do) })
	}
	all.Wait()
	for _, t := range s.stack {
		t.dir.drop()
	}
	if s.panics != nil {
		panic(s.panics)
	}
}

func (s *tasks) work(do func(task)) {
	defer func() {
		if p := recover(); p != nil {
			s.mu.Lock()
			s.panics = fmt.Sprintf("%v\n%s", p, debug.Stack())
			s.mu.Unlock()
			s.close()
		}
	}()
	for t, ok := s.next(); ok; t, ok = s.next() {
		do(t)
		s.done()
	}
}

func (s *tasks) next() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stack) == 0 && s.busy > 0 && !s.closed.Load() {
		s.wake.Wait()
	}
	if s.closed.Load() || len(s.stack) == 0 {
		return task{}, false
	}
	last := len(s.stack) - 1
	t := s.stack[last]
	s.stack = s.stack[:last]
	s.busy++
	return t, true
}

func (s *tasks) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.busy == 0 && len(s.stack) == 0 {
		s.wake.Broadcast()
	}
}

// push adds tasks, which keep their directories open.
func (s *tasks) push(list ...task) {
	if len(list) == 0 {
		return
	}
	for _, t := range list {
		t.dir.keep()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stack = append(s.stack, list...)
	s.wake.Broadcast()
}

func (s *tasks) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	s.wake.Broadcast()
}

func (s *tasks) stopped() bool { return s.closed.Load() }
