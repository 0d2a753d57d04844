// Package write is the Write tool: it replaces the whole content of a file. The package does not
// know which files may be changed, nor how a file is written to the disk.
package write

import (
	"context"
	_ "embed"
	"errors"
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
	return tools.New(tools.Spec{Name: "Write", Description: description, Destructive: true, TimeLimit: 60 * time.Second},
		tools.Funcs[input]{
			Effects: effects,
			Check: func(_ context.Context, env *tools.Env, in input) (tools.Preview, error) {
				preview, err := check(env, in)
				return preview, workspace.Blame(err, "/file_path")
			},
			Run: func(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
				result, err := run(ctx, env, in)
				return result, workspace.Blame(err, "/file_path")
			},
		})
}

func effects(in input) tools.Effects {
	p := []tools.Path{{Name: in.FilePath}}
	return tools.Effects{Reads: p, Writes: p}
}

// A plan is the new content, computed in memory.
type plan struct {
	old, next string // as text
	raw       []byte
	encoding  text.Encoding
	unseen    int  // lines of the old content that were never read
	crlf      bool // line endings were made CRLF
}

func check(env *tools.Env, in input) (tools.Preview, error) {
	if err := env.Files.Absolute(in.FilePath); err != nil {
		return tools.Preview{}, err
	}
	c, err := env.Files.Look(in.FilePath)
	if err != nil {
		return tools.Preview{}, err
	}
	p, err := devise(c, in.Content)
	if err != nil {
		return tools.Preview{}, err
	}
	return tools.Preview{Diff: text.Patch(c.Path.Shown(), p.old, p.next), Ask: c.OtherNames()}, nil
}

func run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if err := env.Files.Absolute(in.FilePath); err != nil {
		return tools.Result{}, err
	}
	var p *plan
	written, err := env.Files.Change(ctx, in.FilePath, func(c *workspace.Content) (workspace.Update, error) {
		var err error
		if p, err = devise(c, in.Content); err != nil {
			return workspace.Update{}, err
		}
		return workspace.Update{Data: p.raw, Whole: true}, nil
	})
	if err != nil {
		return tools.Result{}, err
	}
	diff := text.Patch(written.Path.Shown(), p.old, p.next)
	result := tools.Text(p.report(written))
	s := Structured{
		FilePath: written.Path.Name(), Created: written.Created, Unchanged: written.Same, Size: int64(len(p.raw)),
		Encoding: p.encoding.Name(), LineEnding: string(text.Endings(p.next)), Diff: diff, UnseenLines: p.unseen,
		InEditor: written.InEditor != "",
	}
	if written.Path.Seen != written.Path.Real {
		s.RealPath = workspace.NameOf(written.Path.Real)
	}
	result.Structured = s
	return result, nil
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
	if text.Endings(p.old) == text.CRLF && strings.Contains(content, "\n") && !strings.Contains(content, "\r\n") {
		p.next, p.crlf = strings.ReplaceAll(content, "\n", "\r\n"), true
	}
	if p.encoding.BOM() != nil {
		p.next = "\ufeff" + strings.TrimPrefix(p.next, "\ufeff")
	}
	coded, err := p.encoding.Encode(p.next)
	if err != nil {
		return nil, lossy(err, content)
	}
	p.raw = coded
	return p, nil
}

func lossy(err error, content string) error {
	var l *text.Lossy
	if !errors.As(err, &l) {
		return err
	}
	line := text.LineAt(content, strings.IndexRune(content, l.Rune))
	return fault.Invalidf("lossy_encoding", "The file is in %s, which cannot hold %q (U+%04X) on line %d of content. Nothing was written. Leave the character out, or convert the file to UTF-8 first.",
		l.Encoding, l.Rune, l.Rune, line).At("/content")
}

// report returns the text for the model.
func (p *plan) report(w workspace.Written) string {
	var b strings.Builder
	switch {
	case w.Same:
		return fmt.Sprintf("%s already holds exactly this content; nothing was written.", w.Path.Shown())
	case w.Created:
		fmt.Fprintf(&b, "Created %s (%s).\n", w.Path.Shown(), text.Count(len(p.raw), "byte"))
	default:
		fmt.Fprintf(&b, "Updated %s (%s).\n", w.Path.Shown(), text.Count(len(p.raw), "byte"))
	}
	switch {
	case p.unseen == 1:
		b.WriteString("Note: 1 line of the old content was never read in this session, and is replaced.\n")
	case p.unseen > 1:
		fmt.Fprintf(&b, "Note: %d lines of the old content were never read in this session, and are replaced.\n", p.unseen)
	}
	if w.OtherNames != "" {
		fmt.Fprintf(&b, "Note: %s\n", w.OtherNames)
	}
	if w.InEditor != "" {
		fmt.Fprintf(&b, "Note: %s\n", w.InEditor)
	}
	if w.Created && w.Path.Seen != w.Path.Real {
		fmt.Fprintf(&b, "Note: it is a temporary file of this session. Outside the session its path is %s.\n", w.Path.Real)
	}
	if p.crlf {
		b.WriteString("Note: the file's lines end in CRLF; the new ones do too.\n")
	}
	if p.encoding.Name() != "utf-8" {
		fmt.Fprintf(&b, "Note: the file stays in %s.\n", p.encoding.Name())
	}
	b.WriteString(text.Snippet(p.next, changed(p.old, p.next)))
	return b.String()
}

// changed returns the lines of next that differ from old, from the first to the last.
func changed(old, next string) []text.Span {
	head, tail := text.Ends(old, next)
	return []text.Span{{First: text.LineAt(next, head), Last: text.LineAt(next, len(next)-tail)}}
}
