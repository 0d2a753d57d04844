//go:build !no_lsp

// Requests to a server, one function each: what is requested, and what the answer means.

package language

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// errNoFile is why a location has no text: it is not in a file.
var errNoFile = errors.New("it is not in a file")

// asked is one request in progress, to a server that sees everything as it is now.
type asked struct {
	*server
	query Query
	raw   []byte
	text  content // of the file
}

// ask finds the server of the file, updates its texts, and calls do with it. If the server ends
// meanwhile, it is started again once: no request changes anything.
func (s *Set) ask(ctx context.Context, q Query, ability func(abilities) json.RawMessage, what string, do func(*asked) error) error {
	if err := s.Check(q.Path); err != nil {
		return err
	}
	for first := true; ; first = false {
		srv, err := s.server(ctx, q.Path)
		if err != nil {
			return err
		}
		if ability != nil && !able(ability(srv.can)) {
			return fault.Failedf("not_served", "%s does not support %s. Use Grep, or read the files.", srv.spec.name(), what)
		}
		err = srv.ask(ctx, q, do)
		var gone *goneError
		if !errors.As(err, &gone) {
			return err
		}
		if !first {
			return fault.Failedf("language_server_failed", "%s. The request was sent twice.", gone.words)
		}
	}
}

func (s *server) ask(ctx context.Context, q Query, do func(*asked) error) error {
	s.loads.await(ctx, s.gone, s.limits.load)
	raw, err := q.Text(q.Path)
	if err != nil {
		return err
	}
	if err := s.documents.take(ctx); err != nil {
		return err
	}
	s.refresh(ctx, q)
	s.show(q.Path, raw)
	s.documents.give()
	return do(&asked{server: s, query: q, raw: raw, text: newContent(raw)})
}

// callAt sends a request about the position of the query. with has its other parameters.
func (a *asked) callAt(ctx context.Context, method string, with wirePlace, answer any) error {
	p, err := a.text.outward(a.query.At, a.units)
	if err != nil {
		return err
	}
	with.Document.URI, with.Position = uriOf(a.query.Path), &p
	return a.call(ctx, method, with, answer)
}

// Definition returns the definition of the symbol at the position.
func (s *Set) Definition(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "textDocument/definition", func(c abilities) json.RawMessage { return c.Definition }, "definition", nil)
}

// References returns the uses of the symbol at the position, its declaration included.
func (s *Set) References(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "textDocument/references", func(c abilities) json.RawMessage { return c.References }, "references",
		map[string]any{"includeDeclaration": true})
}

// Implementation returns the implementations of the interface or method at the position.
func (s *Set) Implementation(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "textDocument/implementation", func(c abilities) json.RawMessage { return c.Implementation }, "implementation", nil)
}

func (s *Set) locate(ctx context.Context, q Query, method string, ability func(abilities) json.RawMessage, what string, with any) (found []Location, err error) {
	err = s.ask(ctx, q, ability, what, func(a *asked) error {
		var answer json.RawMessage
		if err := a.callAt(ctx, method, wirePlace{Context: with}, &answer); err != nil {
			return err
		}
		raw, err := a.oneOrMore(answer)
		if err != nil {
			return err
		}
		found, err = a.locations(ctx, raw)
		return err
	})
	return found, err
}

// oneOrMore parses an answer that is null, a location, or a list of locations or of links.
func (a *asked) oneOrMore(answer json.RawMessage) (list []wireLocation, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
		list = make([]wireLocation, 1)
		err = json.Unmarshal(answer, &list[0])
	} else {
		err = json.Unmarshal(answer, &list)
	}
	if err != nil {
		return nil, fault.Failedf("language_server_failed", "The answer of %s does not conform to the protocol: %v.", a.spec.name(), err)
	}
	for i := range list {
		if l := &list[i]; l.URI == "" {
			l.URI = l.Target
			if l.Chosen != nil {
				l.Range = *l.Chosen
			}
		}
	}
	return list, nil
}

// locations sorts locations, each once, and adds the text of their lines.
func (a *asked) locations(ctx context.Context, raw []wireLocation) ([]Location, error) {
	var reader lines
	found := make([]Location, 0, len(raw))
	slices.SortStableFunc(raw, byPlace)
	for i, w := range raw {
		if i > 0 && w.URI == raw[i-1].URI && w.Range == raw[i-1].Range {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		found = append(found, reader.location(a, w))
	}
	return found, nil
}

func byPlace(x, y wireLocation) int {
	return cmp.Or(strings.Compare(x.URI, y.URI), cmp.Compare(x.Range.Start.Line, y.Range.Start.Line),
		cmp.Compare(x.Range.Start.Character, y.Range.Start.Character), cmp.Compare(x.Range.End.Line, y.Range.End.Line),
		cmp.Compare(x.Range.End.Character, y.Range.End.Character))
}

// lines caches the text of the last file.
type lines struct {
	path string
	text content
	err  error
}

func (l *lines) location(a *asked, w wireLocation) Location {
	path := pathOf(w.URI)
	if path == "" {
		return Location{Path: printable(w.URI, 1000), Range: w.Range.plain(), Unread: errNoFile}
	}
	if path != l.path {
		*l = lines{path: path, text: a.text}
		if path != a.query.Path {
			var raw []byte
			raw, l.err = a.query.Text(path)
			l.text = newContent(raw)
		}
	}
	if l.err != nil {
		return Location{Path: path, Range: w.Range.plain(), Unread: l.err}
	}
	return Location{Path: path, Range: l.text.rangeOf(w.Range, a.units), Line: l.text.line(w.Range.Start.Line)}
}

// Hover returns the server's description of the symbol at the position, as Markdown or plain text;
// empty: none.
func (s *Set) Hover(ctx context.Context, q Query) (text string, err error) {
	err = s.ask(ctx, q, func(c abilities) json.RawMessage { return c.Hover }, "hover", func(a *asked) error {
		var answer struct {
			Contents json.RawMessage `json:"contents"`
		}
		if err := a.callAt(ctx, "textDocument/hover", wirePlace{}, &answer); err != nil {
			return err
		}
		text = strings.TrimSpace(strings.ToValidUTF8(marked(answer.Contents), "\uFFFD"))
		return nil
	})
	return text, err
}

// marked parses a text, a marked string, a list of them, or marked-up content.
func marked(contents json.RawMessage) string {
	var text string
	if json.Unmarshal(contents, &text) == nil {
		return text
	}
	var list []json.RawMessage
	if json.Unmarshal(contents, &list) == nil {
		var parts []string
		for _, one := range list {
			if bytes.HasPrefix(bytes.TrimSpace(one), []byte("[")) {
				continue // the protocol has no lists in lists
			}
			if part := marked(one); part != "" {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, "\n\n")
	}
	var one struct{ Language, Value string }
	_ = json.Unmarshal(contents, &one) // any other form has no text
	if one.Language != "" {
		return "```" + one.Language + "\n" + one.Value + "\n```"
	}
	return one.Value
}
