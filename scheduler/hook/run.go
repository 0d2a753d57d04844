// Runs the hooks of one event side by side. How each is told, and what it may see, is process.go's and request.go's.

package hook

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/toold/toold/tools/sandbox"
)

// What is kept of what a hook prints or answers, in bytes. What comes after it is dropped as it comes.
const (
	maxOut = 1 << 20
	maxErr = 64 << 10
)

// A Runner is what hooks of one session are run with.
type Runner struct {
	Processes  *sandbox.Runner
	ProjectDir string // what CLAUDE_PROJECT_DIR and TOOLD_PROJECT_DIR say; absolute
	Dir        string // the working directory; absolute. If it is gone, hooks run in the project's
	// Environ is the client's environment, as NAME=value. Processes get it as other children do, without what looks like
	// a credential or would change what a program runs; requests get of it what the hook allows by name.
	Environ []string
	// AllowedURLs are the only ones that requests go to, with * for any characters of the host or of what follows it; a
	// lone * is any URL. nil: all are.
	AllowedURLs []string
	// Filter is what the environment of processes is filtered by.
	Filter sandbox.Filter
	// Secrets in what hooks are told are replaced by marks: those that package redact knows by their form, those of Environ,
	// and what Patterns match. For the administrator's hooks, from which nobody can hide what they watch over, these are
	// the forms and ManagedPatterns alone. Plain: hooks are told everything.
	Patterns, ManagedPatterns []*regexp.Regexp
	Plain                     bool
}

// Run tells all hooks of in's event at once and joins what they say. It returns when each has ended, at the latest at
// its limit or with ctx; a process that does not end when it is told to is killed 2 s after that, and nothing that a hook
// has started is left. A hook that fails is in the Result, never an error.
func (r Runner) Run(ctx context.Context, hooks []*Hook, in Input) Result {
	if len(hooks) == 0 {
		return Result{}
	}
	told := r.input(in, hooks)
	all := make([]heard, len(hooks))
	var running sync.WaitGroup
	for i, h := range hooks {
		running.Go(func() {
			told := told(h)
			end := ending{failure: fmt.Sprintf("could not be told: %v", told.err)}
			if told.err == nil {
				end = r.one(ctx, h, told.text)
			}
			all[i] = end.hear(h, in.Event, told.input)
		})
	}
	running.Wait()
	return join(hooks, all, &in)
}

// errLimit is the cause by which a hook's own time limit ends it.
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

// stopped says as a clause why a hook was stopped when ctx had ended.
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
