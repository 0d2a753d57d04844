// The result of a search, as text and as data.

package glob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// Found is the structured result.
type Found struct {
	Files      []string `json:"files"`      // absolute, newest first
	Total      int64    `json:"total"`      // number of all files; more than Files holds if the list was cut
	Incomplete bool     `json:"incomplete"` // the search was not complete
	Reasons    []string `json:"reasons,omitempty"`
	LeftOut    LeftOut  `json:"left_out"`
}

// LeftOut counts what the search did not show. A directory counts as one: its content is unknown.
type LeftOut struct {
	IgnoredFiles       int64 `json:"ignored_files"`
	IgnoredDirectories int64 `json:"ignored_directories"`
	DeniedFiles        int64 `json:"denied_files"` // a rule denies reading them
	DeniedDirectories  int64 `json:"denied_directories"`
	Hidden             int64 `json:"hidden"` // files and directories
	NodeModules        int64 `json:"node_modules"`
	Links              int64 `json:"links"` // to directories, to nothing or out of the tree
}

// result returns the result of a search that ended with err, nil if it is complete.
func (f *finder) result(in Input, tally walk.Tally, err error) tools.Result {
	f.trim()
	slices.SortFunc(f.newest, func(a, b match) int { return a.compare(&b) })
	found := Found{
		Files: make([]string, len(f.newest)), Total: f.total, Reasons: tally.Unseen(),
		LeftOut: LeftOut{tally.IgnoredFiles, tally.IgnoredDirs, tally.DeniedFiles, tally.DeniedDirs, f.hidden.Load(), f.modules.Load(), f.links.Load()},
	}
	below := strings.TrimSuffix(f.tree.Path.Named, "/") + "/"
	for i, m := range f.newest {
		found.Files[i] = workspace.NameOf(below + m.dir + m.name)
	}
	if err != nil {
		found.Reasons = append([]string{fmt.Sprintf("stopped before the end: %v", err)}, found.Reasons...)
	}
	found.Incomplete = len(found.Reasons) > 0
	return tools.TextWith(strings.Join(f.lines(in, found, tally), "\n"), found)
}

func (f *finder) lines(in Input, found Found, tally walk.Tally) []string {
	lines := found.Files
	var notes []string
	switch dir := f.tree.Path.Name(); {
	case len(lines) == 0 && found.Incomplete:
		notes = append(notes, fmt.Sprintf("No file that matches %s was found in %s so far, but the search is incomplete.", in.Pattern, dir))
	case len(lines) == 0:
		notes = append(notes, fmt.Sprintf("No file in %s matches %s.", dir, in.Pattern))
		if f.pattern.classes {
			notes = append(notes, `[...] in the pattern is a set of characters; write \[ and \] for brackets in a name.`)
		}
	case int64(len(lines)) < found.Total:
		notes = append(notes, fmt.Sprintf("These are the %d newest of %d files. Narrow the pattern or path to see others.", len(lines), found.Total))
	}
	notes = append(notes, walk.Remarks(found.Reasons, f.leftOut(tally))...)
	if len(lines) > 0 && len(notes) > 0 {
		lines = append(lines[:len(lines):len(lines)], "")
	}
	return append(lines, notes...)
}

func (f *finder) leftOut(tally walk.Tally) []string {
	phrases := tally.LeftOut()
	if n := f.hidden.Load(); n > 0 {
		phrases = append(phrases, fmt.Sprintf("%d hidden", n))
	}
	if n := f.modules.Load(); n > 0 {
		phrases = append(phrases, fmt.Sprintf("%d node_modules", n))
	}
	if n := f.links.Load(); n > 0 {
		phrases = append(phrases, text.Count(n, "link")+" not followed")
	}
	return phrases
}
