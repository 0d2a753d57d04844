// The filter by file names: glob and type.

package grep

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/grep/selection"
)

// A filter is what glob and type select. Safe for concurrent use.
type filter struct {
	byType    *walk.Rules
	globs     walk.Rules
	mustMatch bool   // at least one glob is positive, so a file must match it
	all       bool   // everything is selected
	below     string // the searched directory relative to the working directory, with a slash: globs may start at either
}

// newFilter parses glob and type. Errors are faults.
func newFilter(in Input) (filter, error) {
	var f filter
	if in.Type != "" {
		globs, ok := selection.Type(in.Type)
		if !ok {
			hint := ""
			if near := selection.Near(in.Type); len(near) > 0 {
				hint = " Did you mean " + strings.Join(near, ", ") + "?"
			}
			return f, fault.Invalidf("invalid_input", "%q is not a known file type.%s Or use glob, such as *.%[1]s.", in.Type, hint).At("/type")
		}
		rules, _ := walk.GlobRules(globs)
		f.byType = &rules
	}
	globs := splitGlobs(in.Glob)
	for _, glob := range globs {
		if problem := checkGlob(glob); problem != "" {
			return f, fault.Invalidf("bad_pattern", "The glob %q is invalid: %s", glob, problem).At("/glob")
		}
		f.mustMatch = f.mustMatch || glob[0] != '!'
	}
	var err error
	f.globs, err = walk.GlobRules(globs)
	f.all = len(globs) == 0 && f.byType == nil
	return f, workspace.Blame(err, "/glob")
}

// at fits the filter to the searched directory; named and working are absolute.
func (f filter) at(in Input, named, working string) (filter, error) {
	if rel, err := filepath.Rel(working, named); err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, "../") {
		f.below = rel + "/"
	}
	if strings.Contains(in.Glob, named+"/") {
		in.Glob = strings.ReplaceAll(in.Glob, named+"/", "/")
		again, err := newFilter(in)
		again.below = f.below
		return again, err
	}
	return f, nil
}

// takes reports whether the entry name of dir is selected: for a directory, whether something below
// it may be. dir ends with a slash; empty: the searched directory.
func (f *filter) takes(dir, name string, isDir bool) bool {
	if f.all {
		return true
	}
	path := dir + name
	verdict := f.globs.Match(path, isDir)
	if verdict == walk.Silent && f.below != "" {
		verdict = f.globs.Match(f.below+path, isDir)
	}
	// A plain line selects, and a line with "!" excludes: the reverse of an ignore file.
	if verdict == walk.Kept {
		return false
	}
	if isDir {
		return true
	}
	if f.mustMatch && verdict != walk.Ignored {
		return false
	}
	return f.byType == nil || f.byType.Match(path, false) == walk.Ignored
}

// maxGlob is the longest glob, in bytes; no path is longer.
const maxGlob = 4096

// splitGlobs splits a list at commas and blanks outside braces and brackets.
func splitGlobs(list string) []string {
	var globs []string
	depth, from := 0, 0
	for i := 0; i <= len(list); i++ {
		end := i == len(list)
		switch {
		case end:
		case list[i] == '\\':
			i++
			continue
		case list[i] == '{' || list[i] == '[':
			depth++
			continue
		case list[i] == '}' || list[i] == ']':
			depth--
			continue
		case depth > 0 || list[i] != ',' && list[i] != ' ':
			continue
		}
		if glob := list[from:min(i, len(list))]; glob != "" {
			globs = append(globs, strings.TrimPrefix(glob, "./"))
		}
		from = i + 1
	}
	return globs
}

// checkGlob returns what is wrong with a glob; empty: nothing.
func checkGlob(glob string) string {
	if strings.TrimPrefix(glob, "!") == "" {
		return "it is empty."
	}
	if len(glob) > maxGlob {
		return fmt.Sprintf("it is longer than %d bytes.", maxGlob)
	}
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			if i++; i == len(glob) {
				return `the backslash at its end escapes nothing.`
			}
		case '[':
			n := strings.IndexByte(glob[min(i+2, len(glob)):], ']')
			if n < 0 {
				return fmt.Sprintf(`the [ at byte %d is never closed. Write \[ for the character itself.`, i+1)
			}
			i += 2 + n
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 {
			return fmt.Sprintf(`the } at byte %d closes nothing.`, i+1)
		}
	}
	if depth > 0 {
		return "a { is never closed."
	}
	return ""
}
