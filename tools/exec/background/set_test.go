package background_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/exec/terminal"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	os.Exit(tooltest.Main(m))
}

type room struct {
	t      *testing.T
	dir    *spool.Dir
	runner *sandbox.Runner
	set    *background.Set
	calls  int
	ended  chan *background.Task
}

func newRoom(t *testing.T) *room {
	t.Helper()
	dir, err := spool.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runner, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, dir: dir, runner: runner, ended: make(chan *background.Task, 1000)}
	r.set = background.NewSet(background.Events{Ended: func(task *background.Task) { r.ended <- task }})
	t.Cleanup(func() {
		r.set.Close()
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *room) add(script string) (*background.Task, error) {
	r.t.Helper()
	r.calls++
	call := fmt.Sprintf("call%d", r.calls)
	out, err := r.dir.Create(call)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.set.Add(background.Origin{Call: call, Command: script, Output: out}, func() (*sandbox.Process, *terminal.Terminal, error) {
		p, err := r.runner.Start(sandbox.Command{
			ID: call, Path: "/bin/bash", Args: []string{"bash", "-c", script}, Dir: "/", Env: sandbox.Environ(os.Environ()),
			Stdout: out.Writer(spool.Stdout), Stderr: out.Writer(spool.Stderr),
		})
		return p, nil, err
	})
}

func (r *room) must(script string) *background.Task {
	r.t.Helper()
	task, err := r.add(script)
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

func TestTaskEndsByItself(t *testing.T) {
	r := newRoom(t)
	task := r.must("echo out; exit 5")
	if told := <-r.ended; told != task {
		t.Errorf("told of %s, want %s", told.ID, task.ID)
	}
	exit, ok := task.Exit()
	if !ok || exit.Code != 5 || task.Output.Total() != 4 || !task.Output.Ended() {
		t.Errorf("exit %+v, %v; %d bytes, ended %v", exit, ok, task.Output.Total(), task.Output.Ended())
	}
	if r.set.Get(task.ID) != task || r.set.Alive() != 0 || len(r.set.List()) != 1 {
		t.Errorf("the task is not kept as an ended one: %v, %d alive", r.set.List(), r.set.Alive())
	}
}

func TestAwaitMore(t *testing.T) {
	r := newRoom(t)
	task := r.must("exec 2>/dev/null; trap 'echo two; exit 0' TERM; echo one; while :; do sleep 0.01; done")
	task.AwaitMore(t.Context(), 0)
	if got := task.Output.Total(); got != 4 {
		t.Errorf("%d bytes after the first wait, want 4", got)
	}
	if _, ended := task.Exit(); ended {
		t.Error("the task has ended")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	task.AwaitMore(gone, 4)
	task.Stop()
	task.AwaitMore(t.Context(), 4)
	task.AwaitMore(t.Context(), 8)
	if exit, ended := task.Exit(); !ended || exit.Code != 0 || task.Output.Total() != 8 {
		t.Errorf("exit %+v, ended %v, %d bytes", exit, ended, task.Output.Total())
	}
}

func TestAtMost32(t *testing.T) {
	r := newRoom(t)
	var last *background.Task
	for range 32 {
		last = r.must("sleep 1000")
	}
	if _, err := r.add("true"); !errors.Is(err, background.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	last.Stop()
	<-r.ended
	r.must("sleep 1000")
}

func TestStartFails(t *testing.T) {
	r := newRoom(t)
	wrong := errors.New("wrong")
	for range 33 {
		_, err := r.set.Add(background.Origin{}, func() (*sandbox.Process, *terminal.Terminal, error) { return nil, nil, wrong })
		if !errors.Is(err, wrong) {
			t.Fatal(err)
		}
	}
}

func TestCloseEndsAll(t *testing.T) {
	r := newRoom(t)
	var told atomic.Int64
	r.set = background.NewSet(background.Events{Ended: func(*background.Task) { told.Add(1) }})
	for range 3 {
		r.must("setsid sleep 1000 & sleep 1000")
	}
	r.set.Close()
	if told.Load() != 3 || r.set.Alive() != 0 {
		t.Errorf("told of %d ends, %d alive", told.Load(), r.set.Alive())
	}
	if _, err := r.add("true"); !errors.Is(err, background.ErrClosed) {
		t.Errorf("adding after Close: %v", err)
	}
}
