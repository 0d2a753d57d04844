// Package write is the Write tool: it replaces the whole content of a file. The package does not
// know which files may be changed, nor how a file is written to the disk.
package write

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

//go:embed description.md
var description string

type input struct {
	FilePath string `json:"file_path" jsonschema:"absolute path of the file"`
	Content  string `json:"content" jsonschema:"the whole new content of the file"`
}

// Structured is the structured result.
type Structured struct {
	FilePath    string `json:"filePath"` // absolute, as named
	Created     bool   `json:"created"`
	Unchanged   bool   `json:"unchanged"`          // the file had this content already; nothing was written
	Size        int64  `json:"size"`               // bytes, now
	Encoding    string `json:"encoding"`           // of the file
	LineEnding  string `json:"lineEnding"`         // of the file, now: "lf", "crlf", "mixed" or "none"
	Diff        string `json:"diff"`               // unified diff of the change
	UnseenLines int    `json:"unseenLines"`        // lines of the old content that were never read
	InEditor    bool   `json:"inEditor,omitempty"` // an editor holds the file open and has made the change there
	RealPath    string `json:"realPath,omitempty"` // of a session's own temporary file: its path outside the session
}

// Tool returns the Write tool.
func Tool() tools.Tool {
	return tools.NewChange("Write", description, tools.Changing[input]{
		Field: "/file_path", Path: func(in input) string { return in.FilePath },
		Plan: func(_ context.Context, _ *tools.Env, c *workspace.Content, in input) (tools.Change, error) {
			return devise(c, in.Content)
		},
	})
}

// A plan is the new content, computed in memory.
type plan struct {
	old, next string // as text
	raw       []byte
	encoding  text.Encoding
	unseen    int  // lines of the old content that were never read
	crlf      bool // line endings were made CRLF
}

// Update returns the new content, all of which the model has sent.
func (p *plan) Update() workspace.Update { return workspace.Update{Data: p.raw, Whole: true} }

// Diff returns the change as a unified diff.
func (p *plan) Diff(path string) string { return text.Patch(path, p.old, p.next) }

// Result returns the result of the call.
func (p *plan) Result(w workspace.Written) tools.Result {
	s := Structured{
		FilePath: w.Path.Name(), Created: w.Created, Unchanged: w.Same, Size: int64(len(p.raw)), Encoding: p.encoding.Name(),
		LineEnding: string(text.Endings(p.next)), Diff: p.Diff(w.Path.Shown()), UnseenLines: p.unseen, InEditor: w.InEditor != "",
	}
	if w.Path.Seen != w.Path.Real {
		s.RealPath = workspace.NameOf(w.Path.Real)
	}
	return tools.TextWith(p.report(w), s)
}

// devise converts content to the bytes of the file, in the file's own encoding.
func devise(c *workspace.Content, content string) (*plan, error) {
	if err := c.Current(); err != nil {
		return nil, err
	}
	p := &plan{next: content}
	if !c.Path.Exists || len(c.Data) == 0 {
		p.raw = []byte(content)
		return p, nil
	}
	if e, isText := text.DetectWhole(c.Data); isText {
		p.encoding = e
	}
	p.old = text.Decode(c.Data, p.encoding).String
	if read, known := c.Read(); known {
		p.unseen = read.Unseen()
	}
	p.next, p.crlf = text.LikeEndings(p.old, content)
	if p.encoding.BOM() != nil {
		p.next = "\ufeff" + strings.TrimPrefix(p.next, "\ufeff")
	}
	var err error
	p.raw, err = p.encoding.Encode(p.next)
	return p, workspace.Lossy(err, "/content", content)
}

// report returns the text for the model.
func (p *plan) report(w workspace.Written) string {
	var b strings.Builder
	switch {
	case w.Same:
		return fmt.Sprintf("%s already holds exactly this content; nothing was written.", w.Path.Shown())
	case w.Created:
		b.WriteString("Created")
	default:
		b.WriteString("Updated")
	}
	fmt.Fprintf(&b, " %s (%s).\n", w.Path.Shown(), text.Count(len(p.raw), "byte"))
	switch {
	case p.unseen == 1:
		b.WriteString("Note: 1 line of the old content was never read in this session, and is replaced.\n")
	case p.unseen > 1:
		fmt.Fprintf(&b, "Note: %d lines of the old content were never read in this session, and are replaced.\n", p.unseen)
	}
	b.WriteString(w.Notes())
	if w.Created && w.Path.Seen != w.Path.Real {
		fmt.Fprintf(&b, "Note: it is a temporary file of this session. Outside the session its path is %s.\n", w.Path.Real)
	}
	if p.crlf {
		b.WriteString("Note: the file's lines end in CRLF; the new ones do too.\n")
	}
	if p.encoding.Name() != "utf-8" {
		fmt.Fprintf(&b, "Note: the file stays in %s.\n", p.encoding.Name())
	}
	head, tail := text.Ends(p.old, p.next)
	b.WriteString(text.Snippet(p.next, []text.Span{{First: text.LineAt(p.next, head), Last: text.LineAt(p.next, len(p.next)-tail)}}))
	return b.String()
}
