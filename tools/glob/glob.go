// Package glob is the Glob tool: it finds files by the shape of their path. It does not know ignore
// files, nor how a tree is walked.
package glob

import (
	"cmp"
	"context"
	_ "embed"
	"io/fs"
	"path/filepath"
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
	last   match   // the last that a result can show; no name: any file is shown
	total  int64
}

// match is a file that the pattern matches: its path is dir and name, which are put together only if
// it is shown.
type match struct {
	dir, name string
	modified  int64 // nanoseconds
}

// compare orders matches as they are shown: the newest first, those of one time by their paths.
func (m *match) compare(o *match) int {
	if m.modified != o.modified {
		return cmp.Compare(o.modified, m.modified)
	}
	n := min(len(m.dir), len(o.dir))
	switch c := strings.Compare(m.dir[:n], o.dir[:n]); {
	case c != 0:
		return c
	case n < len(o.dir): // a name has no slash, what is left of a directory has one
		return strings.Compare(m.name, o.dir[n:])
	case n < len(m.dir):
		return strings.Compare(m.dir[n:], o.name)
	}
	return strings.Compare(m.name, o.name)
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
	found := match{file.Dir(), file.Name(), modified}
	if f.last.name != "" && found.compare(&f.last) > 0 {
		return
	}
	f.newest = append(f.newest, found)
	if len(f.newest) >= 2*maxFiles {
		f.trim()
		f.last = f.newest[maxFiles-1]
	}
}

// trim drops what no result will show, and moves the last of the rest to the end.
func (f *finder) trim() {
	if len(f.newest) > maxFiles {
		selectFirst(f.newest, maxFiles)
		f.newest = f.newest[:maxFiles]
	}
}

// selectFirst puts the match that is the n-th in order at that place, the earlier ones before it and
// the later ones behind. Sorting all of them would cost four times as much.
func selectFirst(list []match, n int) {
	for from, to := 0, len(list)-1; from < to; {
		pivot, i, j := list[from+(to-from)/2], from, to
		for i <= j {
			for list[i].compare(&pivot) < 0 {
				i++
			}
			for list[j].compare(&pivot) > 0 {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			to = j
		case n-1 >= i:
			from = i
		default:
			return
		}
	}
}
