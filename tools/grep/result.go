// The result of a search, as text and as data.

package grep

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// Found is the structured result. "total" counts the whole result; lists hold the requested page.
type Found struct {
	Mode       string   `json:"mode"`
	Files      []string `json:"files"`            // absolute, each once, in the order shown
	Counts     []int64  `json:"counts,omitempty"` // mode count: matching lines of each of Files
	Lines      []Line   `json:"lines,omitempty"`  // mode content
	Total      Total    `json:"total"`
	Shown      int64    `json:"shown"`                 // entries on this page
	NextOffset int64    `json:"next_offset,omitempty"` // where the next page begins; absent on the last one
	Searched   int64    `json:"searched"`              // files
	Incomplete bool     `json:"incomplete"`            // not everything was searched
	Reasons    []string `json:"reasons,omitempty"`
	LeftOut    LeftOut  `json:"left_out"`
}

// Line is one line of mode content.
type Line struct {
	Path    string `json:"path"`
	Line    int64  `json:"line"`
	Text    string `json:"text"`
	Context bool   `json:"context,omitempty"` // a line of context
}

// Total counts the whole result. Entries are what head_limit and offset count.
type Total struct {
	Files   int64 `json:"files"`
	Entries int64 `json:"entries"`
	Matches int64 `json:"matches"` // matching lines; in mode files_with_matches files; with -o parts of lines; mode count across lines: matches
}

// LeftOut counts what was not searched. A directory counts as one: its content is unknown.
type LeftOut struct {
	IgnoredFiles       int64 `json:"ignored_files"`
	IgnoredDirectories int64 `json:"ignored_directories"`
	DeniedFiles        int64 `json:"denied_files"` // a rule denies reading them
	DeniedDirectories  int64 `json:"denied_directories"`
	Binary             int64 `json:"binary"`
	Links              int64 `json:"links"`
}

// result returns the result of a search that ended with err, nil if it is complete.
func (s *search) result(in Input, tally walk.Tally, err error) tools.Result {
	order := byPath
	if s.mode == modeFiles {
		order = newestFirst
	}
	page := s.got.page(order, in.Offset, in.limit())
	found := Found{Mode: s.mode, Files: []string{}, Searched: s.searched.Load(), Reasons: s.reasons(tally, err)}
	found.Total.Files, found.Total.Entries, found.Total.Matches = s.got.totals()
	found.LeftOut = LeftOut{tally.IgnoredFiles, tally.IgnoredDirs, tally.DeniedFiles, tally.DeniedDirs, s.binaries.Load(), s.links.Load()}
	found.Incomplete = len(found.Reasons) > 0
	for _, h := range page {
		found.Shown += h.entries
		s.fill(&found, h)
	}
	if next := in.Offset + found.Shown; next < found.Total.Entries && found.Shown > 0 {
		found.NextOffset = next
	}
	lines := append(s.lines(in, found), s.remarks(in, found, tally)...)
	return tools.TextWith(strings.Join(lines, "\n"), found)
}

func (s *search) fill(found *Found, h *hits) {
	shown := s.absolute(h.path)
	found.Files = append(found.Files, shown)
	if s.mode == modeCount {
		found.Counts = append(found.Counts, h.matches)
	}
	for _, l := range h.lines {
		found.Lines = append(found.Lines, Line{shown, l.number, l.text, l.context})
	}
}

// absolute returns a path of the searched directory under the name that the input used.
func (s *search) absolute(path string) string {
	named := s.tree.Path.Named
	if s.tree.Single == "" {
		named = filepath.Join(named, path)
	}
	return workspace.NameOf(named)
}

// reasons returns why the search is incomplete; none if it is complete.
func (s *search) reasons(tally walk.Tally, err error) []string {
	var reasons []string
	if err != nil {
		reasons = append(reasons, fmt.Sprintf("stopped before the end: %v", err))
	}
	reasons = append(reasons, tally.Unseen()...)
	slices.Sort(s.missed)
	reasons = append(reasons, s.missed...)
	if s.more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", s.more))
	}
	return reasons
}

// lines returns the entries of the page. Where lines of context are shown, "--" separates groups.
func (s *search) lines(in Input, found Found) []string {
	var lines []string
	switch s.mode {
	case modeFiles:
		return slices.Clone(found.Files)
	case modeCount:
		for i, path := range found.Files {
			lines = append(lines, path+":"+strconv.FormatInt(found.Counts[i], 10))
		}
		return lines
	}
	var last Line
	for i, l := range found.Lines {
		if i > 0 && s.before+s.after > 0 && (l.Path != last.Path || l.Line > last.Line+1) {
			lines = append(lines, "--")
		}
		last = l
		mark := ":"
		if l.Context {
			mark = "-"
		}
		number := strconv.FormatInt(l.Line, 10) + mark
		if in.Numbers != nil && !*in.Numbers {
			number = ""
		}
		lines = append(lines, l.Path+mark+number+l.Text)
	}
	return lines
}

// remarks returns the lines after the entries. Only a complete search reports "No matches found".
func (s *search) remarks(in Input, found Found, tally walk.Tally) []string {
	var remarks []string
	noun := "file"
	if s.mode == modeContent {
		noun = "line"
	}
	switch {
	case found.Total.Entries == 0 && found.Incomplete:
		remarks = append(remarks, "Nothing found so far, but the search is incomplete.")
	case found.Total.Entries == 0:
		remarks = append(remarks, fmt.Sprintf("No matches found in %s (%s searched).", s.tree.Path.Name(), text.Count(found.Searched, "file")))
	case found.Shown == 0:
		remarks = append(remarks, fmt.Sprintf("There are only %s; offset %d is past the end.", text.Count(found.Total.Entries, noun), in.Offset))
	case found.Shown < found.Total.Entries:
		text := fmt.Sprintf("Showing %s %d to %d of %d.", noun+"s", in.Offset+1, in.Offset+found.Shown, found.Total.Entries)
		if found.NextOffset > 0 {
			text += fmt.Sprintf(" The next page begins at offset %d.", found.NextOffset)
		}
		remarks = append(remarks, text)
	}
	if s.mode == modeCount && found.Total.Files > 0 {
		remarks = append(remarks, fmt.Sprintf("Together %d in %s.", found.Total.Matches, text.Count(found.Total.Files, "file")))
	}
	remarks = append(remarks, walk.Remarks(found.Reasons, s.leftOut(tally))...)
	if len(remarks) > 0 && found.Shown > 0 {
		remarks = append([]string{""}, remarks...)
	}
	return remarks
}

func (s *search) leftOut(tally walk.Tally) []string {
	phrases := tally.LeftOut()
	for _, left := range []struct {
		count int64
		noun  string
	}{{s.binaries.Load(), "binary file"}, {s.links.Load(), "symbolic link"}} {
		if left.count > 0 {
			phrases = append(phrases, text.Count(left.count, left.noun))
		}
	}
	return phrases
}
