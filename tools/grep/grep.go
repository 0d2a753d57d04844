// Package grep is the Grep tool: it finds lines by regular expression. It does not know ignore
// files, nor how a tree is walked.
package grep

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
)

//go:embed description.md
var description string

// Input is the tool's input.
type Input struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression, in ripgrep's syntax"`
	Path       string `json:"path,omitempty" jsonschema:"file or directory to search, absolute or relative to the working directory; default: the working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files whose path matches, such as *.ts or src/**/*.{c,h}; ! in front excludes; separate several with commas"`
	Type       string `json:"type,omitempty" jsonschema:"only files of this type, such as go, py, js, rust"`
	OutputMode string `json:"output_mode,omitempty" jsonschema:"files_with_matches: paths, newest first; content: matching lines; count: matching lines per file" enum:"files_with_matches,content,count" default:"files_with_matches"`
	IgnoreCase bool   `json:"-i,omitempty" jsonschema:"upper and lower case are the same"`
	Numbers    *bool  `json:"-n,omitempty" jsonschema:"line numbers in mode content" default:"true"`
	Only       bool   `json:"-o,omitempty" jsonschema:"in mode content, only the parts of lines that match"`
	After      *int64 `json:"-A,omitempty" jsonschema:"in mode content, lines to show after each match" minimum:"0" maximum:"2147483647"`
	Before     *int64 `json:"-B,omitempty" jsonschema:"in mode content, lines to show before each match" minimum:"0" maximum:"2147483647"`
	Around     *int64 `json:"-C,omitempty" jsonschema:"in mode content, lines to show before and after each match" minimum:"0" maximum:"2147483647"`
	Context    *int64 `json:"context,omitempty" jsonschema:"the same as -C" minimum:"0" maximum:"2147483647"`
	HeadLimit  *int64 `json:"head_limit,omitempty" jsonschema:"how many entries (files, or lines in mode content) to give; 0: all" minimum:"0" maximum:"2147483647" default:"250"`
	Offset     int64  `json:"offset,omitempty" jsonschema:"how many entries to leave out first, to page through a result" minimum:"0" maximum:"2147483647" default:"0"`
	Multiline  bool   `json:"multiline,omitempty" jsonschema:"a match may cross lines, and . matches line breaks too"`
}

const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

// defaultLimit is how many entries a page has if head_limit is not set.
const defaultLimit = 250

// Tool returns the Grep tool. It uses rg if that is on the daemon's PATH, and its own engine
// otherwise.
func Tool() tools.Tool { return newTool(engines{findRipgrep(), (*expression).suits}) }

// engines are the engines that a search can use.
type engines struct {
	rg ripgrep // empty: not installed
	// own reports whether our own engine is better for a pattern, if there is rg too.
	own func(*expression) bool
}

func newTool(e engines) tools.Tool {
	spec := tools.Spec{Name: "Grep", Description: description, ReadOnly: true, TimeLimit: time.Minute, OnInterrupt: tools.Stop}
	return tools.New(spec, tools.Funcs[Input]{
		Validate: func(in *Input) error { return validate(in, e.rg) },
		Effects:  effects,
		Run: func(ctx context.Context, env *tools.Env, in Input) (tools.Result, error) {
			return run(ctx, env, in, e)
		},
	})
}

func effects(in Input) tools.Effects {
	return tools.Effects{Reads: []tools.Path{{Name: cmp.Or(in.Path, "."), Tree: true}}}
}

// validate reports what the schema cannot check. If there is rg, it decides whether a pattern is valid.
func validate(in *Input, rg ripgrep) error {
	if _, err := newFilter(*in); err != nil {
		return err
	}
	if strings.ContainsRune(in.Pattern, 0) {
		return badPattern(`it holds a NUL byte, which no text file does. Write \x00 if you mean one.`)
	}
	if _, err := compile(*in); err != nil && rg == "" {
		return err
	}
	return nil
}

func (in Input) query() *query {
	around := cmp.Or(in.Around, in.Context)
	q := &query{
		mode: cmp.Or(in.OutputMode, modeFiles), multiline: in.Multiline, before: value(cmp.Or(in.Before, around), 0), after: value(cmp.Or(in.After, around), 0),
	}
	q.only = in.Only && q.mode == modeContent
	if q.mode != modeContent || q.only {
		q.before, q.after = 0, 0
	}
	if limit := in.limit(); limit > 0 {
		q.keep = in.Offset + limit
	}
	return q
}

func value(n *int64, otherwise int64) int64 {
	if n == nil {
		return otherwise
	}
	return *n
}

// limit returns how many entries a page has; 0: all.
func (in Input) limit() int64 { return value(in.HeadLimit, defaultLimit) }

