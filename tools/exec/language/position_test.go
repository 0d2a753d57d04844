//go:build !no_lsp

package language

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Places go out and come back in each unit, also behind tabs, characters of several bytes and of two UTF-16 units.
func TestPositions(t *testing.T) {
	text := newContent([]byte("\ta\r\n😀é x\rlast\n"))
	for _, c := range []struct {
		at   Position
		u    unit
		want wirePosition
	}{
		{Position{1, 1}, utf16Units, wirePosition{0, 0}},
		{Position{1, 2}, utf16Units, wirePosition{0, 1}},
		{Position{1, 3}, utf8Units, wirePosition{0, 2}},
		{Position{2, 2}, utf8Units, wirePosition{1, 4}},
		{Position{2, 2}, utf16Units, wirePosition{1, 2}},
		{Position{2, 2}, utf32Units, wirePosition{1, 1}},
		{Position{2, 4}, utf8Units, wirePosition{1, 7}},
		{Position{2, 4}, utf16Units, wirePosition{1, 4}},
		{Position{3, 5}, utf16Units, wirePosition{2, 4}},
		{Position{4, 1}, utf16Units, wirePosition{3, 0}},
	} {
		got, err := text.outward(c.at, c.u)
		if err != nil || got != c.want {
			t.Errorf("%v in %s: %v, %v, want %v", c.at, c.u, got, err, c.want)
		}
		if back := text.inward(c.want, c.u); back != c.at {
			t.Errorf("%v in %s: back as %v", c.at, c.u, back)
		}
	}
	for _, at := range []Position{{0, 1}, {5, 1}, {1, 0}, {1, 4}, {-1, -1}} {
		if got, err := text.outward(at, utf16Units); err == nil {
			t.Errorf("%v is taken for %v", at, got)
		}
	}
	for _, p := range []wirePosition{{0, 1000}, {1000, 0}, {-1, -1}, {1, 1}} {
		if at := text.inward(p, utf16Units); at.Line < 1 || at.Character < 1 {
			t.Errorf("%v comes in as %v", p, at)
		}
	}
}

func TestApplying(t *testing.T) {
	edit := func(line, from, to int, text string) wireEdit {
		return wireEdit{wireRange{wirePosition{line, from}, wirePosition{line, to}}, text}
	}
	for _, c := range []struct {
		text  string
		edits []wireEdit
		want  string
	}{
		{"a b\r\n😀 b\n", []wireEdit{edit(1, 3, 4, "new"), edit(0, 2, 3, "new")}, "a new\r\n😀 new\n"},
		{"ab", []wireEdit{edit(0, 1, 1, "x"), edit(0, 1, 1, "y")}, "axyb"},
		{"ab", []wireEdit{edit(7, 0, 9, "x")}, "abx"},
	} {
		if got, ok := apply(c.text, c.edits, utf16Units); !ok || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.text, got, ok, c.want)
		}
	}
	if got, ok := apply("abc", []wireEdit{edit(0, 0, 2, ""), edit(0, 1, 3, "")}, utf16Units); ok {
		t.Errorf("overlapping edits give %q", got)
	}
}

