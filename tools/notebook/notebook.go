// Package notebook is the NotebookEdit tool: it changes one cell of a Jupyter notebook and keeps
// every other byte of the file. The package does not know which files may be changed, nor how a
// file is written to the disk.
package notebook

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

//go:embed description.md
var description string

// The values of edit_mode, and those of cell_type that may be requested.
const (
	replacing = "replace"
	inserting = "insert"
	deleting  = "delete"

	code     = "code"
	markdown = "markdown"
)

type input struct {
	NotebookPath string `json:"notebook_path" jsonschema:"absolute path of the notebook"`
	CellID       string `json:"cell_id,omitempty" jsonschema:"id of the cell to replace or delete, or of the cell behind which to insert; without it insert puts the cell first"`
	NewSource    string `json:"new_source" jsonschema:"the whole new source of the cell"`
	CellType     string `json:"cell_type,omitempty" jsonschema:"code or markdown; required for insert"`
	EditMode     string `json:"edit_mode,omitempty" jsonschema:"replace, insert or delete; default replace"`
}

// Structured is the structured result.
type Structured struct {
	NotebookPath string `json:"notebookPath"` // absolute, as named
	EditMode     string `json:"editMode"`     // "replace", "insert" or "delete"
	CellID       string `json:"cellId"`       // of the changed cell, as it is named from now on; for a deleted one, as it was
	CellType     string `json:"cellType"`     // of the cell, now
	Cells        int    `json:"cells"`        // how many the notebook has now
	Cleared      int    `json:"cleared"`      // outputs that were removed with the old source
	Unchanged    bool   `json:"unchanged"`    // the cell was equal already; nothing was written
	Diff         string `json:"diff"`         // unified diff of the cell's source, after a line that describes the change
}

// Tool returns the NotebookEdit tool.
func Tool() tools.Tool {
	spec := tools.Spec{Name: "NotebookEdit", Description: description, Destructive: true, TimeLimit: 60 * time.Second}
	return tools.New(spec, tools.Funcs[input]{
		Validate: validate,
		Effects:  effects,
		Check: func(ctx context.Context, env *tools.Env, in input) (tools.Preview, error) {
			preview, err := check(ctx, env, in)
			return preview, workspace.Blame(err, "/notebook_path")
		},
		Run: func(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
			result, err := run(ctx, env, in)
			return result, workspace.Blame(err, "/notebook_path")
		},
	})
}

func validate(in *input) error {
	if in.EditMode == "" {
		in.EditMode = replacing
	}
	switch in.EditMode {
	case replacing, deleting:
		if in.CellID == "" {
			return fault.Invalidf("invalid_input", "edit_mode %s needs a cell_id; Read shows the id of each cell.", in.EditMode).At("/cell_id")
		}
	case inserting:
		if in.CellType == "" {
			return fault.Invalidf("invalid_input", "edit_mode insert needs a cell_type: code or markdown.").At("/cell_type")
		}
	default:
		return fault.Invalidf("invalid_input", "edit_mode is %q; it is replace, insert or delete.", in.EditMode).At("/edit_mode")
	}
	switch in.CellType {
	case "", code, markdown:
		return nil
	}
	return fault.Invalidf("invalid_input", "cell_type is %q; it is code or markdown.", in.CellType).At("/cell_type")
}

func effects(in input) tools.Effects {
	p := []tools.Path{{Name: in.NotebookPath}}
	return tools.Effects{Reads: p, Writes: p}
}

// check computes the change without writing it.
func check(ctx context.Context, env *tools.Env, in input) (tools.Preview, error) {
	if err := env.Files.Absolute(in.NotebookPath); err != nil {
		return tools.Preview{}, err
	}
	c, err := env.Files.Look(in.NotebookPath)
	if err != nil {
		return tools.Preview{}, err
	}
	p, err := plan(ctx, env, c, in)
	if err != nil {
		return tools.Preview{}, err
	}
	return tools.Preview{Diff: p.diff(c.Path.Shown()), Ask: c.OtherNames()}, nil
}

func run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if err := env.Files.Absolute(in.NotebookPath); err != nil {
		return tools.Result{}, err
	}
	var p *edit
	written, err := env.Files.Change(ctx, in.NotebookPath, func(c *workspace.Content) (workspace.Update, error) {
		var err error
		if p, err = plan(ctx, env, c, in); err != nil {
			return workspace.Update{}, err
		}
		return workspace.Update{Data: p.book.Raw}, nil
	})
	if err != nil {
		return tools.Result{}, err
	}
	result := tools.Text(p.report(in, written))
	result.Structured = Structured{
		NotebookPath: written.Path.Name(), EditMode: in.EditMode, CellID: p.id, CellType: p.kind, Cells: len(p.book.Cells),
		Cleared: p.cleared, Unchanged: written.Same, Diff: p.diff(written.Path.Shown()),
	}
	return result, nil
}

// diff returns the text for the user: the change of the cell, and its source. The file's own lines
// would show outputs that are cleared, and images as pages of base64.
func (p *edit) diff(path string) string {
	if p.what == "" {
		return ""
	}
	return p.what + "\n" + text.Patch(path+"#"+p.id, p.before, p.after)
}

// report returns the text for the model.
func (p *edit) report(in input, w workspace.Written) string {
	var b strings.Builder
	if w.Same {
		return fmt.Sprintf("Cell %s of %s already holds exactly this; nothing was written.", p.id, w.Path.Shown())
	}
	fmt.Fprintf(&b, "Updated %s: %s. The notebook has %s now.\n", w.Path.Shown(), p.what, text.Count(len(p.book.Cells), "cell"))
	for _, note := range []string{w.OtherNames, w.InEditor} {
		if note != "" {
			fmt.Fprintf(&b, "Note: %s\n", note)
		}
	}
	if p.crlf {
		b.WriteString("Note: the lines of the cell's source end in CRLF; the new ones do too.\n")
	}
	if in.EditMode == deleting && p.renamed {
		b.WriteString("Note: cells without their own id are named by their index; those after the deleted one have new names.\n")
	}
	if in.EditMode == inserting && p.renamed {
		b.WriteString("Note: cells without their own id are named by their index; those after the new one have new names.\n")
	}
	if in.EditMode != deleting {
		b.WriteString(text.Snippet(p.after, []text.Span{{First: 1, Last: strings.Count(p.after, "\n") + 1}}))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
