// One run of a program, from its input to its end.

package program

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// A running is a program while it runs.
type running struct {
	program *Program
	env     *tools.Env
	out     *spool.Output // its standard output
	list    listing       // the same, if it may be a list of blocks
	said    speech        // its standard error
}

func (p *Program) run(ctx context.Context, env *tools.Env, input json.RawMessage) (tools.Result, error) {
	if cause := context.Cause(ctx); cause != nil {
		return tools.Result{}, cause
	}
	if err := p.possible(env); err != nil {
		return tools.Result{}, err
	}
	out, err := env.Spool.Create(env.CallID)
	if err != nil {
		return tools.Result{}, err
	}
	r := &running{program: p, env: env, out: out, said: speech{report: env.Report, tail: sandbox.Ending{Most: maxTail}}}
	process, err := r.start(input)
	if err != nil {
		_ = out.Close()
		return tools.Result{}, fault.Failedf("start_failed", "The program was not started: %v. Nothing was run; it can be sent again.", err)
	}
	env.Output(out)
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Stop()
	}
	exit := process.Wait()
	r.said.end()
	if err := out.Close(); err != nil && exit.Output == nil {
		exit.Output = err
	}
	result, err := r.result(ctx, exit)
	switch {
	case exit.Output != nil:
		return result, tools.OutputFault("program", exit.Output, out)
	case exit.Stopped && ctx.Err() != nil:
		return result, context.Cause(ctx)
	}
	return result, err
}

// start starts the program with the environment of other calls, except for PATH, which is the
// daemon's.
func (r *running) start(input json.RawMessage) (*sandbox.Process, error) {
	p := r.program
	path, err := p.locate()
	if err != nil {
		return nil, err
	}
	box := r.env.Box.Ready()
	box.Policy = opened(box.Policy, path, p.Command[1:])
	return box.Start(sandbox.Command{
		ID: r.env.CallID, Path: path, Args: p.Command, Dir: r.env.Dir, Env: box.Environ(r.env.Environ, r.set()...),
		Input: append(bytes.Clone(input), '\n'), Stdout: io.MultiWriter(r.out.Writer(spool.Stdout), &r.list), Stderr: &r.said,
	})
}
