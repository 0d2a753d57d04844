// Background tasks, as far as the session and its clients hear of them.

package daemon

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/spool"
)

// sessionTasks are the processes that calls have left running.
type sessionTasks struct {
	s   *session
	set *background.Set
}

// taskRow is what the journal keeps of a task that runs: after a restart its end is told.
type taskRow struct {
	Command string `json:"command"`
}

// taskEnd is what a Notice "task_ended" carries for programs.
type taskEnd struct {
	TaskID   string `json:"task_id"`
	ExitCode int    `json:"exit_code"` // -1 when a signal has ended it, or a script had left it running
	Signal   string `json:"signal,omitempty"`
	Output   string `json:"output_path"`
}

// keyOf is the key of the call that has started the task.
func (t *sessionTasks) keyOf(task *background.Task) string {
	return strings.TrimPrefix(task.Call, t.s.name+".")
}

// taskStarted returns the change of state that goes with a call which has left the task behind; nil when it has ended
// already.
func (t *sessionTasks) taskStarted(id string) []journal.Put {
	task := t.set.Get(id)
	if task == nil {
		return nil
	}
	if _, ended := task.Exit(); ended {
		return nil
	}
	return []journal.Put{putState(keyTask+id, taskRow{task.Command})}
}

// taskEnded records that a task has ended, so that no client need poll.
func (t *sessionTasks) taskEnded(task *background.Task) {
	exit, _ := task.Exit()
	end := taskEnd{TaskID: task.ID, ExitCode: exit.Code, Signal: exit.Signal, Output: task.Output.Path()}
	how := fmt.Sprintf(" with exit code %d", exit.Code)
	if exit.Signal != "" {
		how = " by " + exit.Signal
	} else if exit.Code < 0 {
		how = "" // a script had left it running
	}
	t.s.update(func(its *state) {
		its.used = time.Now()
		notice := pipeline.Noticed{
			Code: "task_ended", Message: fmt.Sprintf("The background task %s (%s) has ended%s.", task.ID, task.Command, how), Details: end,
		}
		if row := its.ledger.calls[t.keyOf(task)]; row != nil {
			notice.CallID = row.ID
		}
		its.ledger.append(entry(nil, notice, journal.Put{Key: keyTask + task.ID}))
		its.ledger.wakeWaiters()
	})
}

// runningTasks is how many tasks run.
func (t *sessionTasks) runningTasks() int { return t.set.Alive() }

// describeTasks lists the tasks that run.
func (t *sessionTasks) describeTasks(its *state) (described []*tooldv1.BackgroundTask) {
	for _, task := range t.set.List() {
		if _, ended := task.Exit(); ended {
			continue
		}
		wire := &tooldv1.BackgroundTask{
			TaskId: task.ID, Command: shortened(task.Command, shownInput), Age: durationpb.New(time.Since(task.Started)), OutputPath: clean(task.Output.Path()),
		}
		if row := its.ledger.calls[t.keyOf(task)]; row != nil {
			wire.ToolUseId = row.ID
		}
		described = append(described, wire)
	}
	return described
}

// taskOf returns the running task that the call with this key has left behind; nil: there is none.
func (t *sessionTasks) taskOf(key string) *background.Task {
	for _, task := range t.set.List() {
		if _, ended := task.Exit(); !ended && t.keyOf(task) == key {
			return task
		}
	}
	return nil
}

// taskOutput is the output of the running task that the call with this key has left behind; nil: there is none.
func (t *sessionTasks) taskOutput(key string) *spool.Output {
	if task := t.taskOf(key); task != nil {
		return task.Output
	}
	return nil
}

// stopTask stops the task that the call with this key has left behind, if it runs, and does not wait for its end.
func (t *sessionTasks) stopTask(key string) {
	if task := t.taskOf(key); task != nil {
		task.Stop()
	}
}
