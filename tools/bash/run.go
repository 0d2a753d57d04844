// One bash process, from its start to its end or to the background.

package bash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/exec/terminal"
	"github.com/toold/toold/tools/fault"
)

// findBash looks up bash once, on the daemon's own PATH.
var findBash = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("bash")
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
})

// fixed are variables of every command, whatever the client's environment has: there is no
// terminal.
var fixed = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive",
}

// A shellRun is one running bash, with what its result needs.
type shellRun struct {
	in       input
	env      *tools.Env
	dir      string // where it started
	environ  []string
	out      *spool.Output
	process  *sandbox.Process
	terminal *terminal.Terminal // nil: it has none
	lasts    bool               // the state at its end becomes the session's
	report   *os.File           // receives that state; nil: it stays as it was
	notes    []string
	command  sandbox.Command // that was started
	stayed   bool            // it has left directory and exports as they were
}

func run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if cause := context.Cause(ctx); cause != nil {
		return tools.Result{}, cause
	}
	if in.Restart {
		result := tools.Text("The next command runs in a new shell: in the directory and with the variables with which the session began.")
		result.Changes.Restart = true
		return result, nil
	}
	r := &shellRun{in: in, env: env}
	defer r.closeReport()
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
	if r.terminal != nil && r.terminal.Settle(ctx) {
		return r.waits(ctx)
	}
	select {
	case <-r.process.Done():
	case <-r.process.Outlived():
		return r.outlived(ctx)
	case d := <-r.process.Refused():
		return r.refused(ctx, d)
	case <-ctx.Done():
		cause := context.Cause(ctx)
		timedOut := errors.Is(cause, tools.ErrTimeout) || errors.Is(cause, context.DeadlineExceeded)
		if timedOut && env.OnTimeout == tools.Background {
			return r.handOver()
		}
		r.process.Stop()
	}
	return r.end(ctx, r.process.Wait())
}

// prepare determines the directory and the environment of the shell.
func (r *shellRun) prepare() (err error) {
	r.dir = r.env.Dir
	if !isDir(r.env.Files.Disk(r.dir)) {
		return fault.Failedf("path_not_found", "The working directory %s no longer exists. Nothing was run.", r.dir)
	}
	if r.env.Gone != "" {
		r.note("The working directory %s no longer exists. The command ran in %s.", r.env.Gone, r.dir)
	}
	r.environ = environ(r.env, r.in, r.dir)
	r.lasts = !r.in.analysis.Concurrent && !r.in.RunInBackground
	if r.in.Timeout > maxTime.Milliseconds() {
		r.note("The timeout of %d ms was cut to %d ms, the longest allowed; run_in_background has no limit.", r.in.Timeout, maxTime.Milliseconds())
	}
	r.noteWithheld()
	if err = r.openReport(); err != nil {
		return startFault(err)
	}
	r.out, err = r.env.Spool.Create(r.env.CallID)
	return err
}

// openReport makes the file for the state of the shell, if the command may change that.
func (r *shellRun) openReport() (err error) {
	exported := asMap(r.environ)
	isExported := func(name string) bool { _, is := exported[name]; return is }
	if r.lasts && shell.Leaves(r.in.Command, isExported) {
		r.report, err = sandbox.NewReport()
	}
	return err
}

func (r *shellRun) closeReport() {
	if r.report != nil {
		_ = r.report.Close()
	}
}

// noteWithheld reports, once in a session, variables of the session that the command names and does
// not get.
func (r *shellRun) noteWithheld() {
	var names []string
	words := strings.FieldsFunc(r.in.Command, func(c rune) bool { return !isName("_" + string(c)) })
	for _, entry := range r.env.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(words, name) && r.env.Box.Filter.Withheld(name) && r.env.First("withheld "+name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		r.note("Removed from the environment of commands: %s. Variables that look like credentials, or change what programs run, reach no command, unless sandbox.environment.keep in the user's settings lists them.", strings.Join(names, ", "))
	}
}

// retries are for programs that would take longer than 10 s to accept that a host is refused: cargo
// tries 4 times by default, and pip 6 times. The session's own values override them.
var retries = []string{"CARGO_NET_RETRY=2", "PIP_RETRIES=3"}