// What is new after an edit is told from what has only moved.
func TestAdded(t *testing.T) {
	said := func(line int, message string) wireDiagnostic {
		return wireDiagnostic{Range: wireRange{Start: wirePosition{Line: line}}, Severity: 1, Message: message}
	}
	for _, c := range []struct {
		name          string
		before, after string
		was, now      []wireDiagnostic
		want          []wireDiagnostic
	}{
		{"moved down", "a\nb\nc\n", "a\nnew\nb\nc\n", []wireDiagnostic{said(1, "x")}, []wireDiagnostic{said(2, "x")}, nil},
		{"one more of the same", "a\nb\n", "a\nnew\nb\n", []wireDiagnostic{said(1, "x")}, []wireDiagnostic{said(1, "x"), said(2, "x")}, []wireDiagnostic{said(1, "x")}},
		{"within the edit", "a\nb\nc\n", "a\nB\nc\n", []wireDiagnostic{said(1, "x")}, []wireDiagnostic{said(1, "x")}, nil},
		{"other words", "a\n", "b\n", []wireDiagnostic{said(0, "x")}, []wireDiagnostic{said(0, "y")}, []wireDiagnostic{said(0, "y")}},
		{"twice the same before", "a\nb\n", "a\nb\nc\n", []wireDiagnostic{said(0, "x"), said(1, "x")}, []wireDiagnostic{said(0, "x")}, nil},
	} {
		got := added(c.was, c.now, movement(newContent([]byte(c.before)), newContent([]byte(c.after))))
		if diff := cmp.Diff(c.want, got); diff != "" && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestURIs(t *testing.T) {
	for _, path := range []string{"/a/b.go", "/a b/ü#?%.go", "/"} {
		if back := pathOf(uriOf(path)); back != path {
			t.Errorf("%s comes back from %s as %s", path, uriOf(path), back)
		}
	}
	for _, uri := range []string{"", "http://a/b", "file://host/a", "file:a", "file:///a%00b", "%zz", "untitled:1"} {
		if path := pathOf(uri); path != "" {
			t.Errorf("%q names %q", uri, path)
		}
	}
}

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"Content-Length: 2\r\n\r\n{}", "content-length:2\n\n{}", "Content-Length: -1\r\n\r\n", "\r\n\r\n", "Content-Length: 9\r\n\r\n{",
		"Content-Length: 40\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":[null]}`, strings.Repeat("x", maxHeader+1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(data), maxHeader)
		for {
			body, err := readFrame(in)
			if err != nil {
				return
			}
			if len(body) == 0 || len(body) > maxMessage {
				t.Fatalf("a message of %d bytes", len(body))
			}
		}
	})
}

// Whatever a server answers or tells, it is read without harm, and places come in as places.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`null`, `[]`, `{"uri":"file:///a","range":{"start":{"line":1,"character":2},"end":{"line":-1,"character":1e3}}}`,
		`[{"targetUri":"file:///a","targetSelectionRange":{"start":{"line":0,"character":9}}}]`,
		`{"documentChanges":[{"textDocument":{"uri":"file:///a"},"edits":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":2}},"newText":"é"}]}]}`,
		`{"uri":"file:///a","version":3,"diagnostics":[{"message":"m","code":7,"severity":9}]}`,
		`[{"name":"n","kind":99,"children":[{"name":"c","selectionRange":{}}]}]`, `{"contents":[{"language":"go","value":"x"},"y",["z"]]}`,
		`{"token":[1],"value":{"kind":"begin","title":"t"}}`, `[{"from":{"name":"f","uri":"file:///a"},"fromRanges":[{}]}]`,
	} {
		f.Add([]byte(seed), "tab\t😀\r\nline\n")
	}
	f.Fuzz(func(t *testing.T, answer []byte, text string) {
		srv := &server{spec: Server{Command: []string{"x"}}, units: utf16Units, news: newNews(), documents: newDocuments()}
		a := &asked{server: srv, ctx: t.Context(), text: newContent([]byte(text)), raw: []byte(text), texts: map[string]lines{}, query: Query{
			Path: "/a", Text: func(string) ([]byte, error) { return []byte(text), nil },
		}}
		for _, method := range []string{"textDocument/publishDiagnostics", "$/progress", "workspace/configuration"} {
			incoming{srv}.notice(method, answer)
			_, _ = incoming{srv}.answer(method, answer)
		}
		_ = marked(answer)
		_ = code(answer)
		if raw, err := a.oneOrMore(answer); err == nil {
			for _, l := range a.locations(raw) {
				if l.Range.Start.Line < 1 || l.Range.Start.Character < 1 {
					t.Fatalf("%+v", l)
				}
			}
		}
		var symbols []wireSymbol
		if decode(append([]byte(`{"x":`), append(answer, '}')...), &struct{ X *[]wireSymbol }{&symbols}) == nil {
			_ = a.outline(nil, symbols, 0)
		}
		var rename wireRename
		if decode(answer, &rename) == nil {
			_, _ = a.renaming(rename)
		}
		for _, p := range srv.news.all() {
			_ = added(nil, p.list, movement(a.text, newContent(answer)))
		}
	})
}