// run opens the path, chooses an engine, walks and searches, and formats the result.
func run(ctx context.Context, env *tools.Env, in Input, engines engines) (tools.Result, error) {
	wanted, err := newFilter(in)
	if err != nil {
		return tools.Result{}, err
	}
	tree, err := env.Files.Tree(cmp.Or(in.Path, "."))
	if err != nil {
		return tools.Result{}, err
	}
	defer tree.Close()
	if wanted, err = wanted.at(in, tree.Path.Named, env.Dir); err != nil {
		return tools.Result{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &search{env: env, tree: tree, buffers: tree.Buffers(), query: in.query(), filter: wanted}
	s.got = newGathering(s.keep, func() { stop(errTooMuch) })
	engine, err := s.choose(ctx, in, engines)
	if err != nil {
		return tools.Result{}, err
	}
	tally, err := s.walk(ctx, engine)
	result := s.result(in, tally, err)
	if errors.Is(err, errTooMuch) {
		err = nil // our own limit: the result mentions it, and it is not a failure
	}
	return result, err
}

// A search is one call in progress.
type search struct {
	*query
	env  *tools.Env
	tree *workspace.Tree
	// buffers are the files that editors hold open, by path below the searched directory: their
	// text is searched instead of the file.
	buffers map[string]workspace.Buffer
	filter  filter
	got     *gathering
	known   known
	notes
}

// An engine receives the files to search, from several goroutines at once, and a call when there
// are no more.
type engine interface {
	// visit takes a file, with what is known of its text; nil: nothing is.
	visit(ctx context.Context, f *walk.File, known *index.Text)
	buffer(ctx context.Context, path string, b workspace.Buffer)
	// pass counts a file of that name that is not visited, since nothing would be found in it. It returns false
	// if the file must be visited all the same.
	pass(name string, isBinary bool) bool
	finish(ctx context.Context)
}

// choose returns our own engine if it finds what rg finds and is as fast. Otherwise it returns rg,
// if it is installed and no rule denies reading anything. rg opens files by name, so a searched
// file could be replaced by a link to a denied one.
func (s *search) choose(ctx context.Context, in Input, from engines) (engine, error) {
	expr, err := compile(in)
	s.expr = expr
	if expr != nil {
		s.known.ask(expr)
	}
	if s.tree.Guarded() && err != nil && from.rg != "" {
		f := *fault.From(err)
		f.Message += "\nripgrep, which supports more patterns, is not used because there are rules that deny reading files."
		err = &f
	}
	if from.rg == "" || s.tree.Guarded() || err == nil && from.own(expr) {
		return &ownEngine{search: s}, err
	}
	refused := from.rg.check(ctx, s.env, in)
	if errors.Is(refused, errUnusable) {
		return &ownEngine{search: s}, err
	}
	return &rgEngine{search: s, own: &ownEngine{search: s}, rg: from.rg, flags: flags(in, s.query), pattern: in.Pattern}, refused
}

// walk passes the named file, or the tree, to the engine.
func (s *search) walk(ctx context.Context, e engine) (walk.Tally, error) {
	unmet := s.unmet()
	visit := func(f *walk.File) {
		if !f.Type.IsRegular() {
			return
		}
		if len(s.buffers) > 0 {
			if b, open := s.buffers[f.Path()]; open {
				if !unmet[f.Path()] {
					s.visitBuffer(ctx, e, f.Path(), b)
				}
				return
			}
		}
		s.visitFile(ctx, e, f)
	}
	if s.tree.Single != "" {
		if b, open := s.buffers[s.tree.Single]; open {
			s.visitBuffer(ctx, e, s.tree.Single, b)
		} else if err := walk.Single(s.tree.Root, s.tree.Single, visit); err != nil {
			s.note(fmt.Sprintf("could not read %s: %v", s.tree.Path.Name(), err))
		}
		e.finish(ctx)
		return walk.Tally{}, context.Cause(ctx)
	}
	o := walk.Options{
		Dir: s.tree.Real, Top: s.env.Files.Disk(s.env.Dir), Bound: s.tree.Bound(), Environ: s.env.Environ, Choose: s.wants, Visit: visit, Index: s.env.Index,
		Beat: func(n int64) { s.env.Report(tools.Step{Message: "searching", Done: n}) },
	}
	tally, err := walk.Files(ctx, s.tree.Root, o)
	tally.Add(s.visitNew(ctx, e, o, unmet))
	e.finish(ctx)
	s.env.Index.Learn(s.tree.Root, &s.known.unknown)
	return tally, cmp.Or(context.Cause(ctx), err)
}

// visitBuffer searches the text of an open file. If the editor's text is unknown, the file is not
// searched at all.
func (s *search) visitBuffer(ctx context.Context, e engine, path string, b workspace.Buffer) {
	if b.Err != nil {
		s.note(fmt.Sprintf("%s is open in an editor. %s", workspace.NameOf(path), strings.TrimSuffix(fault.From(b.Err).Message, ".")))
		return
	}
	e.buffer(ctx, path, b)
}

// visitNew searches open files that are not on the disk yet, which no walk finds.
func (s *search) visitNew(ctx context.Context, e engine, o walk.Options, unmet map[string]bool) (left walk.Tally) {
	for _, path := range slices.Sorted(maps.Keys(unmet)) {
		taken, out := walk.Missing(s.tree.Root, o, path)
		if left.Add(out); taken && ctx.Err() == nil {
			s.visitBuffer(ctx, e, path, s.buffers[path])
		}
	}
	return left
}

// unmet returns the paths of buffers that are not on the disk. A walk skips a file that appears
// there meanwhile.
func (s *search) unmet() map[string]bool {
	unmet := map[string]bool{}
	for path := range s.buffers {
		if _, err := s.tree.Root.Lstat(path); err != nil {
			unmet[path] = true
		}
	}
	return unmet
}

// wants leaves out version-control directories, files that glob and type do not select and,
// counted, what a rule denies reading.
func (s *search) wants(dir string) walk.Chooser {
	return func(name string, kind fs.FileMode) walk.Choice {
		switch name {
		case ".git", ".hg", ".svn", ".bzr", ".jj":
			return walk.Leave
		}
		switch {
		case kind.IsDir() && s.tree.Hidden(dir+name), !s.filter.takes(dir, name, kind.IsDir()):
			return walk.Leave
		case kind&fs.ModeSymlink != 0:
			s.links.Add(1)
			return walk.Leave
		case s.tree.Guarded() && s.tree.ReadDenied(dir+name, kind):
			return walk.Deny
		}
		return walk.Take
	}
}
