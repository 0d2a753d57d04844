//go:build !no_lsp

// Diagnostics: those of a file, and those that an edit has caused. Servers publish them at any
// time, so both functions show the server a text and wait, within limits, for what it publishes
// about that text.

package language

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// Diagnose returns the server's diagnostics of the present text of the file.
func (s *Set) Diagnose(ctx context.Context, q Query) (Diagnostics, error) {
	return ask(ctx, s, q, "", "", func(a *asked) (Diagnostics, error) {
		published, err := a.publication()
		if err != nil {
			return Diagnostics{}, err
		}
		pulled, complete, err := a.pull()
		if err != nil {
			return Diagnostics{}, err
		}
		file, _ := a.news.of(q.Path)
		found := Diagnostics{Complete: complete || published && a.news.busy() == "", Dropped: file.dropped}
		for _, w := range united(file.list, pulled) {
			found.List = append(found.List, diagnostic(q.Path, w, a.text.rangeOf(w.Range, a.units)))
		}
		order(found.List, q.Path)
		return found, nil
	})
}

// pull requests diagnostics, if the server supports that, and reports whether it has answered. If
// it refuses, what it has published counts.
func (a *asked) pull() (pulled []wireDiagnostic, answered bool, err error) {
	if !a.able("diagnosticProvider") {
		return nil, false, nil
	}
	var answer struct {
		Items []wireDiagnostic `json:"items"`
	}
	err = a.callAbout("textDocument/diagnostic", &answer)
	if err != nil && fault.From(err).Code == "language_server_refused" {
		return nil, false, nil
	}
	for i := range answer.Items {
		answer.Items[i].bound()
	}
	return answer.Items, err == nil, err
}

// united returns both lists, without those of the second that the first has.
func united(published, given []wireDiagnostic) []wireDiagnostic {
	all := slices.Clone(published)
	for _, d := range given {
		if !slices.ContainsFunc(published, func(p wireDiagnostic) bool { return p.Range == d.Range && p.Message == d.Message }) {
			all = append(all, d)
		}
	}
	return all[:min(len(all), maxFileDiags)]
}

// publication makes the server publish diagnostics of the text, even if it has done so before:
// other files may have changed since. It reports whether the server has.
func (a *asked) publication() (published bool, err error) {
	if err := a.documents.take(a.ctx); err != nil {
		return false, err
	}
	doc := a.put(a.query.Path, a.raw)
	a.saved(a.query.Path)
	a.documents.give()
	first, cancel := context.WithTimeout(a.ctx, a.limits.publish)
	defer cancel()
	published = a.publishes(first, a.query.Path, doc)
	if published {
		last, cancel := context.WithTimeout(a.ctx, quietLimit)
		defer cancel()
		a.settle(last, a.query.Path, quietTime)
	}
	switch {
	case a.ctx.Err() != nil:
		return false, context.Cause(a.ctx)
	case a.dying():
		return false, a.loss(a.ctx)
	}
	a.proven.Store(a.proven.Load() || published)
	return published, nil
}

func diagnostic(path string, w wireDiagnostic, at Range) Diagnostic {
	return Diagnostic{Path: path, Range: at, Severity: nth(severities, w.Severity, Error), Code: code(w.Code), Source: w.Source, Message: strings.TrimSpace(w.Message)}
}

// code parses a number or a string.
func code(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return printable(text, 200)
	}
	var number json.Number
	_ = json.Unmarshal(raw, &number) // any other value is no code
	return printable(number.String(), 200)
}

// A Watching is one edit of a file, from before it to after it.
type Watching struct {
	*server
	path   string
	before content
	known  map[string]publication
}

// Watch records the diagnostics of a file before an edit. before is the file's text, nil if the
// file does not exist yet. Watch starts no server: if none runs, it returns nil, whose methods
// work. It also returns nil if the server does not publish in time what it finds in a text that is
// new to it. It waits at most 400 ms, and no longer than ctx.
func (s *Set) Watch(ctx context.Context, path string, before []byte) *Watching {
	srv := s.running(path)
	if srv == nil || len(before) > maxMessage {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, srv.limits.base)
	defer cancel()
	if before != nil {
		if srv.documents.take(ctx) != nil {
			return nil
		}
		doc := srv.show(path, before)
		srv.documents.give()
		if !srv.publishes(ctx, path, doc) {
			return nil
		}
	}
	return &Watching{srv, path, newContent(before), srv.news.all()}
}

// New returns the errors and warnings that the edit has caused, in the file and in others. after is
// the file's present text. New waits for the diagnostics of that text until ctx ends, and then
// returns none. Ranges in other files use the server's units, since their texts are not read.
func (w *Watching) New(ctx context.Context, after []byte) []Diagnostic {
	if w == nil || len(after) > maxMessage {
		return nil
	}
	doc := w.edited(ctx, after)
	if doc == nil || !w.publishes(ctx, w.path, doc) {
		return nil
	}
	w.settle(ctx, w.path, editQuiet)
	text := newContent(after)
	moved := movement(w.before, text)
	var found []Diagnostic
	for path, now := range w.news.all() {
		where, shift := wireRange.plain, func(line int) int { return line }
		if path == w.path {
			where, shift = func(r wireRange) Range { return text.rangeOf(r, w.units) }, moved
		}
		for _, d := range added(w.known[path].list, now.list, shift) {
			if d.Severity <= 2 {
				found = append(found, diagnostic(path, d, where(d.Range)))
			}
		}
	}
	order(found, w.path)
	return found
}

// edited shows the server the new text; nil: there was no time.
func (w *Watching) edited(ctx context.Context, after []byte) *document {
	if w.documents.take(ctx) != nil {
		return nil
	}
	defer w.documents.give()
	if len(w.before) == 1 && w.before[0] == "" {
		w.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []wireFileEvent{{uriOf(w.path), fileCreated}}})
	}
	doc := w.put(w.path, after)
	w.saved(w.path)
	return doc
}
