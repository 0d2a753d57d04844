// The FileSearch tool: its input, what a call of it will touch, and its way from the one to the
// result.

package main

import (
	"cmp"
	"context"
	_ "embed"
	"path/filepath"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

//go:embed description.md
var description string

// An Input is the tool's input.
type Input struct {
	Pattern     string   `json:"pattern" jsonschema:"regular expression in RE2 syntax"`
	Path        string   `json:"path,omitempty" jsonschema:"directory or file, absolute or relative to the working directory; default: the working directory"`
	FileGlob    string   `json:"file_glob,omitempty" jsonschema:"only files that this glob matches, such as *.go or *.{ts,tsx}; default: all"`
	Exclude     []string `json:"exclude,omitempty" jsonschema:"no files or directories that one of these globs matches, such as testdata/"`
	Multiline   bool     `json:"multiline,omitempty" jsonschema:"a match may cross lines, and . matches line breaks too"`
	ReplaceWith *string  `json:"replace_with,omitempty" jsonschema:"text for the place of each match, with $1 or ${name} for groups; without it the call only searches"`
	PreviewOnly *bool    `json:"preview_only,omitempty" jsonschema:"true, the default: a replacement is only shown as a diff; false: the files are changed"`
}

// mostFiles is how many files one call changes: a longer diff would not be read.
const mostFiles = 1_000

// writes reports whether the call changes files.
func (in Input) writes() bool { return in.PreviewOnly != nil && !*in.PreviewOnly }

// Tool returns the FileSearch tool.
func Tool() tools.Tool {
	return tools.New(tools.Spec{
		Name: "FileSearch", Description: description, Destructive: true,
		TimeLimit: time.Minute, MaxTime: 10 * time.Minute, OnInterrupt: tools.Stop,
	}, tools.Funcs[Input]{Validate: validate, Effects: effects, Check: check, Run: run})
}

// validate returns what the schema cannot.
func validate(in *Input) error {
	if in.writes() && in.ReplaceWith == nil {
		return fault.Invalidf("invalid_input", "preview_only is false, but there is no replace_with. Give one, which may be empty, or leave preview_only out.").At("/replace_with")
	}
	if _, err := newMatcher(*in); err != nil {
		return err
	}
	_, err := newChoice(*in)
	return err
}

// effects is all that the call may touch: a preview reads, so it runs beside others and no question
// is asked; writing makes it a call that runs by itself, that a rule or the user must permit, and
// that can be undone.
func effects(in Input) tools.Effects {
	place := []tools.Path{{Name: cmp.Or(in.Path, "."), Tree: true}}
	if in.writes() {
		return tools.Effects{Reads: place, Writes: place}
	}
	return tools.Effects{Reads: place}
}

// check works the changes out, so that a question can show them.
func check(ctx context.Context, env *tools.Env, in Input) (tools.Preview, error) {
	if !in.writes() {
		return tools.Preview{}, nil
	}
	found, err := search(ctx, env, in)
	if err != nil {
		return tools.Preview{}, err
	}
	return tools.Preview{Diff: found.diff()}, found.tooMany()
}

func run(ctx context.Context, env *tools.Env, in Input) (tools.Result, error) {
	found, err := search(ctx, env, in)
	if err != nil || !in.writes() {
		return found.result(in), err
	}
	if err := found.tooMany(); err != nil {
		return tools.Result{}, err
	}
	err = found.write(ctx, env, in)
	return found.result(in), err
}

// write changes one file after the other. Each is worked out again from what it holds by then,
// locked against others; the result lists what an error has left undone.
func (f *findings) write(ctx context.Context, env *tools.Env, in Input) error {
	m, err := newMatcher(in)
	if err != nil {
		return err
	}
	for i, file := range f.files {
		env.Report(tools.Step{Message: file.shown, Done: int64(i), Total: int64(len(f.files))})
		var now document
		written, err := env.Files.Change(ctx, filepath.Join(f.dir, file.path), func(c *workspace.Content) (workspace.Update, error) {
			if now, err = m.read(file.shown, c.Data); err != nil {
				return workspace.Update{}, err
			}
			return workspace.Update{Data: []byte(now.after)}, nil
		})
		if err != nil {
			return workspace.Blame(err, "/path")
		}
		f.files[i].document, f.files[i].written, f.files[i].inEditor = now, true, written.InEditor
	}
	return nil
}

// tooMany is a fault when more would change than one call does.
func (f *findings) tooMany() error {
	if len(f.files) > mostFiles {
		return fault.Invalidf("too_large", "%d files would change, which is more than %d. Narrow path, file_glob or exclude, and replace in several calls.", len(f.files), mostFiles).At("/pattern")
	}
	return nil
}
