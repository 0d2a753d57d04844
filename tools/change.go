// Tools that change one file: what they have in common from the check to the result.

package tools

import (
	"context"
	"time"

	"github.com/toold/toold/tools/fs/workspace"
)

// A Change is the new content of a file, computed in memory. Nothing is written.
type Change interface {
	Update() workspace.Update
	// Diff returns the unified diff that a question and the result show; path is the file's name in
	// it.
	Diff(path string) string
	// Result returns the result of the call once the change is made.
	Result(w workspace.Written) Result
}

// Changing is what distinguishes the tools that change one file. Path and Plan are required.
type Changing[In any] struct {
	Validate func(*In) error // as in Funcs
	Field    string          // the input's field with the path, as a JSON pointer
	Path     func(In) string // its value
	// Plan computes the change of a content. The check and the run call it, each with the content
	// at that time.
	Plan func(context.Context, *Env, *workspace.Content, In) (Change, error)
}

// NewChange makes a Tool that changes one file. Faults without a field are blamed on the path.
func NewChange[In any](name, description string, c Changing[In]) Tool {
	spec := Spec{Name: name, Description: description, Destructive: true, TimeLimit: 60 * time.Second}
	return New(spec, Funcs[In]{
		Validate: c.Validate,
		Effects: func(in In) Effects {
			p := []Path{{Name: c.Path(in)}}
			return Effects{Reads: p, Writes: p}
		},
		Check: func(ctx context.Context, env *Env, in In) (Preview, error) {
			preview, err := c.check(ctx, env, in)
			return preview, workspace.Blame(err, c.Field)
		},
		Run: func(ctx context.Context, env *Env, in In) (Result, error) {
			result, err := c.run(ctx, env, in)
			return result, workspace.Blame(err, c.Field)
		},
	})
}

// check computes the change without writing it.
func (c Changing[In]) check(ctx context.Context, env *Env, in In) (Preview, error) {
	if err := env.Files.Absolute(c.Path(in)); err != nil {
		return Preview{}, err
	}
	old, err := env.Files.Look(c.Path(in))
	if err != nil {
		return Preview{}, err
	}
	change, err := c.Plan(ctx, env, old, in)
	if err != nil {
		return Preview{}, err
	}
	return Preview{Diff: change.Diff(old.Path.Shown()), Ask: old.OtherNames()}, nil
}

func (c Changing[In]) run(ctx context.Context, env *Env, in In) (Result, error) {
	if err := env.Files.Absolute(c.Path(in)); err != nil {
		return Result{}, err
	}
	var change Change
	written, err := env.Files.Change(ctx, c.Path(in), func(old *workspace.Content) (_ workspace.Update, err error) {
		if change, err = c.Plan(ctx, env, old, in); err != nil {
			return workspace.Update{}, err
		}
		return change.Update(), nil
	})
	if err != nil {
		return Result{}, err
	}
	return change.Result(written), nil
}
