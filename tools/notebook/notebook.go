// Package notebook is the NotebookEdit tool: it changes one cell of a Jupyter notebook and keeps
// every other byte of the file. The package does not know which files may be changed, nor how a
// file is written to the disk.
package notebook

import (
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
	CellType     string `json:"cell_type,omitempty" jsonschema:"required for insert" enum:"code,markdown"`
	EditMode     string `json:"edit_mode,omitempty" jsonschema:"what to do with the cell" enum:"replace,insert,delete" default:"replace"`
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
	return tools.NewChange("NotebookEdit", description, tools.Changing[input]{
		Validate: validate, Field: "/notebook_path", Path: func(in input) string { return in.NotebookPath }, Plan: plan,
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
	}
	return nil
}

// Update returns the new content.
func (p *edit) Update() workspace.Update { return workspace.Update{Data: p.book.Raw} }

// Result returns the result of the call.
func (p *edit) Result(w workspace.Written) tools.Result {
	return tools.TextWith(p.report(w), Structured{
		NotebookPath: w.Path.Name(), EditMode: p.in.EditMode, CellID: p.id, CellType: p.kind, Cells: len(p.book.Cells),
		Cleared: p.cleared, Unchanged: w.Same, Diff: p.Diff(w.Path.Shown()),
	})
}

// Diff returns the text for the user: the change of the cell, and its source. The file's own lines
// would show outputs that are cleared, and images as pages of base64.
func (p *edit) Diff(path string) string {
	if p.what == "" {
		return ""
	}
	return p.what + "\n" + text.Patch(path+"#"+p.id, p.before, p.after)
}

// report returns the text for the model.
func (p *edit) report(w workspace.Written) string {
	var b strings.Builder
	if w.Same {
		return fmt.Sprintf("Cell %s of %s already holds exactly this; nothing was written.", p.id, w.Path.Shown())
	}
	fmt.Fprintf(&b, "Updated %s: %s. The notebook has %s now.\n", w.Path.Shown(), p.what, text.Count(len(p.book.Cells), "cell"))
	b.WriteString(w.Notes())
	if p.crlf {
		b.WriteString("Note: the lines of the cell's source end in CRLF; the new ones do too.\n")
	}
	if p.renamed {
		b.WriteString("Note: cells without their own id are named by their index; those after the changed place have new names.\n")
	}
	if p.in.EditMode != deleting {
		b.WriteString(text.Snippet(p.after, []text.Span{{First: 1, Last: strings.Count(p.after, "\n") + 1}}))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
