// The Restore tool. It is made for one plan and is not in any pool. A call of it runs through the
// pipeline, so it is ordered, judged, recorded and kept like any other.

package checkpoint

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// ToolName is the tool's name in rules and hooks.
const ToolName = "Restore"

// Input is what a call of the tool is shown as.
type Input struct {
	Session string   `json:"session" jsonschema:"whose calls are undone"`
	Before  string   `json:"before" jsonschema:"the turn or call before which the files were as they shall be"`
	Paths   []string `json:"paths" jsonschema:"the files that are put back, or the first of them"`
	More    int      `json:"more,omitempty" jsonschema:"how many files are put back beside those of paths"`
	Force   bool     `json:"force,omitempty" jsonschema:"also where another program has changed a file since"`
}

// Structured is the result for programs.
type Structured struct {
	Restored        []string `json:"restored"`
	MoreRestored    int      `json:"moreRestored,omitempty"` // beside those
	NotRestored     []Reason `json:"notRestored,omitempty"`
	MoreNotRestored int      `json:"moreNotRestored,omitempty"`
}

// ToldBytes is how many bytes of names an input or a result of the tool has at most of one kind. The rest is counted.
const ToldBytes = 64 << 10

// A Reason is why a path was not put back, or not quite.
type Reason struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Tool returns a tool that carries out a plan, once. again computes the plan again: if it differs
// by now, the call is refused. done is called with the outcome of every step. Contents come from
// the store.
func (s *Store) Tool(plan *Plan, again func() (*Plan, error), done func([]workspace.RestoreStep)) tools.Tool {
	var writes []tools.Path
	for _, step := range plan.Steps {
		writes = append(writes, tools.Path{Name: workspace.NameOf(step.Real), Literal: true})
		if step.From != "" && !step.Twin {
			writes = append(writes, tools.Path{Name: workspace.NameOf(step.From), Literal: true}) // which gets another name
		}
	}
	shown := plan.Digest()
	spec := tools.Spec{
		Name: ToolName, Description: "Puts files back to how they were before a turn or a call.", Destructive: true, TimeLimit: 10 * time.Minute,
	}
	return tools.New(spec, tools.Funcs[Input]{
		Effects: func(Input) tools.Effects { return tools.Effects{Writes: writes} },
		Check: func(context.Context, *tools.Env, Input) (tools.Preview, error) {
			now, err := again()
			if err != nil {
				return tools.Preview{}, err
			}
			if now.Digest() != shown {
				return tools.Preview{}, fault.Invalidf("plan_changed", "Something has changed since it was worked out what would be put back. Nothing was; look again and send it again.")
			}
			plan = now
			return tools.Preview{}, nil
		},
		Run: func(ctx context.Context, env *tools.Env, _ Input) (tools.Result, error) {
			told, err := plan.run(ctx, env, s)
			if err != nil {
				return tools.Result{}, err
			}
			done(told)
			return resultOf(told), nil
		},
	})
}

func (p *Plan) run(ctx context.Context, env *tools.Env, s *Store) ([]workspace.RestoreStep, error) {
	puts := make([]workspace.Put, 0, len(p.Steps))
	for _, step := range p.Steps {
		if step.Now.Kind == workspace.Regular && step.Now.Hash != step.Want.Hash && !s.Has(step.Now.Hash) {
			return nil, fault.Failedf("not_kept", "What stands at %s now could not be kept, so nothing was put back. Leave it out with paths.", workspace.NameOf(step.Real))
		}
		puts = append(puts, step.Put)
	}
	return env.Files.Restore(ctx, puts, func(hash string) ([]byte, error) {
		data, err := s.Read(hash)
		if err != nil {
			return nil, fault.Failedf("not_kept", "Of a file that is to be put back, %v. Nothing was put back.", err)
		}
		return data, nil
	})
}

// resultOf returns the call's text about what it did, as far as there is room.
func resultOf(told []workspace.RestoreStep) tools.Result {
	out := Structured{Restored: []string{}}
	var text strings.Builder
	restored, reasons, done := ToldBytes, ToldBytes, 0
	for _, t := range told {
		name := workspace.NameOf(t.Real)
		if t.Done {
			done++
			if restored -= len(name); restored >= 0 {
				out.Restored = append(out.Restored, name)
			} else {
				out.MoreRestored++
			}
		}
		if t.Note == "" {
			continue
		}
		if reasons -= len(name) + len(t.Note); reasons < 0 {
			out.MoreNotRestored++
			continue
		}
		out.NotRestored = append(out.NotRestored, Reason{name, t.Note})
		fmt.Fprintf(&text, "\n%s: %s", name, t.Note)
	}
	if out.MoreNotRestored > 0 {
		fmt.Fprintf(&text, "\n(and %d more)", out.MoreNotRestored)
	}
	result := tools.Text(fmt.Sprintf("Put back %d of %d paths.%s", done, len(told), text.String()))
	result.Structured = out
	return result
}