// environ returns the environment of a shell that starts in dir.
func environ(env *tools.Env, in input, dir string) []string {
	own := fixed
	if in.PTY {
		own = interactive
	}
	base, set := append(retries[:len(retries):len(retries)], env.Environ...), append(own[:len(own):len(own)], "PWD="+dir)
	if in.analysis.ReadOnly && in.analysis.Git {
		set = append(set, shell.GitReads...)
	}
	return env.Box.Environ(base, set...)
}

// variables returns the session's variables that reach the shell unchanged.
func variables(env *tools.Env, in input) map[string]string {
	session := asMap(env.Environ)
	reach := asMap(environ(env, in, env.Dir))
	maps.DeleteFunc(reach, func(name, value string) bool {
		theirs, has := session[name]
		return !has || theirs != value
	})
	return reach
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
		Env: r.environ, Stdout: r.out.Writer(spool.Stdout),
	}
	switch {
	case r.in.PTY:
		size := r.in.size()
		r.terminal = terminal.New(size, c.Stdout)
		c.Stdout, c.Terminal = r.terminal, &size
	case !r.in.MergedOutput:
		c.Stderr = r.out.Writer(spool.Stderr)
	}
	if r.in.analysis.Background && !r.in.PTY { // a terminal that hangs up ends what is left
		c.Keep = r.keep
	}
	if !r.in.RunInBackground && !r.in.PTY && mayBeEarly(r.in.Command) {
		c.Early = &sandbox.Early{Script: r.in.Command, Env: c.Env, Prelude: earlyPrelude(r.in.Command, c.Env, r.report != nil, r.programs())}
	}
	r.command = c
	if script, name, err := r.openPrelude(); err != nil {
		return startFault(err)
	} else if script != nil {
		defer script.Close()
		c.Env = append(c.Env[:len(c.Env):len(c.Env)], name)
		if r.report != nil {
			c.Extra = append(c.Extra, r.report)
		}
		c.Extra = append(c.Extra, script)
	}
	if r.process, err = r.env.Box.Start(c); err != nil {
		return startFault(err)
	}
	if r.terminal != nil {
		r.terminal.Follow(r.process, r.env.Box.Secret)
	}
	if report := r.process.Report(); report != nil {
		r.useReport(report)
	}
	return nil
}

// useReport makes report, which a shell that was started beforehand has, the one that is read.
func (r *shellRun) useReport(report *os.File) {
	if r.report == nil {
		_ = report.Close()
		return
	}
	r.closeReport()
	r.report = report
}

// programs returns the files of the verdict by command words, unless the command shows the table.
func (r *shellRun) programs() map[string]string {
	if slices.ContainsFunc(r.in.analysis.Commands, tellsPrograms) {
		return nil
	}
	return r.env.Programs
}

// openPrelude returns the script that the shell reads first, and the variable that names it; nil:
// none is needed.
func (r *shellRun) openPrelude() (script *os.File, name string, err error) {
	programs, descriptor := r.programs(), 3
	if r.report != nil {
		descriptor++
	} else if len(programs) == 0 {
		return nil, "", nil
	}
	text := prelude(r.report != nil, programs)
	if len(text) > maxPrelude {
		text = prelude(r.report != nil, nil)
	}
	script, err = openPrelude(text)
	return script, preludeName + strconv.Itoa(descriptor), err
}

// tellsPrograms reports whether the command prints the shell's table of program paths.
func tellsPrograms(c shell.Command) bool {
	return c.Name == "type" || c.Name == "hash" || c.Name == "command"
}

func startFault(err error) error {
	return fault.Failedf("start_failed", "The command was not started: %v. Nothing was run; it can be sent again.", err)
}

// background starts the shell as a background task and returns at once.
func (r *shellRun) background() (tools.Result, error) {
	task, err := r.task(r.start)
	switch {
	case errors.Is(err, background.ErrTooMany):
		err = fault.Failedf("too_many_tasks", "The command was not started: %v. Stop one with KillShell, or run this in the foreground.", err)
	case errors.Is(err, background.ErrClosed):
		err = startFault(err)
	}
	if err != nil {
		_ = r.out.Close()
		return tools.Result{}, err
	}
	r.env.Output(r.out)
	return r.began(task, fmt.Sprintf("Started in the background as %s. Its output goes to %s; BashOutput returns what is new and how it ends, KillShell stops it.",
		task.ID, r.out.Path())), nil
}

