// Path rules: the syntax of gitignore, anchored by the rule's first characters. Only names are compared, and nothing is opened:
// the caller passes what is a directory and where links lead.

package permission

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/walk"
)

// Anchors are the directories that path rules are relative to. All names are absolute.
type Anchors struct {
	Home   string   // of the user; empty: not known
	Roots  []string // of the workspace, links resolved: what p and ./p begin at
	Others []string // additional directories: there deny and ask rules hold too
	// Guarded are files and directories that are protected besides the usual ones: those that hold permissions.
	Guarded []string
	// Programs are directories in which commands are looked up by name; they are protected too.
	Programs []string
	// Leads is where links lead from Home, from Others and Guarded, and from what rules have as Origin.Base. Both names
	// count. What is not in it leads nowhere else.
	Leads map[string]string
}

// forms returns each of the names that is known, and behind them where they lead.
func (a Anchors) forms(names ...string) (list []string) {
	for _, name := range names {
		if name != "" {
			list = append(list, path.Clean(name))
		}
	}
	for _, name := range names {
		if real, ok := a.Leads[name]; ok && !slices.Contains(list, real) {
			list = append(list, real)
		}
	}
	return list
}

// A place is one directory and the lines that hold below it.
type place struct {
	dir   string
	lines walk.Rules
	// part is the longest run of plain characters in them. What does not have it in its name does not fit.
	part string
	// begin is the path up to the first pattern in them; empty: they hold at any depth. whole: they are about it and what
	// is below it, and about nothing else.
	begin string
	whole bool
}

// places returns where a rule's path points. A rule that forbids errs towards more places than one that allows.
func (r *Rule) places(a Anchors) []place {
	spec, forbids := r.specifier, r.List != AllowList
	switch {
	case r.subject == memories:
		return memoryPlaces(spec)
	case strings.HasPrefix(spec, "//"):
		return at([]string{"/"}, spec[1:])
	case spec == "~", strings.HasPrefix(spec, "~/"):
		return at(a.forms(a.Home), "/"+strings.TrimPrefix(spec[1:], "/"))
	case strings.HasPrefix(spec, "/"):
		found := at(a.forms(r.Origin.Base), spec)
		if forbids { // an absolute path was perhaps meant
			found = append(found, at([]string{"/"}, spec)...)
		}
		return found
	}
	dirs := a.Roots
	if forbids {
		dirs = append(slices.Clone(dirs), a.forms(a.Others...)...)
	}
	if below, ok := strings.CutPrefix(spec, "./"); ok {
		return at(dirs, "/"+below)
	}
	if dir, ok := strings.CutSuffix(spec, "/**"); ok && forbids && !strings.Contains(dir, "/") {
		spec = "**/" + spec
	}
	return at(dirs, spec)
}

// at puts a gitignore line into each directory. What is below a "p/**" counts as well when p itself is searched.
func at(dirs []string, line string) (list []place) {
	if line == "/" {
		line = "/**"
	}
	if strings.HasPrefix(line, "#") {
		line = `\` + line
	}
	lines := line
	if dir, ok := strings.CutSuffix(line, "/**"); ok && dir != "" && dir != "**" {
		lines += "\n/" + strings.TrimPrefix(dir, "/") + "/" // the directory itself, as far as it is one
	}
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			p := place{dir: dir, lines: walk.ParseRules([]byte(lines)), part: plainPart(line)}
			p.begin, p.whole = begin(dir, line)
			list = append(list, p)
		}
	}
	return list
}

// begin returns the path of a line up to its first component that is not a plain name; empty if the line holds at any depth.
// whole reports whether the line is about that path below dir and what lies below it.
func begin(dir, line string) (begin string, whole bool) {
	if !strings.Contains(strings.TrimSuffix(line, "/"), "/") {
		return "", false
	}
	begin = dir
	for part := range strings.SplitSeq(strings.Trim(strings.TrimSuffix(line, "/**"), "/"), "/") {
		if strings.ContainsAny(part, `*?[\!#`) {
			return begin, false
		}
		begin = path.Join(begin, part)
	}
	return begin, begin != dir
}

// plainPart returns the longest part of a line in which every character stands for itself; empty when there are classes or
// escapes in it.
func plainPart(line string) (longest string) {
	if strings.ContainsAny(line, `[\`) {
		return ""
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("*?/", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// holds reports whether name, absolute and clean, or a directory that it lies in, fits.
func (p place) holds(name string, isDir bool) bool {
	rel, ok := below(p.dir, name)
	if !ok || !strings.Contains(rel, p.part) {
		return false
	}
	for {
		if p.lines.Match(rel, isDir) == walk.Ignored {
			return true
		}
		if rel = path.Dir(rel); rel == "." {
			return false
		}
		isDir = true
	}
}

// below returns name relative to dir; the directory itself is ".".
func below(dir, name string) (rel string, ok bool) {
	if !pathname.Within(dir, name) {
		return "", false
	}
	return cmp.Or(strings.Trim(name[len(dir):], "/"), "."), true
}

func anyHolds(places []place, name string, isDir bool) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.holds(name, isDir) })
}
