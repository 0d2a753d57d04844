// One bash from its start to its end, or to the background. It does not know who permitted it.

package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/spool"
)

// findBash looks for bash once, where the daemon itself finds programs.
var findBash = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("bash")
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
})

// fixed is what every command gets, whatever the client's environment says: nobody looks at a terminal.
var fixed = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive",
}

// A shellRun is one bash while it runs, with what is needed to tell of it.
type shellRun struct {
	in      input
	env     *tools.Env
	dir     string // where it started
	environ []string
	out     *spool.Output
	process *sandbox.Process
	report  *sandbox.Beginning // nil: what it leaves behind is not wanted
	notes   []string
}

func run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if cause := context.Cause(ctx); cause != nil {
		return tools.Result{}, cause
	}
	r := &shellRun{in: in, env: env}
	if err := r.prepare(); err != nil {
		return tools.Result{}, err
	}
	if in.RunInBackground {
		return r.background()
	}
	if err := r.start(); err != nil {
		_ = r.out.Close()
		return tools.Result{}, err
	}
	env.Output(r.out)
	select {
	case <-r.process.Done():
	case <-ctx.Done():
		if timedOut(context.Cause(ctx)) && env.OnTimeout == tools.Background {
			return r.handOver()
		}
		r.process.Stop()
	}
	return r.end(ctx, r.process.Wait())
}

func timedOut(cause error) bool {
	return errors.Is(cause, tools.ErrTimeout) || errors.Is(cause, context.DeadlineExceeded)
}

// prepare works out where and with what the shell runs.
func (r *shellRun) prepare() (err error) {
	if r.dir, err = r.workingDir(); err != nil {
		return err
	}
	r.environ = environ(r.env, r.in, r.dir)
	if !r.in.analysis.Concurrent && !r.in.RunInBackground {
		r.report = &sandbox.Beginning{Most: maxReport}
	}
	if r.in.Timeout > maxTime.Milliseconds() {
		r.note("The timeout of %d ms was cut to %d ms, the longest there is; run_in_background has none.", r.in.Timeout, maxTime.Milliseconds())
	}
	r.out, err = r.env.Spool.Create(r.env.CallID)
	return err
}

// environ is what the shell of a command gets when it starts in dir.
func environ(env *tools.Env, in input, dir string) []string {
	base, set := env.Environ, append(fixed[:len(fixed):len(fixed)], "PWD="+dir)
	if in.analysis.ReadOnly {
		base = shell.ReadOnlyEnv(base, untilded("~"), env.Files.Roots())
	}
	if in.analysis.ReadOnly && in.analysis.Git {
		set = append(set, shell.GitHardening()...)
	}
	return env.Box.Environ(base, set...)
}

func (r *shellRun) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// start starts the shell.
func (r *shellRun) start() (err error) {
	path, err := findBash()
	if err != nil {
		return fault.Failedf("program_not_found", "bash is not on the daemon's PATH. Install bash, or start the daemon with a PATH that has it.")
	}
	c := sandbox.Command{
		ID: r.env.CallID, Path: path, Args: []string{"bash", "--noprofile", "--norc", "-c", r.in.Command}, Dir: r.dir,
		Env: r.environ, Stdout: r.out.Writer(spool.Stdout), Stderr: r.out.Writer(spool.Stderr),
	}
	if r.report != nil {
		script, err := openPrelude()
		if err != nil {
			return startFault(err)
		}
		defer script.Close()
		c.Report, c.Extra = r.report, []*os.File{script}
		c.Env = append(c.Env[:len(c.Env):len(c.Env)], preludeName)
	}
	if r.process, err = r.env.Box.Start(c); err != nil {
		return startFault(err)
	}
	return nil
}

func startFault(err error) error {
	return fault.Failedf("start_failed", "The command was not started: %v. Nothing was run; it can be sent again.", err)
}

// background starts the shell as a task and returns at once.
func (r *shellRun) background() (tools.Result, error) {
	from := background.Origin{Call: r.env.CallID, Command: r.in.Command, Output: r.out}
	task, err := r.env.Tasks.Add(from, func() (*sandbox.Process, error) { return r.process, r.start() })
	if err != nil {
		_ = r.out.Close()
		return tools.Result{}, taskFault(err)
	}
	r.env.Output(r.out)
	return r.began(task, fmt.Sprintf("Started in the background as %s. Its output goes to %s; BashOutput gives what is new and how it ends, KillShell stops it.",
		task.ID, r.out.Path())), nil
}

func taskFault(err error) error {
	switch {
	case errors.Is(err, background.ErrTooMany):
		return fault.Failedf("too_many_tasks", "The command was not started: %v. Stop one with KillShell, or run this in the foreground.", err)
	case errors.Is(err, background.ErrClosed):
		return startFault(err)
	}
	return err
}

// handOver makes a task of a shell whose time in the foreground is up. When there is no room for one it is stopped.
func (r *shellRun) handOver() (tools.Result, error) {
	from := background.Origin{Call: r.env.CallID, Command: r.in.Command, Output: r.out}
	task, err := r.env.Tasks.Add(from, func() (*sandbox.Process, error) { return r.process, nil })
	if err != nil {
		r.process.Stop()
		r.note("It could not go on in the background: %v.", err)
		result, _ := r.end(context.Background(), r.process.Wait())
		return result, tools.ErrTimeout
	}
	return r.began(task, fmt.Sprintf("The time limit ran out, and the command goes on in the background as %s. BashOutput gives what it has printed, which goes to %s, and how it ends; KillShell stops it.",
		task.ID, r.out.Path())), nil
}

func (r *shellRun) began(task *background.Task, text string) tools.Result {
	result := tools.Text(text + r.noted())
	result.Structured = Structured{TaskID: task.ID, OutputPath: r.out.Path(), WorkingDirectory: r.dir}
	result.Changes.Task = task.ID
	return result
}

// end makes the result of a shell that has ended.
func (r *shellRun) end(ctx context.Context, exit sandbox.Exit) (tools.Result, error) {
	if err := r.out.Close(); err != nil && exit.Output == nil {
		exit.Output = err
	}
	changes := r.changes(exit)
	result, err := r.result(exit)
	result.Changes = changes
	switch {
	case exit.Output != nil:
		return result, outputFault(exit.Output, r.out)
	case exit.Stopped && ctx.Err() != nil:
		return result, context.Cause(ctx)
	}
	return result, err
}

// outputFault tells a full disk and a full quota from the command's own failure.
func outputFault(err error, out *spool.Output) error {
	var shared *spool.LimitError
	switch {
	case errors.As(err, &shared):
		return fault.Failedf("output_limit", "The command was stopped because its output would have taken %s over their limit of %d bytes, and there is none left of a call that has ended to make room. What came, %d bytes, is in %s. Let it print less, or write to a file.", shared.Of, shared.Bytes, out.Total(), out.Path())
	case errors.Is(err, spool.ErrLimit):
		return fault.Failedf("output_limit", "The command was stopped because it had printed %d bytes, which is as much as one call may. What came is in %s. Let it print less, or write to a file.", out.Total(), out.Path())
	case errors.Is(err, spool.ErrFull):
		return fault.Failedf("disk_full", "The command was stopped because the disk that keeps its output is full; that is not the command's own failure. The first %d bytes are in %s. Free space on that disk, then send it again.", out.Total(), out.Path())
	}
	return fault.Failedf("io_error", "The command was stopped because its output could not be kept: %v.", err)
}
