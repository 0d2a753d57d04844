// Package edit is the Edit and the MultiEdit tool: they replace text in a file exactly where the
// model means it, or not at all. What is not replaced keeps its bytes. The package does not know
// which files may be changed, nor how a file is written to the disk.
package edit

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

//go:embed description.md
var description string

//go:embed multi.md
var multiDescription string

const timeLimit = 60 * time.Second

type single struct {
	FilePath string `json:"file_path" jsonschema:"absolute path of the file"`
	Replacement
}

type several struct {
	FilePath string        `json:"file_path" jsonschema:"absolute path of the file"`
	Edits    []Replacement `json:"edits" jsonschema:"the replacements, made in order, each in the result of the one before"`
}

// Structured is the result for programs.
type Structured struct {
	FilePath     string   `json:"filePath"` // absolute, as named
	Created      bool     `json:"created"`
	Replacements int      `json:"replacements"`        // replaced occurrences, of all edits together
	Encoding     string   `json:"encoding"`            // of the file
	LineEnding   string   `json:"lineEnding"`          // of the file after the change: "lf", "crlf", "mixed" or "none"
	Diff         string   `json:"diff"`                // unified diff of the change
	Tolerated    []string `json:"tolerated,omitempty"` // differences that were ignored to find old_string
	Drift        string   `json:"drift,omitempty"`     // unified diff of changes since the file was read
	InEditor     bool     `json:"inEditor,omitempty"`  // an editor holds the file open and has made the change there
}

// An order is a call of either tool.
type order struct {
	path string
	list []Replacement
}

// Tool returns the Edit tool.
func Tool() tools.Tool {
	return newTool("Edit", description, func(in *single) error { return validate(in.Replacement) }, func(in single) order {
		return order{in.FilePath, []Replacement{in.Replacement}}
	})
}

// MultiTool returns the MultiEdit tool.
func MultiTool() tools.Tool {
	return newTool("MultiEdit", multiDescription, validateAll, func(in several) order { return order{in.FilePath, in.Edits} })
}

// newTool makes either tool; of converts an input to an order.
func newTool[In any](name, description string, validate func(*In) error, of func(In) order) tools.Tool {
	spec := tools.Spec{Name: name, Description: description, Destructive: true, TimeLimit: timeLimit}
	return tools.New(spec, tools.Funcs[In]{
		Validate: validate,
		Effects:  func(in In) tools.Effects { return of(in).effects() },
		Check: func(_ context.Context, env *tools.Env, in In) (tools.Preview, error) {
			preview, err := of(in).check(env)
			return preview, workspace.Blame(err, "/file_path")
		},
		Run: func(ctx context.Context, env *tools.Env, in In) (tools.Result, error) {
			result, err := of(in).run(ctx, env)
			return result, workspace.Blame(err, "/file_path")
		},
	})
}

func validate(r Replacement) error {
	if r.OldString == r.NewString {
		return fault.Invalidf("same_string", "old_string and new_string are the same; there is nothing to change.").At("/new_string")
	}
	return nil
}

func validateAll(in *several) error {
	if len(in.Edits) == 0 {
		return fault.Invalidf("invalid_input", "edits is empty; send at least one replacement.").At("/edits")
	}
	for i, r := range in.Edits {
		if err := validate(r); err != nil {
			return inList(err, i, len(in.Edits))
		}
	}
	return nil
}

func (o order) effects() tools.Effects {
	p := []tools.Path{{Name: o.path}}
	return tools.Effects{Reads: p, Writes: p}
}

// check computes the change without writing it.
func (o order) check(env *tools.Env) (tools.Preview, error) {
	if err := env.Files.Absolute(o.path); err != nil {
		return tools.Preview{}, err
	}
	c, err := env.Files.Look(o.path)
	if err != nil {
		return tools.Preview{}, err
	}
	p, err := devise(c, o.list, func() error { return env.Files.Missing(c) })
	if err != nil {
		return tools.Preview{}, err
	}
	return tools.Preview{Diff: p.diff(c.Path.Shown()), Ask: c.OtherNames()}, nil
}

func (o order) run(ctx context.Context, env *tools.Env) (tools.Result, error) {
	if err := env.Files.Absolute(o.path); err != nil {
		return tools.Result{}, err
	}
	var p *plan
	written, err := env.Files.Change(ctx, o.path, func(c *workspace.Content) (workspace.Update, error) {
		var err error
		if p, err = devise(c, o.list, func() error { return env.Files.Missing(c) }); err != nil {
			return workspace.Update{}, err
		}
		return workspace.Update{Data: p.raw}, nil
	})
	if err != nil {
		return tools.Result{}, err
	}
	result := tools.Text(p.report(written))
	result.Structured = Structured{
		FilePath: written.Path.Name(), Created: written.Created, Replacements: p.count, Encoding: p.doc.Encoding.Name(),
		LineEnding: string(text.Endings(p.doc.String)), Diff: p.diff(written.Path.Shown()), Tolerated: p.tolerated, Drift: p.drift,
		InEditor: written.InEditor != "",
	}
	return result, nil
}

func (p *plan) diff(path string) string { return text.Patch(path, p.old.String, p.doc.String) }

// report returns the text for the model.
func (p *plan) report(w workspace.Written) string {
	var b strings.Builder
	switch {
	case w.Created:
		fmt.Fprintf(&b, "Created %s.\n", w.Path.Shown())
	case p.count == 1:
		fmt.Fprintf(&b, "Updated %s: one place was changed.\n", w.Path.Shown())
	default:
		fmt.Fprintf(&b, "Updated %s: %d places were changed.\n", w.Path.Shown(), p.count)
	}
	if w.OtherNames != "" {
		fmt.Fprintf(&b, "Note: %s\n", w.OtherNames)
	}
	if w.InEditor != "" {
		fmt.Fprintf(&b, "Note: %s\n", w.InEditor)
	}
	for _, note := range p.tolerated {
		fmt.Fprintf(&b, "Note: %s.\n", note)
	}
	if p.drifted {
		b.WriteString("Note: the file had changed since it was read; old_string was still unique in it, so the edit was made. ")
		if p.drift != "" {
			b.WriteString("What had changed:\n" + p.drift)
		} else {
			fmt.Fprintf(&b, "What had changed cannot be shown, since contents above %d KiB are not kept; read the file again before relying on the rest of it.\n", workspace.KeptFile>>10)
		}
	}
	b.WriteString(text.Snippet(p.doc.String, p.spans))
	return b.String()
}

func sortSpans(spans []text.Span) {
	slices.SortFunc(spans, func(a, b text.Span) int { return a.First - b.First })
}
