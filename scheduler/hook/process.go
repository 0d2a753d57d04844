// Hooks that are processes.

package hook

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

const shell = "/bin/sh"

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
		ID: "hook", Path: shell, Args: []string{"sh", "-c", h.Command}, Dir: r.dir(),
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
