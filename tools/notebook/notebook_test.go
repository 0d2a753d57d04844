package notebook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/media/ipynb"
	"github.com/toold/toold/tools/notebook"
	"github.com/toold/toold/tools/tooltest"
)

type session struct{ *tooltest.Files }

func newSession(t testing.TB) *session {
	t.Helper()
	return &session{tooltest.NewFiles(t, t.TempDir())}
}

// put writes a notebook and notes that the session has read it.
func (s *session) put(content string) string {
	path := s.Put("book.ipynb", content)
	s.Read(path)
	return path
}

type call struct {
	Path   string `json:"notebook_path"`
	Cell   string `json:"cell_id,omitempty"`
	Source string `json:"new_source"`
	Type   string `json:"cell_type,omitempty"`
	Mode   string `json:"edit_mode,omitempty"`
}

func (s *session) edit(t testing.TB, in call) (tools.Preview, notebook.Structured, string, error) {
	t.Helper()
	preview, result, err := s.Call(notebook.Tool(), in)
	if err != nil {
		return preview, notebook.Structured{}, "", err
	}
	out := result.Structured.(notebook.Structured)
	if preview.Diff != out.Diff {
		t.Errorf("the preview shows\n%sthe result\n%s", preview.Diff, out.Diff)
	}
	return preview, out, result.Content[0].Text, nil
}

// jupyter is a notebook as Jupyter writes it; its cells are in the blanks.
func jupyter(list ...string) string {
	return "{\n \"cells\": [\n" + strings.Join(list, ",\n") + "\n ],\n \"metadata\": {\"x\":   1.50, \"a\": \"\\u00e9é\"},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
}

const (
	intro = "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]\n  }"
	first = "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"first\",\n   \"metadata\": {\"tags\": []},\n" +
		"   \"outputs\": [\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"1\\n\"\n     ]\n    }\n   ],\n" +
		"   \"source\": [\n    \"print(1)\"\n   ]\n  }"
	empty = "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"empty\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": []\n  }"
)

// oneLine is a notebook as Kaggle writes it.
const oneLine = `{"metadata":{"language_info":{"name":"python"}},"nbformat_minor":4,"nbformat":4,"cells":[{"cell_type":"code","source":"a = 1","metadata":{"trusted":true},"execution_count":1,"outputs":[{"output_type":"stream","text":"x","name":"stdout"}]},{"cell_type":"markdown","source":"text","metadata":{}}]}`

