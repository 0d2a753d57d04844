// What a call says of what it found and did. It does not search, and shortens nothing: the daemon does, and keeps the
// whole in a file.

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// Structured is the result for programs.
type Structured struct {
	Files      []Changed `json:"files"`
	Matches    int       `json:"matches"`    // of all files
	Searched   int64     `json:"searched"`   // files looked into
	Incomplete []string  `json:"incomplete"` // why not everything was looked at; empty: it was
}

// Changed is one file with matches.
type Changed struct {
	Path    string `json:"path"` // absolute
	Matches int    `json:"matches"`
	Written bool   `json:"written"`
}

// diff is what the replacement changes, of all files.
func (f *findings) diff() string {
	var b strings.Builder
	for _, file := range f.files {
		b.WriteString(text.Patch(file.shown, file.before, file.after))
	}
	return b.String()
}

func (f *findings) result(in Input) tools.Result {
	s := Structured{Files: []Changed{}, Searched: f.looked, Incomplete: append([]string{}, f.tally.Unseen()...)}
	if f.ended != nil {
		s.Incomplete = append(s.Incomplete, fmt.Sprintf("stopped before the end: %v", f.ended))
	}
	written := 0
	for _, file := range f.files {
		s.Matches += file.matches
		s.Files = append(s.Files, Changed{file.shown, file.matches, file.written})
		if file.written {
			written++
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, f.headline(in, s, written))
	for _, note := range f.notes(s) {
		fmt.Fprintln(&b, note)
	}
	b.WriteString(f.body(in))
	result := tools.Text(b.String())
	result.Structured = s
	return result
}

// headline returns a sentence about what happened.
func (f *findings) headline(in Input, s Structured, written int) string {
	files, matches := text.Count(len(s.Files), "file"), text.Count(s.Matches, "match")
	if s.Matches != 1 {
		matches = fmt.Sprintf("%d matches", s.Matches)
	}
	switch {
	case len(s.Files) == 0 && len(s.Incomplete) > 0:
		return "Nothing was found so far, but not everything was looked at."
	case len(s.Files) == 0:
		return fmt.Sprintf("No matches in %s.", text.Count(f.looked, "file"))
	case in.ReplaceWith == nil:
		return fmt.Sprintf("%s in %s.", matches, files)
	case !in.writes():
		return fmt.Sprintf("Preview: %s in %s would be replaced. Nothing was changed; preview_only: false does it.", matches, files)
	case written < len(s.Files):
		return fmt.Sprintf("Only %d of %s were changed.", written, files)
	default:
		return fmt.Sprintf("Replaced %s in %s.", matches, files)
	}
}

// notes say what was not looked at, and what is not on the disk yet.
func (f *findings) notes(s Structured) (notes []string) {
	if len(s.Incomplete) > 0 {
		notes = append(notes, "Incomplete: "+strings.Join(s.Incomplete, "; ")+".")
	}
	phrases := f.tally.LeftOut()
	for _, why := range slices.Sorted(maps.Keys(f.left)) {
		phrases = append(phrases, fmt.Sprintf("%s (%s)", text.Count(f.left[why], "file"), why))
	}
	if len(phrases) > 0 {
		notes = append(notes, "Left out: "+strings.Join(phrases, ", ")+".")
	}
	for _, file := range f.files {
		if file.inEditor != "" {
			notes = append(notes, file.shown+": "+file.inEditor)
		}
	}
	return notes
}

// body is the matching lines, or the diff.
func (f *findings) body(in Input) string {
	if in.ReplaceWith != nil {
		return f.diff()
	}
	var b strings.Builder
	for _, file := range f.files {
		lines := strings.Split(file.before, "\n")
		for _, number := range slices.Compact(file.lines) {
			fmt.Fprintf(&b, "%s:%d:%s\n", file.shown, number, text.Shown(lines[number-1]))
		}
		if more := file.matches - len(file.lines); more > 0 {
			fmt.Fprintf(&b, "%s: %d more\n", file.shown, more)
		}
	}
	return b.String()
}
