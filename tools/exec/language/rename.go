//go:build !no_lsp

// What a renaming would change. Nothing is written.

package language

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// Rename returns what would change if the symbol at the position had another name.
func (s *Set) Rename(ctx context.Context, q Query, name string) (Renaming, error) {
	return ask(ctx, s, q, "renameProvider", "rename_preview", func(a *asked) (Renaming, error) {
		var answer wireRename
		if err := a.callAt("textDocument/rename", wirePlace{NewName: name}, &answer); err != nil {
			return Renaming{}, err
		}
		return a.renaming(answer)
	})
}

func (a *asked) renaming(answer wireRename) (found Renaming, err error) {
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
		change := Change{Path: path, Edits: len(edits[path])}
		if change.Before, change.Unread = a.read(path); change.Unread != nil {
			change.Before = nil
		} else if after, ok := apply(string(change.Before), edits[path], a.units); ok {
			change.After = []byte(after)
		} else {
			return Renaming{}, failedf("The edits of %s for %s overlap.", a.spec.name(), path)
		}
		if change.Unread != nil || !bytes.Equal(change.Before, change.After) {
			found.Changes = append(found.Changes, change)
		}
	}
	return found, nil
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
