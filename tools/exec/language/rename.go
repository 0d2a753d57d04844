//go:build !no_lsp

// What a renaming would change. Nothing is written.

package language

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// Rename returns what would change if the symbol at the position had another name.
func (s *Set) Rename(ctx context.Context, q Query, name string) (found Renaming, err error) {
	err = s.ask(ctx, q, func(c abilities) json.RawMessage { return c.Rename }, "rename_preview", func(a *asked) error {
		var answer wireRename
		if err := a.callAt(ctx, "textDocument/rename", wirePlace{NewName: name}, &answer); err != nil {
			return err
		}
		var err error
		found, err = a.renaming(ctx, answer)
		return err
	})
	return found, err
}

func (a *asked) renaming(ctx context.Context, answer wireRename) (Renaming, error) {
	var found Renaming
	edits := map[string][]wireEdit{}
	for uri, list := range answer.Changes {
		edits[pathOf(uri)] = append(edits[pathOf(uri)], list...)
	}
	for _, d := range answer.Documents {
		if d.Kind != "" {
			found.Other++
			continue
		}
		path := pathOf(d.Document.URI)
		edits[path] = append(edits[path], d.Edits...)
	}
	for _, path := range slices.Sorted(maps.Keys(edits)) {
		if ctx.Err() != nil {
			return Renaming{}, context.Cause(ctx)
		}
		change, err := a.change(path, edits[path])
		if err != nil {
			return Renaming{}, err
		}
		if change.Unread != nil || !bytes.Equal(change.Before, change.After) {
			found.Changes = append(found.Changes, change)
		}
	}
	return found, nil
}

func (a *asked) change(path string, edits []wireEdit) (Change, error) {
	c := Change{Path: path, Edits: len(edits)}
	switch path {
	case "":
		c.Unread = errNoFile
	case a.query.Path:
		c.Before = a.raw
	default:
		c.Before, c.Unread = a.query.Text(path)
	}
	if c.Unread != nil {
		c.Before = nil
		return c, nil
	}
	after, ok := apply(string(c.Before), edits, a.units)
	if !ok {
		return c, fault.Failedf("language_server_failed", "The edits of %s for %s overlap.", a.spec.name(), path)
	}
	c.After = []byte(after)
	return c, nil
}

// apply applies edits that all refer to the same text; false: two of them overlap.
func apply(text string, edits []wireEdit, u unit) (string, bool) {
	type span struct {
		from, to int
		text     string
	}
	spans := make([]span, 0, len(edits))
	for _, e := range edits {
		spans = append(spans, span{offset(text, e.Range.Start, u), offset(text, e.Range.End, u), e.NewText})
	}
	slices.SortStableFunc(spans, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	var out strings.Builder
	at := 0
	for _, s := range spans {
		if s.from < at || s.to < s.from {
			return "", false
		}
		out.WriteString(text[at:s.from])
		out.WriteString(s.text)
		at = s.to
	}
	out.WriteString(text[at:])
	return out.String(), true
}
