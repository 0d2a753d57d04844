// BashOutput and KillShell: the tools for a session's background tasks.

package bash

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

//go:embed output.md
var outputDescription string

//go:embed kill.md
var killDescription string

// maxWait is how long BashOutput may wait for something new.
const maxWait = 30 * time.Second

type outputInput struct {
	BashID string `json:"bash_id,omitempty" jsonschema:"the id of the background task"`
	TaskID string `json:"task_id,omitempty" jsonschema:"the same as bash_id"`
	Filter string `json:"filter,omitempty" jsonschema:"regular expression: only lines that match are shown"`
	WaitMS int64  `json:"wait_ms,omitempty" jsonschema:"how long to wait for new output or the end, in milliseconds, at most 30000" minimum:"0"`
}

type killInput struct {
	ShellID string `json:"shell_id,omitempty" jsonschema:"the id of the background task"`
	TaskID  string `json:"task_id,omitempty" jsonschema:"the same as shell_id"`
}

// OutputTool returns the BashOutput tool. Its result for programs is Structured.
func OutputTool() tools.Tool {
	spec := tools.Spec{
		Name: "BashOutput", Description: outputDescription, ReadOnly: true, TimeLimit: 45 * time.Second, OnInterrupt: tools.Stop,
	}
	return tools.New(spec, tools.Funcs[outputInput]{
		Validate: validateOutput,
		Effects:  func(outputInput) tools.Effects { return tools.Effects{State: "cursors"} },
		Run:      runOutput,
	})
}

// KillTool returns the KillShell tool. Its result for programs is Structured.
func KillTool() tools.Tool {
	spec := tools.Spec{Name: "KillShell", Description: killDescription, TimeLimit: 10 * time.Second}
	return tools.New(spec, tools.Funcs[killInput]{
		Validate: func(in *killInput) (err error) {
			in.ShellID, err = oneID(in.ShellID, in.TaskID, "shell_id")
			return err
		},
		Effects: func(killInput) tools.Effects { return tools.Effects{Session: true} },
		Run:     runKill,
	})
}

// oneID returns the id, which may have either of two names.
func oneID(id, alias, field string) (string, error) {
	if id = cmp.Or(id, alias); id == "" || alias != "" && alias != id {
		return "", fault.Invalidf("invalid_input", "Set %s to the id of one background task.", field).At("/" + field)
	}
	return id, nil
}

func validateOutput(in *outputInput) (err error) {
	if in.BashID, err = oneID(in.BashID, in.TaskID, "bash_id"); err != nil {
		return err
	}
	if _, err := regexp.Compile(in.Filter); err != nil {
		return fault.Invalidf("bad_pattern", "The filter is not a valid regular expression: %v.", err).At("/filter")
	}
	return nil
}

func find(env *tools.Env, id, field string) (*background.Task, error) {
	if t := env.Tasks.Get(id); t != nil {
		return t, nil
	}
	var known []string
	for _, t := range env.Tasks.List() {
		known = append(known, t.ID)
	}
	text := "There is none."
	if len(known) > 0 {
		text = "There are: " + strings.Join(known, ", ") + "."
	}
	return nil, fault.Invalidf("unknown_task", "No background task of this session is called %q. %s Tasks end with the daemon; the files with their output stay.", id, text).At("/" + field)
}

func runOutput(ctx context.Context, env *tools.Env, in outputInput) (tools.Result, error) {
	task, err := find(env, in.BashID, "bash_id")
	if err != nil {
		return tools.Result{}, err
	}
	from := env.Cursors[task.ID]
	if in.WaitMS > 0 {
		limit := min(time.Duration(in.WaitMS)*time.Millisecond, maxWait)
		waiting, cancel := context.WithTimeout(ctx, limit)
		task.AwaitMore(waiting, from)
		cancel()
		if cause := context.Cause(ctx); cause != nil {
			return tools.Result{}, cause // nothing is returned, so the cursor stays
		}
	}
	if task.Terminal != nil && in.Filter == "" {
		return screenOf(env, task), nil
	}
	s := statusOf(task) // before the output, so that the output of an ended task is complete
	env.Box.Report(task.TakeAside())
	room, news := tools.OutputRoom(env.MaxChars), spool.Excerpt{}
	if in.Filter == "" {
		news, err = task.Output.Since(from, room)
	} else {
		news, err = task.Output.Matching(from, room, regexp.MustCompile(in.Filter).Match)
	}
	if err != nil {
		return tools.Result{}, fault.Failedf("io_error", "The output of %s cannot be read: %v.", task.ID, err)
	}
	text, spill := s.Text(news, task.Output.Path())
	switch {
	case text != "":
	case in.Filter != "" && news.End > from:
		text = "(no new line matches the filter)"
	default:
		text = "(no new output)"
	}
	if s.Status == "running" {
		s.Ports = env.Ports(task)
	}
	result := tools.Text(s.statusLine(task) + spool.EndLine(text) + s.serves() + s.leftovers(notKept))
	result.Structured, result.Spill = *s, spill
	result.Changes.Cursor = &tools.Cursor{Task: task.ID, Offset: news.End}
	return result, nil
}

func statusOf(task *background.Task) *Structured {
	s := &Structured{TaskID: task.ID, Status: "running"}
	if exit, ended := task.Exit(); ended {
		s.Status = "ended"
		s.ended(exit)
	}
	s.measure(task.Output)
	return s
}

func (s *Structured) statusLine(task *background.Task) string {
	exit, ended := task.Exit()
	switch {
	case s.Status == "running":
		return fmt.Sprintf("%s is running.\n", task.ID)
	case ended && exit.Output != nil:
		return fmt.Sprintf("%s was stopped: %s\n", task.ID, fault.From(tools.OutputFault("command", exit.Output, task.Output)).Message)
	case s.Signal != "":
		return fmt.Sprintf("%s has ended by signal %s.\n", task.ID, s.Signal)
	case s.ExitCode == nil:
		return fmt.Sprintf("%s has ended; its exit code is unknown.\n", task.ID)
	}
	return fmt.Sprintf("%s has ended with exit code %d.\n", task.ID, *s.ExitCode)
}

func runKill(ctx context.Context, env *tools.Env, in killInput) (tools.Result, error) {
	task, err := find(env, in.ShellID, "shell_id")
	if err != nil {
		return tools.Result{}, err
	}
	_, before := task.Exit()
	task.Stop()
	select {
	case <-task.Done():
	case <-ctx.Done():
		return tools.Result{}, context.Cause(ctx)
	}
	env.Box.Report(task.TakeAside())
	s := statusOf(task)
	text := s.statusLine(task)
	if before {
		text = "It had ended before: " + text
	}
	result := tools.Text(text + s.leftovers(notKept))
	result.Structured = *s
	return result, nil
}
