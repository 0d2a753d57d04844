// Finds the files that a call is about and looks into each.

package main

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
)

// largest is the size in bytes up to which files are looked into: source files are smaller, and each is held whole.
const largest = 4 << 20

// A choice is file_glob and exclude.
type choice struct{ include, exclude *walk.Rules }

// newChoice reads the globs, which have the syntax of ignore files and braces besides.
func newChoice(in Input) (choice, error) {
	var globs []string
	if in.FileGlob != "" {
		globs = []string{in.FileGlob}
	}
	include, err := rulesOf(globs, "/file_glob")
	exclude, err2 := rulesOf(in.Exclude, "/exclude")
	return choice{include, exclude}, cmp.Or(err, err2)
}

func rulesOf(globs []string, field string) (*walk.Rules, error) {
	if len(globs) == 0 {
		return nil, nil //nolint:nilnil // no rules are no mistake
	}
	var lines []string
	for _, glob := range globs {
		all, ok := walk.Braces(glob)
		if !ok || strings.TrimSpace(glob) == "" || strings.HasPrefix(glob, "!") || strings.ContainsAny(glob, "\n\r\x00") {
			return nil, fault.Invalidf("bad_pattern", "The glob %q is none: it is empty, begins with !, or its braces stand for too much.", glob).At(field)
		}
		lines = append(lines, all...)
	}
	rules := walk.ParseRules([]byte(strings.Join(lines, "\n")))
	return &rules, nil
}

// findings are what a search has found. visit is called from several goroutines.
type findings struct {
	matcher *matcher
	choice  choice
	tree    *workspace.Tree
	buffers map[string]workspace.Buffer // what an editor holds open counts as it is there; files that are there alone are not met
	dir     string                      // of the tree, as it was named
	tally   walk.Tally
	ended   error // why the search stopped before its end; nil: it did not

	mu     sync.Mutex
	files  []finding // with a match, by path
	looked int64
	left   map[string]int64 // files that were not looked into, by the reason
}

// A finding is a file with matches.
type finding struct {
	document
	path     string // below the tree's directory
	shown    string // for the result
	written  bool
	inEditor string // that an editor holds it open and was given the change, as a clause; empty: none was
}

// search looks through all that the call is about. Its findings count also beside an error.
func search(ctx context.Context, env *tools.Env, in Input) (*findings, error) {
	f := &findings{left: map[string]int64{}}
	var err error
	if f.matcher, err = newMatcher(in); err != nil {
		return f, err
	}
	if f.choice, err = newChoice(in); err != nil {
		return f, err
	}
	if f.tree, err = env.Files.Tree(cmp.Or(in.Path, ".")); err != nil {
		return f, workspace.Blame(err, "/path")
	}
	defer f.tree.Close()
	f.dir, f.buffers = f.tree.Path.Named, f.tree.Buffers()
	if f.tree.Single != "" {
		f.dir = path.Dir(f.dir)
		return f, walk.Single(f.tree.Root, f.tree.Single, f.visit)
	}
	f.tally, f.ended = walk.Files(ctx, f.tree.Root, walk.Options{
		Dir: f.tree.Real, Top: env.Dir, Environ: env.Environ, Choose: walk.ByPath(f.choose), Visit: f.visit,
		Beat: func(n int64) { env.Report(tools.Step{Message: "searching for " + in.Pattern, Done: n}) },
	})
	slices.SortFunc(f.files, func(a, b finding) int { return cmp.Compare(a.path, b.path) })
	return f, f.ended
}

// choose leaves out by name. What a rule denies reading is counted and never opened.
func (f *findings) choose(name string, kind fs.FileMode) walk.Choice {
	switch {
	case f.tree.Hidden(name), path.Base(name)[0] == '.', kind&fs.ModeSymlink != 0: // what a link leads to is met where it is, or lies elsewhere
		return walk.Leave
	case f.choice.exclude != nil && f.choice.exclude.Match(name, kind.IsDir()) == walk.Ignored:
		return walk.Leave
	case !kind.IsDir() && f.choice.include != nil && f.choice.include.Match(name, false) != walk.Ignored:
		return walk.Leave
	case f.tree.ReadDenied(name, kind):
		return walk.Deny
	}
	return walk.Take
}

// visit looks into one file.
func (f *findings) visit(file *walk.File) {
	d, skipped := f.look(file)
	f.mu.Lock()
	defer f.mu.Unlock()
	if skipped != "" {
		f.left[skipped]++
		return
	}
	if f.looked++; d.matches > 0 && (f.matcher.replacement == nil || d.before != d.after) {
		f.files = append(f.files, finding{document: d, path: file.Path(), shown: workspace.NameOf(path.Join(f.dir, file.Path()))})
	}
}

// look reads a file; skipped says why it did not.
func (f *findings) look(file *walk.File) (d document, skipped string) {
	b, open := f.buffers[file.Path()]
	if !open {
		b.Text, b.Err = content(file)
	}
	switch {
	case b.Err != nil:
		return d, "could not be read"
	case len(b.Text) > largest:
		return d, "larger than 4 MiB"
	}
	d, err := f.matcher.read(file.Path(), b.Text)
	if err != nil {
		return d, "no UTF-8 text"
	}
	if d.matches == 0 {
		d.before, d.after = "", "" // not to be kept
	}
	return d, ""
}

// content returns what a file holds, with a byte more than is looked into when it is too large.
func content(file *walk.File) ([]byte, error) {
	in, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, largest+1))
}
