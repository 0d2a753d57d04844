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

// failedf makes a fault language_server_failed.
func failedf(format string, args ...any) error {
	return fault.Failedf("language_server_failed", format, args...)
}

// asked is one request in progress, to a server that sees everything as it is now.
type asked struct {
	*server
	ctx   context.Context
	query Query
	raw   []byte
	text  content          // of the file
	texts map[string]lines // of some others, by path
}

// ask finds the server of the file, updates its texts, and calls do with it. The server must have
// the capability, which messages call what; empty: it needs none. If the server ends meanwhile, it
// is started again once: no request changes anything.
func ask[T any](ctx context.Context, s *Set, q Query, capability, what string, do func(*asked) (T, error)) (answer T, err error) {
	var gone *goneError
	for range 2 {
		srv, err := s.server(ctx, q.Path)
		if err != nil {
			return answer, err
		}
		if capability != "" && !srv.able(capability) {
			return answer, fault.Failedf("not_served", "%s does not support %s. Use Grep, or read the files.", srv.spec.name(), what)
		}
		a, err := srv.prepare(ctx, q)
		if err == nil {
			answer, err = do(a)
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if !errors.As(err, &gone) {
			return answer, err
		}
	}
	return answer, failedf("%s. The request was sent twice.", gone.words)
}

// prepare shows the server the present texts.
func (s *server) prepare(ctx context.Context, q Query) (*asked, error) {
	s.loaded(ctx)
	raw, err := q.Text(q.Path)
	if err != nil {
		return nil, err
	}
	if err := s.documents.take(ctx); err != nil {
		return nil, err
	}
	s.refresh(ctx, q)
	s.show(q.Path, raw)
	s.documents.give()
	return &asked{server: s, ctx: ctx, query: q, raw: raw, text: newContent(raw), texts: map[string]lines{}}, nil
}

// callAt sends a request about the position of the query. with has its other parameters.
func (a *asked) callAt(method string, with wirePlace, answer any) error {
	p, err := a.text.outward(a.query.At, a.units)
	if err != nil {
		return err
	}
	with.Document.URI, with.Position = uriOf(a.query.Path), &p
	return a.call(a.ctx, method, with, answer)
}

// callAbout sends a request about the file of the query.
func (a *asked) callAbout(method string, answer any) error {
	return a.call(a.ctx, method, wirePlace{Document: wireDocument{URI: uriOf(a.query.Path)}}, answer)
}

// read returns the caller's text of a file. After the end of ctx it reads no more, since the answer
// is not used then.
func (a *asked) read(path string) ([]byte, error) {
	switch {
	case path == "":
		return nil, errNoFile
	case path == a.query.Path:
		return a.raw, nil
	case a.ctx.Err() != nil:
		return nil, a.ctx.Err()
	}
	return a.query.Text(path)
}

// Definition returns the definition of the symbol at the position.
func (s *Set) Definition(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "definition", nil)
}

// References returns the uses of the symbol at the position, its declaration included.
func (s *Set) References(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "references", map[string]any{"includeDeclaration": true})
}

// Implementation returns the implementations of the interface or method at the position.
func (s *Set) Implementation(ctx context.Context, q Query) ([]Location, error) {
	return s.locate(ctx, q, "implementation", nil)
}

func (s *Set) locate(ctx context.Context, q Query, what string, with any) ([]Location, error) {
	return ask(ctx, s, q, what+"Provider", what, func(a *asked) ([]Location, error) {
		var answer json.RawMessage
		if err := a.callAt("textDocument/"+what, wirePlace{Context: with}, &answer); err != nil {
			return nil, err
		}
		raw, err := a.oneOrMore(answer)
		return a.locations(raw), err
	})
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
		return nil, a.misfit(err)
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
func (a *asked) locations(raw []wireLocation) []Location {
	found := make([]Location, 0, len(raw))
	slices.SortStableFunc(raw, byPlace)
	for i, w := range raw {
		if i == 0 || byPlace(w, raw[i-1]) != 0 {
			found = append(found, a.location(w))
		}
	}
	return found
}

func byPlace(x, y wireLocation) int {
	return cmp.Or(strings.Compare(x.URI, y.URI), cmp.Compare(x.Range.Start.Line, y.Range.Start.Line),
		cmp.Compare(x.Range.Start.Character, y.Range.Start.Character), cmp.Compare(x.Range.End.Line, y.Range.End.Line),
		cmp.Compare(x.Range.End.Character, y.Range.End.Character))
}

// lines is the text of a file, or why it cannot be read.
type lines struct {
	text content
	err  error
}

// maxTexts is how many texts of other files are kept at once. An answer names the places in one
// file together, or those in two by turns.
const maxTexts = 2

func (a *asked) location(w wireLocation) Location {
	path := pathOf(w.URI)
	l, known := a.texts[path]
	if path == a.query.Path {
		l = lines{text: a.text}
	} else if !known {
		raw, err := a.read(path)
		if l = (lines{newContent(raw), err}); len(a.texts) == maxTexts {
			clear(a.texts)
		}
		a.texts[path] = l
	}
	if l.err != nil {
		return Location{Path: cmp.Or(path, printable(w.URI, 1000)), Range: w.Range.plain(), Unread: l.err}
	}
	return Location{Path: path, Range: l.text.rangeOf(w.Range, a.units), Line: l.text.line(w.Range.Start.Line)}
}

// Hover returns the server's description of the symbol at the position, as Markdown or plain text;
// empty: none.
func (s *Set) Hover(ctx context.Context, q Query) (string, error) {
	return ask(ctx, s, q, "hoverProvider", "hover", func(a *asked) (string, error) {
		var answer struct {
			Contents json.RawMessage `json:"contents"`
		}
		err := a.callAt("textDocument/hover", wirePlace{}, &answer)
		return strings.TrimSpace(strings.ToValidUTF8(marked(answer.Contents), "\uFFFD")), err
	})
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
