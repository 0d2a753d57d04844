// Package lsp is the LSP tool: questions about code that a language server answers. It checks the
// question, removes from the answer what the call may not read, and formats the rest. It does not
// know how servers are run, and it changes nothing.
package lsp

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/fault"
)

//go:embed description.md
var description string

// Input is the tool's input.
type Input struct {
	Operation string `json:"operation" jsonschema:"what to ask the server" enum:"definition,references,hover,document_symbols,workspace_symbols,implementation,call_hierarchy,diagnostics,rename_preview"`
	FilePath  string `json:"file_path" jsonschema:"absolute path of the file"`
	Line      int    `json:"line,omitempty" jsonschema:"line of what is asked about, from 1" minimum:"0"`
	Character int    `json:"character,omitempty" jsonschema:"character in that line, from 1; a tab is one" minimum:"0"`
	Query     string `json:"query,omitempty" jsonschema:"workspace_symbols: a part of the symbol's name; rename_preview: the new name"`
}

// Limits of a question and its result. Our own.
const (
	maxText  = 8 << 20 // bytes of a file that a server is sent: as much as a session keeps of a file that it has read
	maxShown = 200     // entries of a result
	maxQuery = 1000    // bytes
)

// A question is one operation: its required fields, its answer, and how messages name that.
type question struct {
	place bool // line and character
	query bool
	ask   func(context.Context, *call) error
	noun  string // of an entry
	none  string // the text for an answer without entries
}

var questions = map[string]question{
	"definition":        {true, false, places((*language.Set).Definition), "place", "The server has no definition for that position."},
	"references":        {true, false, places((*language.Set).References), "place", "The server has no references for that position."},
	"implementation":    {true, false, places((*language.Set).Implementation), "place", "The server has no implementation for that position."},
	"hover":             {true, false, hover, "place", "The server has no description for that position."},
	"document_symbols":  {false, false, outline, "symbol", "The file has no symbols."},
	"workspace_symbols": {false, true, search, "symbol", "The server has no symbol with a name like that."},
	"call_hierarchy":    {true, false, hierarchy, "function", "The server has no function at that position."},
	"diagnostics":       {false, false, diagnose, "diagnostic", "No errors or warnings."},
	"rename_preview":    {true, true, rename, "file", "The renaming would change nothing."},
}

// Tool returns the LSP tool.
func Tool() tools.Tool {
	spec := tools.Spec{
		Name: "LSP", Description: description, ReadOnly: true, TimeLimit: time.Minute, OnInterrupt: tools.Stop,
		Available: func(env *tools.Env) string { return env.Languages.Unavailable() },
	}
	return tools.New(spec, tools.Funcs[Input]{Validate: validate, Effects: effects, Check: check, Run: run})
}

// validate reports everything that the schema cannot check, all at once.
func validate(in *Input) error {
	var wrong []tools.Violation
	fields := func(field, expected string) {
		wrong = append(wrong, tools.Violation{Field: field, Expected: expected})
	}
	asked := questions[in.Operation]
	number := func(name string, value int) {
		if value == 0 && asked.place {
			fields("/"+name, fmt.Sprintf("%s needs it; %ss count from 1", in.Operation, name))
		}
	}
	number("line", in.Line)
	number("character", in.Character)
	switch {
	case asked.query && strings.TrimSpace(in.Query) == "":
		fields("/query", in.Operation+" needs it")
	case len(in.Query) > maxQuery:
		fields("/query", fmt.Sprintf("it has %d bytes; the limit is %d", len(in.Query), maxQuery))
	}
	if len(wrong) > 0 {
		return tools.Violated("LSP", wrong)
	}
	return nil
}

// effects declares that the server reads the whole project, and so do the answers.
func effects(in Input) tools.Effects {
	return tools.Effects{Reads: []tools.Path{{Name: in.FilePath}, {Name: ".", Tree: true}}, ReadsMore: true}
}

// check checks that the file exists, and that a server is configured for it.
func check(_ context.Context, env *tools.Env, in Input) (tools.Preview, error) {
	_, err := open(env, in)
	return tools.Preview{}, err
}

// open converts the input to a query.
func open(env *tools.Env, in Input) (language.Query, error) {
	if err := env.Files.Absolute(in.FilePath); err != nil {
		return language.Query{}, err
	}
	f, err := env.Files.Open(in.FilePath)
	if err != nil {
		return language.Query{}, err
	}
	f.Close()
	q := language.Query{
		Path: f.Path.Real, At: language.Position{Line: in.Line, Character: in.Character},
		Text: func(path string) ([]byte, error) { return read(env, path) }, Others: buffers(env),
	}
	return q, env.Languages.Check(q.Path)
}

// buffers returns the files below the working directory that an editor holds open, and that may
// differ from the disk.
func buffers(env *tools.Env) (paths []string) {
	tree, err := env.Files.Tree(".")
	if err != nil {
		return nil // nothing there can be read either
	}
	defer tree.Close()
	for rel := range tree.Buffers() {
		paths = append(paths, filepath.Join(tree.Real, rel))
	}
	slices.Sort(paths)
	return paths
}

// read returns the text of a file, if the call may read it.
func read(env *tools.Env, path string) ([]byte, error) {
	f, err := env.Files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return nil, fault.Failedf("io_error", "%s could not be read: %v.", f.Path.Shown(), err)
	case len(data) > maxText:
		return nil, fault.Failedf("file_too_large", "%s has more than %d MiB, the most that a language server is sent.", f.Path.Shown(), maxText>>20)
	}
	return data, nil
}

// A call is one question in progress, with its result.
type call struct {
	env   *tools.Env
	in    Input
	query language.Query
	found Found
	body  []string // formatted entries of the shown page
}

func run(ctx context.Context, env *tools.Env, in Input) (tools.Result, error) {
	q, err := open(env, in)
	if err != nil {
		return tools.Result{}, err
	}
	c := &call{env: env, in: in, query: q, found: Found{Operation: in.Operation, FilePath: q.Path}}
	if err := questions[in.Operation].ask(ctx, c); err != nil {
		return tools.Result{}, err
	}
	if in.Operation != "diagnostics" || c.found.Incomplete {
		c.found.Busy = env.Languages.Busy(q.Path)
	}
	return c.result(), nil
}

// result combines the entries and the remarks.
func (c *call) result() tools.Result {
	remarks := c.remarks()
	if len(c.body) > 0 && len(remarks) > 0 {
		remarks = append([]string{""}, remarks...)
	}
	result := tools.Text(strings.Join(slices.Concat(c.body, remarks), "\n"))
	result.Structured = c.found
	return result
}
