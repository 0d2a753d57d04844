// Decides by name which files are searched: glob and type. It does not know ignore files.

package grep

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/grep/selection"
	"github.com/toold/toold/tools/walk"
)

// A filter is what glob and type ask for. Safe for concurrent use.
type filter struct {
	byType    *walk.Rules
	globs     walk.Rules
	mustMatch bool   // some glob is a positive one, so a file must match it
	below     string // of the searched directory in the working directory, with a slash: globs may start at either
}

// newFilter reads both. Errors are faults.
func newFilter(in Input) (filter, error) {
	var f filter
	if in.Type != "" {
		globs, ok := selection.Type(in.Type)
		if !ok {
			hint := ""
			if near := selection.Near(in.Type); len(near) > 0 {
				hint = " Did you mean " + strings.Join(near, ", ") + "?"
			}
			return f, fault.Invalidf("invalid_input", "%q is no file type that is known here.%s Or give glob, such as *.%[1]s.", in.Type, hint).At("/type")
		}
		rules := walk.ParseRules([]byte(strings.Join(globs, "\n")))
		f.byType = &rules
	}
	var lines []string
	for _, glob := range splitGlobs(in.Glob) {
		if problem := checkGlob(glob); problem != "" {
			return f, fault.Invalidf("bad_pattern", "The glob %q is wrong: %s", glob, problem).At("/glob")
		}
		all, ok := walk.Braces(glob)
		if !ok {
			return f, fault.Invalidf("bad_pattern", "The braces of the glob %q stand for more than %d globs. Give fewer.", glob, walk.MaxBraces).At("/glob")
		}
		f.mustMatch = f.mustMatch || glob[0] != '!'
		for _, line := range all {
			if strings.HasPrefix(line, "#") {
				line = `\` + line
			}
			lines = append(lines, line)
		}
	}
	f.globs = walk.ParseRules([]byte(strings.Join(lines, "\n")))
	return f, nil
}

// at fits the filter to the directory that is searched; named and working are absolute.
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

// takes reports that the entry is wanted: for a directory, that something below it may be.
func (f filter) takes(path string, isDir bool) bool {
	verdict := f.globs.Match(path, isDir)
	if verdict == walk.Silent && f.below != "" {
		verdict = f.globs.Match(f.below+path, isDir)
	}
	// A plain line names what is wanted, a line with "!" what is not: the reverse of an ignore file.
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

// maxGlob is how long one glob may be, in bytes; no path is longer.
const maxGlob = 4096

// splitGlobs cuts a list at commas and blanks that stand outside of braces and brackets.
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
		return "it names nothing."
	}
	if len(glob) > maxGlob {
		return fmt.Sprintf("it is longer than %d bytes.", maxGlob)
	}
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			if i++; i == len(glob) {
				return `the backslash at its end makes nothing plain.`
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
