// Package program makes tools of programs that a settings file names: the input is sent to standard
// input, the result is read from standard output, and lines on standard error are progress. It does
// not know which file names a program, nor who permits its calls.
package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/tools"
)

// A Program is a tool that is a program.
type Program struct {
	Name, Description string
	// InputSchema is the JSON Schema of the input; empty: an object without fields.
	InputSchema json.RawMessage
	// Command is the program, absolute or a name without a slash, and its arguments.
	Command []string
	// ReadOnly confines the program to reading, beside other calls and without a question. If
	// nothing can confine it, its calls are refused: its own declaration is not trusted.
	ReadOnly bool
	Timeout  time.Duration // of one call; 0: two minutes
	CacheTTL time.Duration // of results, only if ReadOnly; 0: not cached
	Origin   string        // the position of its entry, for messages
}

// usualTime is the time limit if neither the entry nor the call has one: the same as Bash's.
const usualTime = 2 * time.Minute

// noFields is the schema of a program without input.
const noFields = `{"type":"object","properties":{},"additionalProperties":false}`

// Tool returns the tool. It caches results for its user, so it must not be shared by sessions. The
// error describes what is wrong with the program, and where it is named.
func Tool(p Program) (tools.Tool, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: the tool %q has no effect: %w", p.Origin, p.Name, err)
	}
	if len(p.InputSchema) == 0 {
		p.InputSchema = json.RawMessage(noFields)
	}
	tool, err := tools.NewExternal(p.spec(), p.InputSchema, tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return p.effects() },
		Check: func(_ context.Context, env *tools.Env, _ json.RawMessage) (tools.Preview, error) {
			return tools.Preview{}, p.possible(env)
		},
		Run: p.run,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: the tool %q has no effect: %w", p.Origin, p.Name, err)
	}
	if p.ReadOnly && p.CacheTTL > 0 {
		tool = tools.Cached(tool, p.CacheTTL)
	}
	return tool, nil
}

func (p *Program) check() error {
	switch {
	case len(p.Command) == 0 || p.Command[0] == "":
		return errors.New("it has no command")
	case strings.Contains(p.Command[0], "/") && p.Command[0][0] != '/':
		return fmt.Errorf("its program %q is relative", p.Command[0])
	}
	return nil
}

func (p *Program) spec() tools.Spec {
	spec := tools.Spec{
		Name: p.Name, Description: p.Description, Origin: tools.Program, TimeLimit: cmp.Or(p.Timeout, usualTime),
		ReadOnly: p.ReadOnly, Destructive: !p.ReadOnly, OpenWorld: !p.ReadOnly,
		Available: func(*tools.Env) string { return p.missing() },
	}
	if p.ReadOnly {
		spec.OnInterrupt = tools.Stop
	}
	return spec
}

// effects declares that a read-only program may read its directory: the sandbox enforces that, and
// hides what rules deny.
func (p *Program) effects() tools.Effects {
	if p.ReadOnly {
		return tools.Effects{Reads: []tools.Path{{Name: ".", Tree: true}}}
	}
	return tools.Effects{Opaque: true, External: p.words(), Reason: "it runs " + p.words()}
}

// words returns the name of the program for a message.
func (p *Program) words() string {
	const most = 80 // of a line for a shell
	name := p.Command[0]
	if len(p.Command) == 3 && name == "sh" && p.Command[1] == "-c" {
		name = p.Command[2]
	}
	name, _, several := strings.Cut(name, "\n")
	if r := []rune(name); len(r) > most {
		name, several = string(r[:most]), true
	}
	if several {
		name += "..."
	}
	return "the program `" + name + "`"
}
