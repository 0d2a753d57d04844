// The ApplyPatch tool: a V4A patch for several files, all of it or nothing.

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

//go:embed patch.md
var patchDescription string

type patchInput struct {
	Patch string `json:"patch" jsonschema:"the patch, from *** Begin Patch to *** End Patch"`
	parts patch
}

// Patched is the structured result of ApplyPatch.
type Patched struct {
	Files []PatchedFile `json:"files"` // in the order of the patch
}

// PatchedFile is what became of one file.
type PatchedFile struct {
	FilePath   string   `json:"filePath"`             // absolute; of a file that was moved, where it is now
	Action     string   `json:"action"`               // "added", "updated", "moved" or "deleted"
	MovedFrom  string   `json:"movedFrom,omitempty"`  // absolute
	Encoding   string   `json:"encoding,omitempty"`   // of the file
	LineEnding string   `json:"lineEnding,omitempty"` // after the change: "lf", "crlf", "mixed" or "none"
	Diff       string   `json:"diff"`                 // unified diff of the change; empty if only the name has changed, or what is deleted is not text
	Tolerated  []string `json:"tolerated,omitempty"`  // differences that were ignored to find a hunk
	InEditor   bool     `json:"inEditor,omitempty"`   // an editor holds the file open and has made the change there
}

// PatchTool returns the ApplyPatch tool.
func PatchTool() tools.Tool {
	spec := tools.Spec{Name: "ApplyPatch", Description: patchDescription, Destructive: true, OnDemand: true, TimeLimit: 60 * time.Second}
	return tools.New(spec, tools.Funcs[patchInput]{
		Validate: func(in *patchInput) (err error) {
			in.parts, err = parsePatch(in.Patch)
			return err
		},
		Effects: func(in patchInput) tools.Effects {
			var paths []tools.Path
			for _, name := range in.parts.names() {
				paths = append(paths, tools.Path{Name: name})
			}
			return tools.Effects{Reads: paths, Writes: paths}
		},
		Check: func(_ context.Context, env *tools.Env, in patchInput) (tools.Preview, error) {
			preview, err := in.parts.check(env)
			return preview, workspace.Blame(err, "/patch")
		},
		Run: func(ctx context.Context, env *tools.Env, in patchInput) (tools.Result, error) {
			result, err := in.parts.run(ctx, env)
			return result, workspace.Blame(err, "/patch")
		},
	})
}

// names returns the files of the patch: of each section its path, and behind it where it is moved.
func (p patch) names() (names []string) {
	for _, s := range p {
		if names = append(names, s.path); s.to != "" {
			names = append(names, s.to)
		}
	}
	return names
}

// A change is what becomes of one file of a patch.
type change struct {
	*section
	from, to  *workspace.Content // the same, unless it is moved
	old, next *text.Text         // as far as they are text
	raw       []byte             // of next
	tolerated []string
}