func TestEdits(t *testing.T) {
	// These are what Jupyter itself would have written.
	replaced := strings.NewReplacer("\"execution_count\": 3", "\"execution_count\": null", first[strings.Index(first, "[\n    {"):strings.Index(first, ",\n   \"source\"")], "[]",
		"\"print(1)\"", "\"a = \\\"<é>\\\"\\n\",\n    \"b\\n\"").Replace(first)
	for _, c := range []struct {
		name, file string
		in         call
		want       string
	}{
		{"replace code", jupyter(intro, first, empty), call{Cell: "first", Source: "a = \"<é>\"\nb\n"}, jupyter(intro, replaced, empty)},
		{"replace markdown", jupyter(intro, first), call{Cell: "intro", Source: "# Other"}, jupyter(strings.Replace(intro, "\"# Title\\n\",\n    \"text\"", "\"# Other\"", 1), first)},
		{"replace by nothing", jupyter(intro), call{Cell: "intro"}, jupyter(strings.Replace(intro, "[\n    \"# Title\\n\",\n    \"text\"\n   ]", "[]", 1))},
		{"replace nothing", jupyter(empty), call{Cell: "empty", Source: "x"}, jupyter(strings.Replace(empty, "\"source\": []", "\"source\": [\n    \"x\"\n   ]", 1))},
		{"CRLF", strings.ReplaceAll(jupyter(intro, empty), "\n", "\r\n"), call{Cell: "empty", Source: "x"}, strings.ReplaceAll(jupyter(intro, strings.Replace(empty, "\"source\": []", "\"source\": [\n    \"x\"\n   ]", 1)), "\n", "\r\n")},
		{
			"code into markdown", jupyter(first),
			call{Cell: "first", Source: "x", Type: "markdown"},
			jupyter("  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"first\",\n   \"metadata\": {\"tags\": []},\n   \"source\": [\n    \"x\"\n   ]\n  }"),
		},
		{
			"markdown into code", jupyter(intro),
			call{Cell: "intro", Source: "x", Type: "code"},
			jupyter("  {\n   \"cell_type\": \"code\",\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"source\": [\n    \"x\"\n   ],\n   \"outputs\": [],\n   \"execution_count\": null\n  }"),
		},
		{"delete the first", jupyter(intro, first, empty), call{Cell: "intro", Mode: "delete"}, jupyter(first, empty)},
		{"delete one between", jupyter(intro, first, empty), call{Cell: "first", Mode: "delete"}, jupyter(intro, empty)},
		{"delete the last", jupyter(intro, first, empty), call{Cell: "empty", Mode: "delete"}, jupyter(intro, first)},
		{"delete the only one", jupyter(intro), call{Cell: "intro", Mode: "delete"}, strings.Replace(jupyter("X"), "[\nX\n ]", "[]", 1)},
		{"one line, replace", oneLine, call{Cell: "cell-0", Source: "b = \"é\"\n"}, strings.NewReplacer(`"a = 1"`, `"b = \"é\"\n"`, `"execution_count":1`, `"execution_count":null`, `[{"output_type":"stream","text":"x","name":"stdout"}]`, `[]`).Replace(oneLine)},
		{"one line, insert first", oneLine, call{Source: "x", Type: "markdown", Mode: "insert"}, strings.Replace(oneLine, `"cells":[`, `"cells":[{"cell_type":"markdown","metadata":{},"source":"x"},`, 1)},
		{"one line, insert last", oneLine, call{Cell: "cell-1", Source: "x", Type: "code", Mode: "insert"}, strings.Replace(oneLine, `{}}]}`, `{}},{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":"x"}]}`, 1)},
		{"one line, insert into nothing", `{"nbformat":4,"cells":[]}`, call{Source: "x\ny", Type: "markdown", Mode: "insert"}, `{"nbformat":4,"cells":[{"cell_type":"markdown","metadata":{},"source":["x\n","y"]}]}`},
		{"one line, blanks between", `{"nbformat": 4, "cells": [{"cell_type": "raw", "source": ["a", "b"]}]}`, call{Cell: "cell-0", Source: "x\ny"}, `{"nbformat": 4, "cells": [{"cell_type": "raw", "source": ["x\n", "y"]}]}`},
		{"all escaped", `{"cells": [{"cell_type": "raw", "source": "\u00e9"}]}`, call{Cell: "cell-0", Source: "日😀"}, `{"cells": [{"cell_type": "raw", "source": "\u65e5\ud83d\ude00"}]}`},
		{"no source", `{"cells":[{"cell_type":"raw"}]}`, call{Cell: "cell-0", Source: "x"}, `{"cells":[{"cell_type":"raw","source":["x"]}]}`},
		{"CRLF in the source", `{"cells":[{"cell_type":"raw","source":"a\r\nb"}]}`, call{Cell: "cell-0", Source: "x\ny"}, `{"cells":[{"cell_type":"raw","source":"x\r\ny"}]}`},
		{"byte order mark", "\ufeff" + `{"cells":[{"cell_type":"raw","source":"a"}]}`, call{Cell: "cell-0", Source: "é"}, "\ufeff" + `{"cells":[{"cell_type":"raw","source":"é"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			c.in.Path = s.put(c.file)
			_, out, _, err := s.edit(t, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(c.in.Path); string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if out.Diff == "" || out.Unchanged {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A new cell has an id where the format wants one, the same in the question and in the result.
func TestInsertedCellHasAnID(t *testing.T) {
	s := newSession(t)
	path := s.put(jupyter(intro, empty))
	preview, out, text, err := s.edit(t, call{Path: path, Cell: "intro", Source: "one\ntwo", Type: "code", Mode: "insert"})
	if err != nil || len(out.CellID) != 8 || out.Cells != 3 || !strings.Contains(preview.Diff, out.CellID) || !strings.Contains(preview.Diff, "+one\n") {
		t.Fatalf("%v %+v\n%s", err, out, preview.Diff)
	}
	if !strings.Contains(text, "code cell "+out.CellID+" was inserted behind intro") || !strings.Contains(text, "     2\ttwo") {
		t.Errorf("says\n%s", text)
	}
	cell := "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"" + out.CellID + "\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"one\\n\",\n    \"two\"\n   ]\n  }"
	if got, _ := os.ReadFile(path); string(got) != jupyter(intro, cell, empty) {
		t.Errorf("got\n%s", got)
	}
	// What it has written itself it knows, and the same again is another cell.
	_, again, _, err := s.edit(t, call{Path: path, Cell: "intro", Source: "one\ntwo", Type: "code", Mode: "insert"})
	if err != nil || again.CellID == out.CellID {
		t.Errorf("%v: %s twice", err, again.CellID)
	}
}

func TestSaysWhatElseChanges(t *testing.T) {
	s := newSession(t)
	path := s.put(jupyter(first, empty))
	_, out, text, err := s.edit(t, call{Path: path, Cell: "first", Source: "x"})
	if err != nil || out.Cleared != 1 || !strings.Contains(text, "1 output and the execution count were cleared") || !strings.Contains(out.Diff, "-print(1)") {
		t.Errorf("%v %+v\n%s", err, out, text)
	}
	before, _ := os.ReadFile(path)
	_, out, text, err = s.edit(t, call{Path: path, Cell: "first", Source: "x", Type: "code"})
	if after, _ := os.ReadFile(path); err != nil || !out.Unchanged || out.Diff != "" || !strings.Contains(text, "nothing was written") || string(after) != string(before) {
		t.Errorf("the same again: %v %+v\n%s", err, out, text)
	}
	path = s.put(`{"cells":[{"cell_type":"markdown","source":"![a](attachment:a.png)","attachments":{"a.png":{"image/png":"iVBO"}}}]}`)
	if preview, _, text, err := s.edit(t, call{Path: path, Cell: "cell-0", Source: "x", Type: "code"}); err != nil || !strings.Contains(text, "attachments were removed") || !strings.Contains(preview.Diff, "attachments") {
		t.Errorf("%v\n%s", err, text)
	}
	path = s.put(oneLine)
	if _, _, text, err = s.edit(t, call{Path: path, Cell: "cell-0", Mode: "delete"}); err != nil || !strings.Contains(text, "have new names") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestRefused(t *testing.T) {
	s := newSession(t)
	book := s.put(jupyter(intro, first))
	other := func(name, content string) string {
		path := s.Put(name, content)
		s.Read(path)
		return path
	}
	for _, c := range []struct {
		in                 call
		code, field, words string
	}{
		{call{Path: "book.ipynb", Cell: "intro"}, "invalid_input", "/notebook_path", s.Root + "/book.ipynb"},
		{call{Path: s.Root + "/none.ipynb", Cell: "intro"}, "file_not_found", "/notebook_path", "none"},
		{call{Path: s.Root, Cell: "intro"}, "is_directory", "/notebook_path", "LS"},
		{call{Path: "/somewhere/else", Cell: "intro"}, "undeclared", "/notebook_path", ""},
		{call{Path: book, Cell: "outro"}, "cell_not_found", "/cell_id", "intro, first"},
		{call{Path: book, Cell: "cell-0"}, "cell_not_found", "/cell_id", ""},
		{call{Path: book}, "invalid_input", "/cell_id", ""},
		{call{Path: book, Mode: "delete"}, "invalid_input", "/cell_id", ""},
		{call{Path: book, Mode: "insert"}, "invalid_input", "/cell_type", ""},
		{call{Path: book, Mode: "move", Cell: "intro"}, "invalid_input", "/edit_mode", "'replace', 'insert', 'delete'"},
		{call{Path: book, Cell: "intro", Type: "sql"}, "invalid_input", "/cell_type", "'code', 'markdown'"},
		{call{Path: other("old.ipynb", `{"nbformat":3,"worksheets":[]}`), Cell: "a"}, "unsupported_media", "/notebook_path", "nbconvert"},
		{call{Path: other("bad.ipynb", "{\n\"cells\": [\n"), Cell: "a"}, "damaged_file", "/notebook_path", "line"},
		{call{Path: other("text.txt", "text"), Cell: "a"}, "damaged_file", "/notebook_path", "not JSON"},
	} {
		_, _, _, err := s.edit(t, c.in)
		if f := fault.From(err); err == nil || f.Code != c.code || f.Field != c.field || !strings.Contains(f.Message, c.words) {
			t.Errorf("%+v: %v at %q", c.in, err, f.Field)
		}
	}
}

// A call that is stopped stops between two steps, and leaves the file alone.
func TestStopped(t *testing.T) {
	s := newSession(t)
	path := s.put(jupyter(first))
	action, err := notebook.Tool().Parse([]byte(`{"notebook_path":"` + path + `","cell_id":"first","new_source":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(gone)
	if _, err := action.Check(ctx, s.Env()); !errors.Is(err, gone) {
		t.Errorf("the check says %v", err)
	}
	if _, err := action.Run(ctx, s.Env()); !errors.Is(err, gone) {
		t.Errorf("the run says %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != jupyter(first) {
		t.Errorf("the file holds %s", got)
	}
}

func TestReadStateIsNeeded(t *testing.T) {
	s := newSession(t)
	path := s.Put("book.ipynb", jupyter(intro))
	in := call{Path: path, Cell: "intro", Source: "x"}
	if _, _, _, err := s.edit(t, in); tooltest.Code(err) != "not_read" {
		t.Errorf("never read: %v", err)
	}
	s.Read(path)
	s.Put("book.ipynb", jupyter(intro, first))
	if _, _, _, err := s.edit(t, in); tooltest.Code(err) != "stale_file" {
		t.Errorf("changed since: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != jupyter(intro, first) {
		t.Errorf("it holds %s", got)
	}
}

// What a rule denies reading is not written either, and the rule is named.
func TestDenied(t *testing.T) {
	s := newSession(t)
	path := s.put(jupyter(intro))
	s.Bar("book.ipynb")
	_, _, _, err := s.edit(t, call{Path: path, Cell: "intro", Source: "x"})
	if f := fault.From(err); f.Code != "rule_denied" || f.Kind != fault.Denied || f.Field != "/notebook_path" || !strings.Contains(f.Message, tooltest.Rule) {
		t.Errorf("%v, want rule_denied with the path and the rule", err)
	}
}

func TestLinks(t *testing.T) {
	s := newSession(t)
	path := s.put(jupyter(intro))
	if err := os.Link(path, filepath.Join(s.Root, "hard")); err != nil {
		t.Fatal(err)
	}
	preview, _, text, err := s.edit(t, call{Path: path, Cell: "intro", Source: "x"})
	if err != nil || !strings.Contains(preview.Ask, "hard links") || !strings.Contains(text, "Note: "+preview.Ask) {
		t.Errorf("%v, asks %q, says\n%s", err, preview.Ask, text)
	}
}

// Whatever the notebook and the edit: the other cells keep their bytes, and so does what stands around them.
func TestNothingElseChanges(t *testing.T) {
	s := newSession(t)
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 1, 5, func(s string) string { return s }).Draw(rt, "names")
		var list []string
		for _, name := range names {
			shape := rapid.SampledFrom([]string{intro, first, empty}).Draw(rt, "shape")
			for _, id := range []string{"intro", "first", "empty"} {
				shape = strings.Replace(shape, `"`+id+`"`, `"`+name+`"`, 1)
			}
			list = append(list, shape)
		}
		file := jupyter(list...)
		switch rapid.IntRange(0, 2).Draw(rt, "form") {
		case 1:
			file = strings.ReplaceAll(file, "\n", "\r\n")
		case 2:
			file = strings.ReplaceAll(strings.ReplaceAll(file, "\n", ""), "  ", "")
		}
		in := call{
			Path: s.put(file), Cell: rapid.SampledFrom(names).Draw(rt, "cell"), Source: rapid.String().Draw(rt, "source"),
			Type: rapid.SampledFrom([]string{"code", "markdown"}).Draw(rt, "type"), Mode: rapid.SampledFrom([]string{"replace", "insert", "delete"}).Draw(rt, "mode"),
		}
		_, out, _, err := s.edit(t, in)
		if err != nil {
			rt.Fatal(err)
		}
		data, _ := os.ReadFile(in.Path)
		before, err := ipynb.Parse([]byte(file))
		if err != nil {
			rt.Fatal(err)
		}
		after, err := ipynb.Parse(data)
		if err != nil {
			rt.Fatal(err)
		}
		keep := func(n *ipynb.Notebook) (kept []string) {
			for _, c := range n.Cells {
				if c.ID != out.CellID {
					kept = append(kept, string(n.Raw[c.Span.From:c.Span.To]))
				}
			}
			return append(kept, string(n.Raw[:n.List.From]), string(n.Raw[n.List.To:]))
		}
		if got, want := keep(after), keep(before); !slices.Equal(got, want) {
			rt.Fatalf("%+v\ngot  %q\nwant %q", in, got, want)
		}
		if i, found := after.Index(out.CellID); found != (in.Mode != "delete") || found && (after.Cells[i].Source != in.Source || after.Cells[i].Type != in.Type) {
			rt.Fatalf("%+v became %s", in, data)
		}
	})
}

// Whatever is in the file, an edit leaves a notebook or changes nothing, and it never panics.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(jupyter(intro, first, empty)), "x\ny", 0)
	f.Add([]byte(oneLine), "é", 4)
	f.Fuzz(func(t *testing.T, data []byte, source string, which int) {
		book, err := ipynb.Parse(slices.Clone(data))
		if err != nil || len(book.Cells) == 0 {
			return
		}
		s := newSession(t)
		in := call{
			Path: s.put(string(data)), Cell: book.Cells[uint(which)%uint(len(book.Cells))].ID, Source: source,
			Type: []string{"code", "markdown"}[uint(which)%2], Mode: []string{"replace", "insert", "delete"}[uint(which)%3],
		}
		if _, _, _, err := s.edit(t, in); err != nil {
			return
		}
		if got, _ := os.ReadFile(in.Path); !json.Valid([]byte(strings.TrimPrefix(string(got), "\ufeff"))) {
			t.Errorf("%+v made\n%s\nof\n%s", in, got, data)
		}
	})
}

func TestTool(t *testing.T) {
	files := map[string]string{"a.ipynb": jupyter(intro, first)}
	tooltest.Check(t, notebook.Tool(),
		tooltest.Case{Name: "replace", Input: `{"notebook_path":"$ROOT/a.ipynb","cell_id":"first","new_source":"x"}`, Files: files, Seen: []string{"a.ipynb"}},
		tooltest.Case{Name: "insert", Input: `{"notebook_path":"$ROOT/a.ipynb","new_source":"x","cell_type":"code","edit_mode":"insert"}`, Files: files, Seen: []string{"a.ipynb"}},
		tooltest.Case{Name: "delete", Input: `{"notebook_path":"$ROOT/a.ipynb","cell_id":"first","new_source":"","edit_mode":"delete"}`, Files: files, Seen: []string{"a.ipynb"}},
	)
}
