// A tool for tests of order and of endings: a call of it says when it has begun, and goes on when it is let through.

package daemon_test

import (
	"context"
	"sync"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// passage is the input of a gate.
type passage struct {
	Name   string `json:"name"`
	Writes bool   `json:"writes,omitempty" jsonschema:"it counts as a program of unknown effect"`
	Panics bool   `json:"panics,omitempty"`
	Reads  string `json:"reads,omitempty" jsonschema:"a file or directory that it declares"`
	Edits  string `json:"edits,omitempty" jsonschema:"a file that it declares to change"`
}

// gate is the tool with its calls, by the name in their input.
type gate struct {
	tools.Tool
	mu    sync.Mutex
	calls map[string]*passing
}

type passing struct {
	began chan struct{}
	leave chan error // of size 1: the test may be first
}

// newGate makes a gate as a tool of that name.
func newGate(spec tools.Spec) *gate {
	g := &gate{calls: map[string]*passing{}}
	g.Tool = tools.New(spec, tools.Funcs[passage]{
		Effects: passage.effects,
		Run:     g.run,
	})
	return g
}

func (p passage) effects() tools.Effects {
	e := tools.Effects{Opaque: p.Writes, Reason: "it is a gate"}
	if p.Reads != "" {
		e.Reads = []tools.Path{{Name: p.Reads, Tree: true}}
	}
	if p.Edits != "" {
		e.Writes = []tools.Path{{Name: p.Edits}}
	}
	return e
}

// gateTool is a gate that behaves as Bash does: interruptible, and its failure aborts its siblings.
func gateTool() *gate {
	return newGate(tools.Spec{Name: "Gate", OnInterrupt: tools.Stop, OnFailure: tools.AbortSiblings})
}

func (g *gate) call(name string) *passing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[name] == nil {
		g.calls[name] = &passing{began: make(chan struct{}), leave: make(chan error, 1)}
	}
	return g.calls[name]
}

func (g *gate) run(ctx context.Context, _ *tools.Env, p passage) (tools.Result, error) {
	c := g.call(p.Name)
	close(c.began) // a second run of the same call panics
	if p.Panics {
		panic("a gate that breaks")
	}
	select {
	case err := <-c.leave:
		return tools.Text("through"), err
	case <-ctx.Done():
		return tools.Text("not through"), context.Cause(ctx)
	}
}

// await returns when the calls have begun.
func (g *gate) await(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		select {
		case <-g.call(name).began:
		case <-t.Context().Done():
			t.Fatalf("%s has not begun", name)
		}
	}
}

// began reports whether the call has begun.
func (g *gate) began(name string) bool {
	select {
	case <-g.call(name).began:
		return true
	default:
		return false
	}
}

func (g *gate) open(names ...string) {
	for _, name := range names {
		g.call(name).leave <- nil
	}
}

func (g *gate) fail(name string) {
	g.call(name).leave <- fault.Failedf("gate_failed", "The gate %s did not open.", name)
}