// plan computes the changes of contents, which are those of names.
func (p patch) plan(env *tools.Env, contents []*workspace.Content) ([]*change, error) {
	for i, c := range contents {
		twin := slices.IndexFunc(contents[:i], c.SameFile)
		if twin >= 0 {
			return nil, fault.Invalidf("same_file", "The patch has two parts for one file: %s and %s. Nothing was changed; put all of it into one part.", contents[twin].Path.Shown(), c.Path.Shown())
		}
	}
	var all []*change
	for i := range p {
		c := &change{section: &p[i], from: contents[0], to: contents[0], old: &text.Text{}, next: &text.Text{}}
		if contents = contents[1:]; c.section.to != "" {
			c.to, contents = contents[0], contents[1:]
		}
		if err := c.compute(env); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// compute checks that the files are as the section needs them, and computes the new content.
func (c *change) compute(env *tools.Env) error {
	switch {
	case c.act != add && !c.from.Path.Exists:
		return env.Files.Missing(c.from)
	case c.act == add && len(c.from.Data) > 0:
		return fault.Invalidf("file_exists", "%s exists and is not empty, so the patch cannot add it. Nothing was changed; use %q, or another path.", c.from.Path.Shown(), headers[update])
	case c.from != c.to && c.to.Path.Exists:
		return fault.Invalidf("file_exists", "%s exists, so %s cannot be moved there. Nothing was changed; delete it first, or use another path.", c.to.Path.Shown(), c.from.Path.Shown())
	case (c.act == remove || c.from != c.to) && c.from.InEditor():
		return workspace.HeldOpen(c.from.Path)
	case (c.act == remove || c.from != c.to) && env.Files.IsLink(c.path):
		return fault.Invalidf("not_regular", "%s is a symbolic link, which a patch neither deletes nor moves. Nothing was changed; name the file that it leads to, or use Bash.", c.from.Path.Shown())
	case c.act == add:
		c.next, c.raw = &text.Text{String: c.content}, []byte(c.content)
		return nil
	}
	encoding, isText := text.DetectWhole(c.from.Data)
	if isText {
		c.old = text.Decode(c.from.Data, encoding)
	}
	switch {
	case c.act == remove:
		return nil
	case !isText && len(c.hunks) > 0:
		return fault.Invalidf("binary_file", "%s is not text (%s, %s); it cannot be changed by hunks. Nothing was changed.", c.from.Path.Shown(), text.MediaType(c.from.Data), text.Count(len(c.from.Data), "byte"))
	}
	return c.update(isText)
}

// update applies the hunks.
func (c *change) update(isText bool) error {
	p, err := c.apply(c.old.String)
	if err != nil {
		return err
	}
	if c.raw, err = splice(c.from.Data, c.old, p.pieces); err != nil {
		return workspace.Lossy(err, "/patch", c.added())
	}
	c.tolerated = p.notes
	if isText { // else it is only moved
		c.next = text.Decode(c.raw, c.old.Encoding)
	}
	if c.from == c.to && string(c.raw) == string(c.from.Data) {
		return fault.Invalidf("same_string", "%s would not change: what the hunks add is what they remove. Nothing was changed.", c.from.Path.Shown())
	}
	return nil
}

// added returns the lines that the hunks add.
func (s *section) added() string {
	var b strings.Builder
	for _, h := range s.hunks {
		for _, line := range h.lines {
			if line[0] == '+' {
				b.WriteString(line[1:] + "\n")
			}
		}
	}
	return b.String()
}

// updates returns what becomes of the files of names.
func updates(all []*change) (list []workspace.Update) {
	for _, c := range all {
		next := workspace.Update{Data: c.raw, Whole: c.act == add, Remove: c.act == remove}
		if c.from != c.to {
			next.From = c.from
			list = append(list, workspace.Update{Remove: true})
		}
		list = append(list, next)
	}
	return list
}

// check computes the changes without making them.
func (p patch) check(env *tools.Env) (tools.Preview, error) {
	var contents []*workspace.Content
	for _, name := range p.names() {
		c, err := env.Files.Look(name)
		if err != nil {
			return tools.Preview{}, err
		}
		contents = append(contents, c)
	}
	all, err := p.plan(env, contents)
	if err != nil {
		return tools.Preview{}, err
	}
	var preview tools.Preview
	var asks []string
	for _, c := range all {
		preview.Diff += c.diff()
		if ask := c.from.OtherNames(); ask != "" && c.act == update && c.from == c.to {
			asks = append(asks, ask)
		}
	}
	preview.Ask = strings.Join(asks, " ")
	return preview, nil
}

// diff returns the change as a unified diff, with a line in front where a file goes to another name or away.
func (c *change) diff() string {
	diff := text.Patch(c.to.Path.Shown(), c.old.String, c.next.String)
	switch {
	case c.from != c.to:
		return fmt.Sprintf("rename from %s\nrename to %s\n%s", c.from.Path.Shown(), c.to.Path.Shown(), diff)
	case c.act == remove:
		return fmt.Sprintf("deleted file %s\n%s", c.from.Path.Shown(), diff)
	}
	return diff
}

func (p patch) run(ctx context.Context, env *tools.Env) (tools.Result, error) {
	var all []*change
	written, err := env.Files.ChangeAll(ctx, p.names(), func(old []*workspace.Content) (_ []workspace.Update, err error) {
		if all, err = p.plan(env, old); err != nil {
			return nil, err
		}
		return updates(all), nil
	})
	if err != nil {
		return tools.Result{}, err
	}
	var report strings.Builder
	var files []PatchedFile
	for _, c := range all {
		w := written[0]
		if written = written[1:]; c.from != c.to {
			w, written = written[0], written[1:]
		}
		f := c.outcome(w)
		files = append(files, f)
		report.WriteString(c.report(f, w))
	}
	return tools.TextWith(report.String(), Patched{files}), nil
}

// outcome returns what became of the file.
func (c *change) outcome(w workspace.Written) PatchedFile {
	f := PatchedFile{FilePath: w.Path.Name(), Tolerated: slices.Clone(c.tolerated), InEditor: w.InEditor != "", Diff: text.Patch(w.Path.Shown(), c.old.String, c.next.String)}
	switch {
	case c.act == remove:
		f.Action = "deleted"
		return f
	case c.act == add:
		f.Action = "added"
	case c.from != c.to:
		f.Action, f.MovedFrom = "moved", c.from.Path.Name()
	default:
		f.Action = "updated"
	}
	f.Encoding, f.LineEnding = c.next.Encoding.Name(), string(text.Endings(c.next.String))
	return f
}

// report returns the outcome for the model.
func (c *change) report(f PatchedFile, w workspace.Written) string {
	var b strings.Builder
	b.WriteString(strings.ToUpper(f.Action[:1]) + f.Action[1:] + " ")
	if c.from != c.to {
		b.WriteString(c.from.Path.Shown() + " to ")
	}
	b.WriteString(w.Path.Shown() + ".\n" + w.Notes())
	for _, note := range c.tolerated {
		b.WriteString("Note: " + note + ".\n")
	}
	return b.String()
}
