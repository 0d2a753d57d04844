// Background tasks, as far as the session and its clients hear of them.

package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/daemon/convert"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/background"
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
	if task := t.set.Get(id); task != nil {
		if _, ended := task.Exit(); !ended {
			return []journal.Put{putState(keyTask+id, taskRow{task.Command})}
		}
	}
	return nil
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
			Code: "task_ended", CallID: its.ledger.idOf(t.keyOf(task)), Details: end,
			Message: fmt.Sprintf("The background task %s (%s) has ended%s.", task.ID, task.Command, how),
		}
		its.ledger.append(entry(nil, notice, journal.Put{Key: keyTask + task.ID}))
		its.ledger.wakeWaiters()
	})
}

// describeTasks lists the tasks that run.
func (t *sessionTasks) describeTasks(its *state) (described []*tooldv1.BackgroundTask) {
	for _, task := range t.set.List() {
		if _, ended := task.Exit(); !ended {
			described = append(described, &tooldv1.BackgroundTask{
				TaskId: task.ID, Command: convert.Shortened(task.Command, convert.ShownInput), Age: durationpb.New(time.Since(task.Started)),
				OutputPath: convert.Clean(task.Output.Path()), ToolUseId: its.ledger.idOf(t.keyOf(task)),
			})
		}
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
