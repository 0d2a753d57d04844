// Package ls is the LS tool: it lists the entries of one directory. It does not know the content of
// files, nor what is below the directory.
package ls

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/index"
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
	dir, err := env.Files.OpenDir(in.Path)
	if err != nil {
		return tools.Result{}, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	l := lister{rules: rules, dir: dir, Listing: Listing{Path: dir.Path.Name()}}
	if err := l.list(ctx, env.Index); err != nil {
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
	dir   *workspace.Dir
	first []found // at most twice maxEntries
}

// found is an entry that the directory has.
type found struct {
	name string
	kind fs.FileMode // type bits
}

// list reads the directory until ctx ends.
func (l *lister) list(ctx context.Context, known *index.Index) error {
	err := l.each(known, func(name string, kind fs.FileMode) bool {
		if ctx.Err() != nil {
			return false
		}
		switch {
		case l.dir.Hidden(name):
		case l.rules.Match(name, kind.IsDir()) == walk.Ignored:
			l.Ignored++
		case l.dir.ReadDenied(name, kind):
			l.Denied++
		default:
			l.Total++
			if l.first = append(l.first, found{name, kind}); len(l.first) > 2*maxEntries {
				l.trim()
			}
		}
		return true
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped before the end: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("could not be read to its end: %w", err)
	}
	return nil
}

// each calls visit for every entry until it returns false. A directory whose entries are remembered is
// not read: they come in the order of the listing.
func (l *lister) each(known *index.Index, visit func(name string, kind fs.FileMode) bool) error {
	var s unix.Stat_t
	if known == nil || unix.Fstat(l.dir.Fd(), &s) != nil {
		return l.dir.Each(visit)
	}
	now := index.StampOf(&s)
	if listing := known.Listing(now); listing != nil {
		for _, directories := range [...]bool{true, false} {
			for _, e := range listing.Entries {
				if e.Type.IsDir() == directories && !visit(e.Name, e.Type) {
					return nil
				}
			}
		}
		return nil
	}
	reading, whole := known.Read(l.dir.Fd(), now), true
	err := l.dir.Each(func(name string, kind fs.FileMode) bool {
		if reading != nil {
			reading.Add([]index.Entry{{Name: strings.Clone(name), Type: kind}})
		}
		whole = visit(name, kind)
		return whole
	})
	if err == nil && whole {
		reading.Keep()
	}
	return err
}

// trim sorts the entries, directories first, and drops what no result will show.
func (l *lister) trim() {
	slices.SortFunc(l.first, func(a, b found) int {
		if a.kind.IsDir() == b.kind.IsDir() {
			return strings.Compare(a.name, b.name)
		}
		if a.kind.IsDir() {
			return -1
		}
		return 1
	})
	l.first = l.first[:min(maxEntries, len(l.first))]
}

// look reads the metadata of the listed entries. An entry that has vanished meanwhile has none.
func (l *lister) look() {
	l.Entries = make([]Entry, len(l.first))
	for i, found := range l.first {
		entry := &l.Entries[i]
		entry.Name, entry.Type = workspace.NameOf(found.name), "other"
		switch {
		case found.kind.IsDir():
			entry.Type = "directory"
		case found.kind.IsRegular():
			entry.Type, entry.Size = "file", l.dir.Size(found.name)
		case found.kind&fs.ModeSymlink != 0:
			entry.Type = "link"
			if target := l.dir.Target(found.name); target != "" {
				entry.Target = workspace.NameOf(target)
			}
		}
	}
}

func (l *lister) text() string {
	text := make([]byte, 0, 32*(len(l.Entries)+4))
	text = append(append(text, strings.TrimSuffix(l.Path, "/")...), '/')
	for i := range l.Entries {
		text = l.Entries[i].appendLine(append(text, "\n  "...))
	}
	if len(l.Entries) == 0 && !l.Incomplete {
		text = append(text, "\n(empty)"...)
	}
	if more := l.Total - int64(len(l.Entries)); more > 0 {
		text = fmt.Appendf(text, "\n(%d more entries of %d; use Glob to find files by name)", more, l.Total)
	}
	if l.Ignored > 0 {
		text = fmt.Appendf(text, "\n(%d left out by ignore)", l.Ignored)
	}
	if l.Denied > 0 {
		them := "them"
		if l.Denied == 1 {
			them = "it"
		}
		text = fmt.Appendf(text, "\n(%d left out because a rule denies reading %s)", l.Denied, them)
	}
	if l.Incomplete {
		text = fmt.Appendf(text, "\nIncomplete: %s.", strings.Join(l.Reasons, "; "))
	}
	return string(text)
}

func (e *Entry) appendLine(line []byte) []byte {
	line = append(line, e.Name...)
	switch e.Type {
	case "directory":
		return append(line, '/')
	case "file":
		return append(text.AppendCount(append(line, " ("...), e.Size, "byte"), ')')
	case "link":
		return append(append(line, " -> "...), e.Target...)
	default:
		return append(line, " (neither file, directory nor link)"...)
	}
}