// task makes a background task of the shell, if there is room for one, after start.
func (r *shellRun) task(start func() error) (*background.Task, error) {
	from := background.Origin{Call: r.env.CallID, Command: r.in.Command, Output: r.out}
	return r.env.Tasks.Add(from, func() (*sandbox.Process, *terminal.Terminal, error) {
		err := start()
		return r.process, r.terminal, err
	})
}

// adopt makes a background task of the running shell. If there is no room for one, it stops the
// shell and returns nil.
func (r *shellRun) adopt() *background.Task {
	task, err := r.task(func() error { return nil })
	if err != nil {
		r.process.Stop()
		r.process.Wait()
		r.note("It could not continue in the background: %v.", err)
	}
	return task
}

// handOver makes a background task of a shell whose time limit has run out.
func (r *shellRun) handOver() (tools.Result, error) {
	task := r.adopt()
	if task == nil {
		result, _ := r.end(context.Background(), r.process.Wait())
		return result, tools.ErrTimeout
	}
	return r.began(task, fmt.Sprintf("The time limit ran out, and the command continues in the background as %s. Its output goes to %s; BashOutput returns it, and how the command ends. KillShell stops it.",
		task.ID, r.out.Path())), nil
}

func (r *shellRun) began(task *background.Task, text string) tools.Result {
	s := Structured{TaskID: task.ID, Printed: tools.Printed{OutputPath: r.out.Path()}, WorkingDirectory: r.dir, Ports: r.env.Ports(task)}
	if ports := s.serves(); ports != "" {
		text += "\n" + strings.TrimSuffix(ports, "\n")
	}
	result := tools.Text(text + r.noted())
	result.Structured = s
	result.Changes.Task = task.ID
	return result
}

// end returns the result of a shell that has ended.
func (r *shellRun) end(ctx context.Context, exit sandbox.Exit) (tools.Result, error) {
	release := r.out.Hold()
	ended := r.out.Close()
	result, err := r.result(exit, nil) // which reads the output
	if failed := cmp.Or(ended, release()); failed != nil && exit.Output == nil {
		exit.Output = failed
	}
	if r.stayed && !exit.Stopped {
		r.env.Box.Prepare(r.command)
	}
	switch {
	case exit.Output != nil:
		return result, tools.OutputFault("command", exit.Output, r.out)
	case exit.Stopped && ctx.Err() != nil:
		return result, context.Cause(ctx)
	}
	return result, err
}

// keep returns how many of the processes that the script has left running may continue. A script
// that has failed may leave none.
func (r *shellRun) keep(code, left int, done <-chan struct{}) int {
	r.out.Flush()
	if _, benign := shell.Benign(r.in.analysis.Last, code, r.out.Size(spool.Stdout)); code != 0 && !benign {
		return 0
	}
	return r.env.Tasks.Leave(left, done)
}

// outlived makes a task of the processes that the script has left running, and returns the result
// of the script itself.
func (r *shellRun) outlived(ctx context.Context) (tools.Result, error) {
	exit, task := r.process.Main(), r.adopt()
	if task == nil {
		exit.LeftBehind, exit.Kept = append(exit.Kept, exit.LeftBehind...), nil
		return r.end(ctx, exit)
	}
	return r.result(exit, task)
}

// refused stops a shell whose programs request the same host repeatedly.
func (r *shellRun) refused(ctx context.Context, d sandbox.Denial) (tools.Result, error) {
	r.process.Stop()
	exit := r.process.Wait()
	if !exit.Stopped {
		return r.end(ctx, exit)
	}
	text := fmt.Sprintf("The command was stopped because the host %q was refused %d times: no setting or answer allows it, and repeating the request does not help.", d.Target, d.Count)
	r.note("%s", text)
	result, err := r.end(ctx, exit)
	if exit.Output != nil || ctx.Err() != nil {
		return result, err
	}
	return result, fault.Failedf("host_refused", "%s", text).With(Refused{Host: d.Target, Count: d.Count})
}
