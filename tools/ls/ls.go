// Package ls is the LS tool: it lists the entries of one directory. It does not know the content of
// files, nor what is below the directory.
package ls

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

//go:embed description.md
var description string

// Input is the tool's input.
type Input struct {
	Path   string   `json:"path" jsonschema:"directory to list, absolute or relative to the working directory"`
	Ignore []string `json:"ignore,omitempty" jsonschema:"globs of names to leave out, such as *.o"`
}

// Listing is the structured result.
type Listing struct {
	Path       string   `json:"path"` // absolute
	Entries    []Entry  `json:"entries"`
	Total      int64    `json:"total"`   // of the directory, without Ignored and Denied
	Ignored    int64    `json:"ignored"` // left out because of ignore
	Denied     int64    `json:"denied"`  // left out because a rule denies reading them
	Incomplete bool     `json:"incomplete"`
	Reasons    []string `json:"reasons,omitempty"`
}

// Entry is one name in the directory.
type Entry struct {
	Name   string `json:"name"`
	Type   string `json:"type"`             // directory, file, link or other
	Size   int64  `json:"size,omitempty"`   // of a file, in bytes
	Target string `json:"target,omitempty"` // of a link, as stored
}

const maxEntries = 1_000

// Tool returns the LS tool.
func Tool() tools.Tool {
	spec := tools.Spec{Name: "LS", Description: description, ReadOnly: true, TimeLimit: time.Minute, OnInterrupt: tools.Stop}
	return tools.New(spec, tools.Funcs[Input]{
		Validate: func(in *Input) error {
			_, err := walk.GlobRules(in.Ignore) // a slash at either end of a glob has its meaning in an ignore file
			return workspace.Blame(err, "/ignore")
		},
		// The names in a directory change with every file that is written into it, so all of it is
		// declared.
		Effects: func(in Input) tools.Effects { return tools.Effects{Reads: []tools.Path{{Name: in.Path, Tree: true}}} },
		Run:     run,
	})
}

func run(ctx context.Context, env *tools.Env, in Input) (tools.Result, error) {
	rules, err := walk.GlobRules(in.Ignore)
	if err != nil {
		return tools.Result{}, err
	}
	tree, err := env.Files.Tree(in.Path)
	if err != nil {
		return tools.Result{}, err
	}
	defer tree.Close()
	if tree.Single != "" {
		return tools.Result{}, fault.Invalidf("not_a_directory", "%s is not a directory. Open it with Read, or list %s.", tree.Path.Shown(), filepath.Dir(tree.Path.Shown())).At("/path")
	}
	l := lister{rules: rules, tree: tree, Listing: Listing{Path: tree.Path.Name()}}
	if err := l.list(ctx); err != nil {
		l.Incomplete = true
		l.Reasons = append(l.Reasons, err.Error())
	}
	l.trim()
	l.look()
	return tools.TextWith(l.text(), l.Listing), context.Cause(ctx)
}

// A lister fills its Listing.
type lister struct {
	Listing
	rules walk.Rules
	tree  *workspace.Tree
	first []fs.DirEntry // at most twice maxEntries
}

// list reads the directory until ctx ends.
func (l *lister) list(ctx context.Context) error {
	for e, err := range workspace.Entries(l.tree.Root.Open(".")) {
		if ctx.Err() != nil {
			break
		}
		switch {
		case err != nil:
			return fmt.Errorf("could not be read to its end: %w", workspace.Cause(err))
		case l.tree.Hidden(e.Name()):
		case l.rules.Match(e.Name(), e.IsDir()) == walk.Ignored:
			l.Ignored++
		case l.tree.ReadDenied(e.Name(), e.Type()):
			l.Denied++
		default:
			l.Total++
			if l.first = append(l.first, e); len(l.first) > 2*maxEntries {
				l.trim()
			}
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the end: %w", context.Cause(ctx))
	}
	return nil
}

// trim sorts the entries and drops what no result will show.
func (l *lister) trim() {
	slices.SortFunc(l.first, directoriesFirst)
	l.first = l.first[:min(maxEntries, len(l.first))]
}

func directoriesFirst(a, b fs.DirEntry) int {
	kind := func(e fs.DirEntry) int {
		if e.IsDir() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a.Name(), b.Name()))
}

// look reads the metadata of the listed entries. An entry that has vanished meanwhile has none.
func (l *lister) look() {
	l.Entries = make([]Entry, 0, len(l.first))
	for _, e := range l.first {
		entry := Entry{Name: workspace.NameOf(e.Name()), Type: "other"}
		switch {
		case e.IsDir():
			entry.Type = "directory"
		case e.Type().IsRegular():
			entry.Type = "file"
			if info, err := l.tree.Root.Lstat(e.Name()); err == nil {
				entry.Size = info.Size()
			}
		case e.Type()&fs.ModeSymlink != 0:
			entry.Type = "link"
			if target, err := l.tree.Root.Readlink(e.Name()); err == nil {
				entry.Target = workspace.NameOf(target)
			}
		}
		l.Entries = append(l.Entries, entry)
	}
}

func (l *lister) text() string {
	lines := []string{strings.TrimSuffix(l.Path, "/") + "/"}
	for _, e := range l.Entries {
		lines = append(lines, "  "+e.line())
	}
	if len(l.Entries) == 0 && !l.Incomplete {
		lines = append(lines, "(empty)")
	}
	if more := l.Total - int64(len(l.Entries)); more > 0 {
		lines = append(lines, fmt.Sprintf("(%d more entries of %d; use Glob to find files by name)", more, l.Total))
	}
	if l.Ignored > 0 {
		lines = append(lines, fmt.Sprintf("(%d left out by ignore)", l.Ignored))
	}
	if l.Denied > 0 {
		them := "them"
		if l.Denied == 1 {
			them = "it"
		}
		lines = append(lines, fmt.Sprintf("(%d left out because a rule denies reading %s)", l.Denied, them))
	}
	if l.Incomplete {
		lines = append(lines, "Incomplete: "+strings.Join(l.Reasons, "; ")+".")
	}
	return strings.Join(lines, "\n")
}

func (e Entry) line() string {
	switch e.Type {
	case "directory":
		return e.Name + "/"
	case "file":
		return fmt.Sprintf("%s (%s)", e.Name, text.Count(e.Size, "byte"))
	case "link":
		return e.Name + " -> " + e.Target
	default:
		return e.Name + " (neither file, directory nor link)"
	}
}
