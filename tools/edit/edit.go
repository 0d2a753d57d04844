// Package edit is the Edit, the MultiEdit and the ApplyPatch tool: they replace text in files exactly
// where the model means it, or not at all. What is not replaced keeps its bytes. The package does not know
// which files may be changed, nor how a file is written to the disk.
package edit

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

//go:embed description.md
var description string

//go:embed multi.md
var multiDescription string

type single struct {
	FilePath string `json:"file_path" jsonschema:"absolute path of the file"`
	Replacement
	InsertLine *int64 `json:"insert_line,omitempty" jsonschema:"insert new_string behind the line of this number instead of replacing; 0: at the beginning; old_string is empty then" minimum:"0"`
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

// Tool returns the Edit tool.
func Tool() tools.Tool {
	return tools.NewChange("Edit", description, tools.Changing[single]{
		Validate: func(in *single) error {
			if in.InsertLine != nil {
				return validateInsertion(in.Replacement)
			}
			return validate(in.Replacement)
		},
		Field: "/file_path", Path: func(in single) string { return in.FilePath },
		Plan: func(_ context.Context, env *tools.Env, c *workspace.Content, in single) (tools.Change, error) {
			if in.InsertLine != nil {
				return insertion(env, c, *in.InsertLine, in.NewString)
			}
			return devise(env, c, []Replacement{in.Replacement})
		},
	})
}

// MultiTool returns the MultiEdit tool.
func MultiTool() tools.Tool {
	return tools.NewChange("MultiEdit", multiDescription, tools.Changing[several]{
		Validate: validateAll,
		Field:    "/file_path", Path: func(in several) string { return in.FilePath },
		Plan: func(_ context.Context, env *tools.Env, c *workspace.Content, in several) (tools.Change, error) {
			return devise(env, c, in.Edits)
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

// Update returns the new content.
func (p *plan) Update() workspace.Update { return workspace.Update{Data: p.raw} }

// Diff returns the change as a unified diff.
func (p *plan) Diff(path string) string { return text.Patch(path, p.old.String, p.doc.String) }

// Result returns the result of the call.
func (p *plan) Result(w workspace.Written) tools.Result {
	return tools.TextWith(p.report(w), Structured{
		FilePath: w.Path.Name(), Created: w.Created, Replacements: p.count, Encoding: p.doc.Encoding.Name(),
		LineEnding: string(text.Endings(p.doc.String)), Diff: p.Diff(w.Path.Shown()), Tolerated: p.tolerated, Drift: p.drift, InEditor: w.InEditor != "",
	})
}

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
	b.WriteString(w.Notes())
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
