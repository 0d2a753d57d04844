// The computation of the new content from the old one and the replacements, in memory.

package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// A plan is the new content that a call computes for a file. Nothing is written.
type plan struct {
	old, doc  *text.Text  // before and after
	raw       []byte      // doc as bytes
	spans     []text.Span // the lines of doc that were changed, ascending
	count     int         // replaced occurrences
	tolerated []string    // ignored differences, as phrases
	drift     string      // diff of changes since the file was read; empty: none
	drifted   bool
}

// devise applies the replacements to content in order, each to the result of the one before.
func devise(env *tools.Env, c *workspace.Content, list []Replacement) (*plan, error) {
	p, err := begin(env, c, list[0].OldString == "")
	if err != nil {
		return nil, err
	}
	if list[0].OldString == "" && strings.TrimPrefix(p.doc.String, "\ufeff") != "" {
		return nil, fault.Invalidf("file_exists", "%s exists and is not empty, and old_string is empty. Set old_string to the text to replace, or use Write to replace the whole file.", c.Path.Shown()).At("/old_string")
	}
	if err := c.Current(); err != nil && list[0].OldString != "" && fault.From(err).Code != "stale_file" {
		return nil, err
	}
	stale := p.mercy(c)
	for i, r := range list {
		before := p.count
		err := p.apply(r, i == 0)
		if err == nil && stale != nil && p.count > before+1 {
			err = stale
		}
		switch {
		case err != nil && stale != nil:
			return nil, stale
		case err != nil && len(list) > 1:
			return nil, inList(err, i, len(list))
		case err != nil:
			return nil, err
		}
	}
	if bytes.Equal(p.raw, c.Data) && c.Path.Exists {
		return nil, fault.Invalidf("same_string", "The file would not change: it already holds new_string where old_string was found. Nothing to do.").At("/new_string")
	}
	return p, nil
}

// begin decodes the content, and rejects a file that cannot be edited at all. It must exist, unless the edit may create it.
func begin(env *tools.Env, c *workspace.Content, creates bool) (*plan, error) {
	if !c.Path.Exists && !creates {
		return nil, env.Files.Missing(c)
	}
	encoding, isText := text.DetectWhole(c.Data)
	if !isText {
		return nil, fault.Invalidf("binary_file", "%s is not text (%s, %s); it cannot be edited as text.", c.Path.Shown(), text.MediaType(c.Data), text.Count(len(c.Data), "byte")).At("/file_path")
	}
	p := &plan{raw: c.Data, doc: text.Decode(c.Data, encoding)}
	p.old = p.doc
	return p, nil
}

// mercy returns the fault for an edit that does not fit a file which has changed since it was read,
// and records the change. It returns nil for an unchanged file.
func (p *plan) mercy(c *workspace.Content) error {
	read, known := c.Read()
	stale := c.Current()
	if stale == nil || !known || !c.Path.Exists {
		return nil
	}
	p.drifted = true
	if read.Text != nil {
		encoding, _ := text.DetectWhole(read.Text)
		p.drift = text.Patch(c.Path.Shown(), text.Decode(read.Text, encoding).String, p.doc.String)
	}
	return stale
}

// apply makes one replacement.
func (p *plan) apply(r Replacement, first bool) error {
	switch {
	case r.OldString == r.NewString:
		return fault.Invalidf("same_string", "old_string and new_string are the same; there is nothing to change.").At("/new_string")
	case r.OldString == "" && first:
		return p.fill(r.NewString)
	case r.OldString == "":
		return fault.Invalidf("invalid_input", "old_string is empty. Only the first edit may be so, to create the file.").At("/old_string")
	}
	f, err := find(p.doc.String, r)
	if err != nil {
		return fault.From(err).At("/old_string")
	}
	whole := text.Endings(p.doc.String)
	var pieces []piece
	spans := make([]text.Span, 0, len(f.matches))
	line, at := 1, 0
	for _, m := range f.matches {
		part := f.pieces(p.doc, whole, m, r)
		line += strings.Count(p.doc.String[at:m.from], "\n")
		spans = append(spans, spanOf(p.doc.String, line, m, part))
		line = spans[len(spans)-1].Last
		at = m.to
		pieces = append(pieces, part...)
	}
	raw, err := splice(p.raw, p.doc, pieces)
	if err != nil {
		return workspace.Lossy(err, "/new_string", r.NewString)
	}
	p.tolerate(f, whole, r)
	p.settle(raw, spans, len(f.matches))
	return nil
}

// fill sets the content of an empty file.
func (p *plan) fill(content string) error {
	e := p.doc.Encoding
	coded, err := e.Encode(strings.TrimPrefix(content, "\ufeff"))
	if err != nil {
		return workspace.Lossy(err, "/new_string", content)
	}
	if e.BOM() == nil && strings.HasPrefix(content, "\ufeff") {
		coded = []byte(content)
	}
	raw := append(bytes.Clone(e.BOM()), coded...)
	p.settle(raw, []text.Span{{First: 1, Last: strings.Count(content, "\n") + 1}}, 1)
	return nil
}

// settle makes raw the present content.
func (p *plan) settle(raw []byte, spans []text.Span, count int) {
	before := strings.Count(p.doc.String, "\n")
	p.raw, p.doc = raw, text.Decode(raw, p.doc.Encoding)
	p.spans = merged(p.spans, spans, strings.Count(p.doc.String, "\n")-before)
	p.count += count
}

// spanOf returns the lines of a match beginning on line after the pieces are replaced.
func spanOf(s string, line int, m match, pieces []piece) text.Span {
	last := line + strings.Count(s[m.from:m.to], "\n")
	for _, p := range pieces {
		last += strings.Count(p.text, "\n") - strings.Count(s[p.from:p.to], "\n")
	}
	return text.Span{First: line, Last: last}
}

// merged adds the spans of a later replacement, which has made the text grow by delta lines, to
// earlier ones.
func merged(earlier, later []text.Span, delta int) []text.Span {
	if len(earlier) == 0 {
		return later
	}
	var out []text.Span
	for _, e := range earlier {
		if len(later) > 0 && e.First >= later[0].First {
			e.First, e.Last = max(e.First+delta, later[0].First), max(e.Last+delta, later[0].First)
		}
		out = append(out, e)
	}
	out = append(out, later...)
	slices.SortFunc(out, func(a, b text.Span) int { return a.First - b.First })
	return out
}

// tolerate records which differences were ignored.
func (p *plan) tolerate(f found, whole text.Ending, r Replacement) {
	var note string
	switch {
	case f.past == quotes:
		note = "typographic and ASCII quotes were treated as equal, since there was no exact match; the file's own were kept where the text did not change"
	case f.past == endings && (whole == text.CRLF || whole == text.Mixed) && strings.Contains(r.OldString+r.NewString, "\n"):
		note = fmt.Sprintf("line endings were matched as equal; the file's own (%s) were kept", whole)
	}
	if note != "" && !slices.Contains(p.tolerated, note) {
		p.tolerated = append(p.tolerated, note)
	}
}

// inList adds to an error which of several edits it is about.
func inList(err error, i, n int) error {
	f := *fault.From(err)
	f.Message = fmt.Sprintf("Edit %d of %d: %s None of the edits was made.", i+1, n, f.Message)
	if f.Field != "/file_path" {
		f.Field = fmt.Sprintf("/edits/%d%s", i, f.Field)
	}
	return &f
}
