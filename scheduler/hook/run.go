// Running the hooks of one event concurrently, those that are processes in this file.

package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

// Limits of what is kept of a hook's output or response, in bytes. The rest is dropped as it comes.
const (
	maxOut = 1 << 20
	maxErr = 64 << 10
)

// A Runner runs the hooks of one session.
type Runner struct {
	Processes  *sandbox.Runner
	ProjectDir string // the value of CLAUDE_PROJECT_DIR and TOOLD_PROJECT_DIR; absolute
	Dir        string // the working directory; absolute. If it is gone, hooks run in the project's directory
	// Environ is the client's environment, as NAME=value. Processes get it as other children do,
	// without what looks like a credential or would change what a program runs. Requests get the
	// variables that the hook allows by name.
	Environ []string
	// AllowedURLs are the only URLs that requests may go to, with * for any characters of the host
	// or of what follows it; a single * is any URL. nil: all are allowed.
	AllowedURLs []string
	// Filter filters the environment of processes.
	Filter sandbox.Filter
	// Secrets in events are replaced by marks: those that package redact recognises by their form,
	// those of Environ, and what Patterns match. For the administrator's hooks, from which a user
	// must not hide what they watch, only the forms and ManagedPatterns count. Plain sends hooks
	// everything.
	Patterns, ManagedPatterns []*regexp.Regexp
	Plain                     bool
}

// Run sends the event in to all hooks at once and joins their answers. It returns when each has
// ended, at the latest at its limit or with ctx. A process that does not end after SIGTERM is
// killed 2 s later, and nothing that a hook has started is left. A failure of a hook is in the
// Result.
func (r Runner) Run(ctx context.Context, hooks []*Hook, in Input) Result {
	if len(hooks) == 0 {
		return Result{}
	}
	tellings := map[bool]telling{} // by whether the hook is the administrator's
	for _, h := range hooks {
		if _, done := tellings[h.Origin.Managed]; !done {
			tellings[h.Origin.Managed] = r.telling(in, h.Origin.Managed)
		}
	}
	all := make([]heard, len(hooks))
	var running sync.WaitGroup
	for i, h := range hooks {
		running.Go(func() {
			told := tellings[h.Origin.Managed]
			end := ending{failure: fmt.Sprintf("could not receive the event: %v", told.err)}
			if told.err == nil {
				end = r.one(ctx, h, told.text)
			}
			all[i] = end.hear(h, in.Event, told.input)
		})
	}
	running.Wait()
	return join(hooks, all, &in)
}

// errLimit is the cause when a hook's own time limit ends it.
var errLimit = errors.New("the hook's time is over")

// one runs one hook under its limit.
func (r Runner) one(ctx context.Context, h *Hook, input []byte) ending {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limit(), errLimit)
	defer cancel()
	switch {
	case h.Broken != "":
		return ending{failure: "cannot be run: " + h.Broken}
	case h.URL != "":
		return r.post(ctx, h, input)
	}
	return r.start(ctx, h, input)
}

// stopped returns, as a clause, why a hook was stopped after ctx had ended.
func (h *Hook) stopped(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return "was stopped: " + sandbox.ErrClosed.Error()
	case errors.Is(cause, errLimit):
		return fmt.Sprintf("did not end within its limit of %s and was stopped", h.limit().Round(time.Millisecond))
	default:
		return "was stopped with its call: " + cause.Error()
	}
}

// start runs a hook's process until its end, or until ctx ends.
func (r Runner) start(ctx context.Context, h *Hook, input []byte) ending {
	if ctx.Err() != nil {
		return ending{failure: "was not started: " + context.Cause(ctx).Error()}
	}
	out, err := &sandbox.Beginning{Most: maxOut}, &sandbox.Beginning{Most: maxErr}
	command, refused := r.command(h)
	if refused != nil {
		return ending{failure: "could not be started: " + refused.Error()}
	}
	command.Input, command.Stdout, command.Stderr = input, out, err
	process, refused := r.Processes.Start(command)
	if refused != nil {
		return ending{failure: "could not be started: " + refused.Error()}
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Stop()
	}
	exit := process.Wait()
	e := ending{out: out.String(), cut: out.Cut, err: err.String(), errCut: err.Cut, code: exit.Code, notes: leftBehind(exit)}
	switch {
	case exit.Stopped:
		e.failure = h.stopped(ctx)
	case exit.Signal != "":
		e.failure = "was ended by " + exit.Signal
	case exit.Code < 0:
		e.failure = "ended in an unknown way"
	}
	return e
}

// command returns the command to start. The error names what does not exist.
func (r Runner) command(h *Hook) (sandbox.Command, error) {
	c := sandbox.Command{
		ID: "hook", Path: "/bin/sh", Args: []string{"sh", "-c", h.Command}, Dir: r.dir(),
		Env: r.Filter.Environ(r.Environ, "CLAUDE_PROJECT_DIR="+r.ProjectDir, "TOOLD_PROJECT_DIR="+r.ProjectDir),
	}
	if h.Args == nil {
		return c, nil
	}
	places := strings.NewReplacer(projectDirs[0], r.ProjectDir, projectDirs[1], r.ProjectDir)
	c.Args = []string{places.Replace(h.Command)}
	for _, arg := range h.Args {
		c.Args = append(c.Args, places.Replace(arg))
	}
	var err error
	c.Path, err = pathname.Program(c.Args[0], r.ProjectDir, c.Env)
	return c, err
}

// dir returns the directory in which a hook runs. A hook still runs if the working directory was
// removed.
func (r Runner) dir() string {
	for _, dir := range []string{r.Dir, r.ProjectDir} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/"
}

// leftBehind returns notes about processes that the hook had started and not ended.
func leftBehind(exit sandbox.Exit) (notes []string) {
	if n := len(exit.LeftBehind); n > 0 {
		notes = append(notes, fmt.Sprintf("left %d processes running (%q is one), which were ended with it", n, exit.LeftBehind[0].Name))
	}
	if n := len(exit.Stuck); n > 0 {
		notes = append(notes, fmt.Sprintf("left %d processes that the kernel does not let end (%q is one)", n, exit.Stuck[0].Name))
	}
	return notes
}
