// Package glob is the Glob tool: it finds files by the shape of their path. It does not know ignore
// files, nor how a tree is walked.
package glob

import (
	"cmp"
	"context"
	_ "embed"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
)

//go:embed description.md
var description string

// Input is the tool's input.
type Input struct {
	Pattern string `json:"pattern" jsonschema:"glob pattern, such as **/*.go or src/{a,b}/*.ts"`
	Path    string `json:"path,omitempty" jsonschema:"directory to search, absolute or relative to the working directory; default: the working directory"`
}

// maxFiles is how many paths a result holds.
const maxFiles = 1_000

// Tool returns the Glob tool.
func Tool() tools.Tool {
	spec := tools.Spec{Name: "Glob", Description: description, ReadOnly: true, TimeLimit: time.Minute, OnInterrupt: tools.Stop}
	return tools.New(spec, tools.Funcs[Input]{Validate: func(in *Input) error { _, err := plan(*in); return err }, Effects: effects, Run: run})
}

func effects(in Input) tools.Effects {
	p, err := plan(in)
	if err != nil {
		return tools.Effects{}
	}
	return tools.Effects{Reads: []tools.Path{{Name: p.base, Tree: true}}}
}

// A search is a parsed input: a pattern below a directory.
type search struct {
	base    string
	pattern pattern
}

// plan parses the input. The literal directories of an absolute pattern become the base.
func plan(in Input) (search, error) {
	base := cmp.Or(in.Path, ".")
	if !strings.HasPrefix(in.Pattern, "/") {
		p, err := parsePattern(in.Pattern, in.Pattern)
		return search{base, p}, err
	}
	if err := check(in.Pattern); err != nil {
		return search{}, err
	}
	dir, rest := "/", strings.TrimLeft(in.Pattern, "/")
	for {
		first, after, more := strings.Cut(rest, "/")
		name, plain := spelled(first)
		if !more || !plain || strings.Contains(first, "{") || name == ".." {
			break
		}
		dir, rest = filepath.Join(dir, name), strings.TrimLeft(after, "/")
	}
	if in.Path != "" && (!filepath.IsAbs(in.Path) || !pathname.Within(filepath.Clean(in.Path), dir)) {
		return search{}, bad(in.Pattern, 0, "it is an absolute path, but path is given too and does not contain it. Use a pattern relative to path, or leave path out.")
	}
	if rest == "" {
		rest = "./" // the directory itself: no file
	}
	p, err := parsePattern(in.Pattern, rest)
	return search{dir, p}, err
}

// A finder is one search in progress. choose and visit are safe for concurrent use.
type finder struct {
	search
	tree    *workspace.Tree
	hidden  atomic.Int64
	modules atomic.Int64
	links   atomic.Int64

	mu     sync.Mutex
	newest []match // fewer than twice maxFiles
	last   match   // the last that a result can show; no path: any file is shown
	total  int64
}

type match struct {
	path     string
	modified int64 // nanoseconds
}

func run(ctx context.Context, env *tools.Env, in Input) (tools.Result, error) {
	s, err := plan(in)
	if err != nil {
		return tools.Result{}, err
	}
	tree, err := env.Files.Tree(s.base)
	if err != nil {
		return tools.Result{}, err
	}
	defer tree.Close()
	if tree.Single != "" {
		return tools.Result{}, fault.Invalidf("not_a_directory", "%s is a file. Give a directory as path, or open the file with Read.", tree.Path.Shown()).At("/path")
	}
	f := &finder{search: s, tree: tree}
	tally, err := walk.Files(ctx, tree.Root, walk.Options{
		Dir: tree.Real, Top: env.Files.Disk(env.Dir), Bound: tree.Bound(), Environ: env.Environ, Choose: f.choose, Visit: f.visit, Index: env.Index,
		Beat: func(n int64) { env.Report(tools.Step{Message: "looking for " + in.Pattern, Done: n}) },
	})
	return f.result(in, tally, err), err
}

// choose leaves out what the pattern cannot match and, counted, what it matches only if hidden
// names are allowed, or what a rule denies reading.
func (f *finder) choose(dir string) walk.Chooser {
	names := splitDir(dir)
	here := f.pattern.after(names, polite)
	return func(name string, kind fs.FileMode) walk.Choice {
		if kind.IsDir() && f.tree.Hidden(dir+name) {
			return walk.Leave
		}
		meant := pattern.matches
		if kind.IsDir() {
			meant = pattern.leads
		}
		if kind&fs.ModeSymlink != 0 && f.pattern.leads(here, name, polite) && !f.denied(dir, name, kind) {
			f.countLink(dir + name)
		}
		switch {
		case meant(f.pattern, here, name, polite):
			if f.denied(dir, name, kind) {
				return walk.Deny
			}
			if special(name) || f.pattern.spells(name) { // it is named, by its dot or in full
				return walk.Force
			}
			return walk.Take
		case !special(name) || name == ".git" || !meant(f.pattern, f.pattern.after(names, blunt), name, blunt):
		case name == "node_modules":
			f.modules.Add(1)
		default:
			f.hidden.Add(1)
		}
		return walk.Leave
	}
}

// denied reports whether a rule denies reading the entry name in dir.
func (f *finder) denied(dir, name string, kind fs.FileMode) bool {
	return f.tree.Guarded() && f.tree.ReadDenied(dir+name, kind)
}

// countLink counts a link that the pattern leads through, unless it stands for a file.
func (f *finder) countLink(path string) {
	if target, err := f.tree.Root.Stat(path); err != nil || target.IsDir() {
		f.links.Add(1)
	}
}

// visit adds one file that the pattern matches. A link counts as the file that it leads to inside
// the tree.
func (f *finder) visit(file *walk.File) {
	var modified int64
	switch stamp, err := file.Stamp(); {
	case err != nil:
		return // gone
	case file.Type.IsRegular():
		modified = stamp.ModTime().UnixNano()
	case file.Type&fs.ModeSymlink != 0:
		target, err := f.tree.Root.Stat(file.Path())
		if err != nil || !target.Mode().IsRegular() {
			return
		}
		modified = target.ModTime().UnixNano()
	default:
		return // not a file
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	if f.last.path != "" && cmp.Or(cmp.Compare(f.last.modified, modified), file.Compare(f.last.path)) > 0 {
		return
	}
	f.newest = append(f.newest, match{file.Path(), modified})
	if len(f.newest) >= 2*maxFiles {
		f.trim()
		f.last = f.newest[maxFiles-1]
	}
}

// trim sorts the newest first and drops what no result will show.
func (f *finder) trim() {
	slices.SortFunc(f.newest, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.modified, a.modified), cmp.Compare(a.path, b.path))
	})
	f.newest = f.newest[:min(maxFiles, len(f.newest))]
}
