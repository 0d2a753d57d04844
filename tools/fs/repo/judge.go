package repo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
)

// A judge decides about what is new.
type judge struct {
	*Watch
	found map[string]bool // the git directories that there are now; not before settled
	stage stage
}

// A stage is what may still go on where something is judged.
type stage uint8

const (
	// working: git may be at work. What it writes in several steps counts as good, and so does the
	// beginning of a file that it copies.
	working stage = iota
	// settled: nothing was changed there for a while. A rebase may still be under way.
	settled
	// ended: no process runs.
	ended
)

// everywhere returns the changes at the watched paths and in new git directories.
func (j *judge) everywhere() (changes []Change) {
	for path, before := range j.states {
		changes = append(changes, j.compare(path, before, now(path))...)
	}
	for dir := range j.found {
		if j.known(dir) != dir && j.isNew(dir) {
			changes = append(changes, j.dir(dir)...)
		}
	}
	return changes
}

// at returns the changes at a watched path, or in a directory that may be a new git directory.
func (j *judge) at(path string) []Change {
	before, watched := j.states[path]
	switch info, err := os.Lstat(path); {
	case err != nil:
		return nil
	case watched:
		return j.compare(path, before, now(path))
	case IsLink(path) && !info.IsDir():
		return j.link(path)
	case j.known(path) != path && (IsLink(path) || IsGitDir(path)) && j.isNew(path):
		return sorted(j.dir(path))
	}
	return nil
}

// link returns a change if an unwatched link is new and leads where it must not.
func (j *judge) link(path string) []Change {
	if j.stage == working || j.states[path].kind != absent || !j.isNew(filepath.Dir(path)) || j.leadsWell(path) {
		return nil
	}
	return []Change{{Path: path}}
}

// compare returns changes for the worse at one path.
func (j *judge) compare(path string, before, now state) (changes []Change) {
	switch {
	case now.kind == absent, before.same(now), j.stage == working && inSteps(path), j.stage != ended && isTodo(path), IsLink(path) && j.answers(path),
		filepath.Base(path) == "gitdir" && now.kind == regular && Leads(pointer(path, "")) == filepath.Dir(path):
		return nil
	case isConfig(path) && now.kind == regular:
		return j.config(path, before, now)
	case before.kind == directory && now.kind == directory:
		for name, entry := range now.entries {
			changes = append(changes, j.compare(filepath.Join(path, name), before.entries[name], entry)...)
		}
		return changes
	case isTodo(path):
		return j.todo(path, before, now)
	case now.kind == directory && len(now.entries) == 0:
		return nil
	}
	return []Change{{Path: path, Before: before.file()}}
}

// inSteps reports whether the file at path belongs to others that git writes before or after it.
func inSteps(path string) bool { return IsLink(path) || filepath.Base(path) == "gitdir" }

func isTodo(path string) bool { return strings.HasSuffix(path, "/"+rebaseTodo) }

// todo returns a change if the list of a rebase has new shell commands that the call does not name,
// with the list without them.
func (w *Watch) todo(path string, before, now state) []Change {
	if now.kind != regular {
		return []Change{{Path: path, Before: before.file()}}
	}
	old := map[string]bool{}
	for line := range bytes.Lines(before.data) {
		old[string(line)] = true
	}
	var kept []byte
	for line := range bytes.Lines(now.data) {
		words := strings.Fields(string(line))
		runs := len(words) > 0 && (words[0] == "exec" || words[0] == "x")
		if !runs || old[string(line)] || slices.Contains(w.allowed.Programs, strings.Join(words[1:], " ")) {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(now.data) {
		return nil
	}
	return []Change{{Path: path, Before: &File{Data: kept, Mode: now.mode.Perm()}}}
}

func isConfig(path string) bool {
	return filepath.Base(path) == "config" || filepath.Base(path) == "config.worktree"
}

// config returns a change if a configuration file has new settings that make git run programs, apart
// from allowed ones: it loses those. If git rejects the file, or nothing of a new one is left, it is as it was before.
func (j *judge) config(path string, before, now state) []Change {
	was, _ := ParseConfig(before.data) // if git rejected it, everything is new
	old := map[Setting]bool{}
	for _, s := range was {
		old[s] = true
	}
	rest, keys, err := Without(now.data, func(s Setting) bool {
		return !old[s] && !s.harmless() && !j.allows(s.Key) && !j.leadsInside(filepath.Dir(path), s)
	})
	switch {
	case err != nil && j.stage == working: // it may not be complete, and git refuses it like this
		return nil
	case err != nil, len(keys) > 0 && before.kind == absent && isBlank(rest):
		return []Change{{Path: path, Before: before.file()}}
	case len(keys) == 0:
		return nil
	}
	slices.Sort(keys)
	return []Change{{Path: path, Before: &File{Data: rest, Mode: now.mode.Perm()}, Keys: slices.Compact(keys)}}
}

func (w *Watch) allows(key string) bool {
	return slices.ContainsFunc(w.allowed.Keys, func(name string) bool {
		section, all := strings.CutSuffix(name, ".*")
		return strings.EqualFold(name, key) || all && strings.HasPrefix(strings.ToLower(key), section+".")
	})
}

// leadsInside reports whether a setting names the working tree of a submodule, which leads back to
// the git directory dir.
func (j *judge) leadsInside(dir string, s Setting) bool {
	switch {
	case s.Key != "core.worktree":
		return false
	case j.stage == working:
		return true // it may lead back once git has made the rest
	case IsLink(dir):
		return false
	}
	top := absolute(dir, s.Value)
	return slices.ContainsFunc(j.guard.roots, func(root string) bool { return pathname.Within(root, top) }) && Leads(filepath.Join(top, ".git")) == dir
}

// dir returns the changes for a new git directory: what in it would make git run programs. One that
// was only moved may keep what it had.
func (j *judge) dir(dir string) (changes []Change) {
	moved := j.known(dir)
	todo := filepath.Join(dir, rebaseTodo)
	changes = j.compare(todo, j.states[filepath.Join(moved, rebaseTodo)], now(todo))
	for _, path := range GuardedIn(dir) {
		rest, _ := filepath.Rel(dir, path)
		stands, was := now(path), filepath.Join(moved, rest)
		before, watched := j.states[was]
		if kept := moved != "" && (watched && before.same(stands) || !watched && j.guard.listed[was]); kept {
			continue // a bound file could not be changed
		}
		changes = append(changes, j.part(dir, rest, stands)...)
	}
	return changes
}

// part returns the changes for one of the paths in a new git directory that make git run programs.
func (j *judge) part(dir, rest string, now state) []Change {
	path := filepath.Join(dir, rest)
	switch {
	case now.kind == absent, now.kind == directory && len(now.entries) == 0, rest == "gitdir": // without a link that leads back, git does not use it
		return nil
	case isConfig(path) && now.kind == regular:
		return j.config(path, state{}, now)
	case rest == "hooks" && now.kind == directory:
		return j.hooks(path, now.entries)
	case rest == "commondir" && now.kind == regular:
		if common := commonOf(dir); j.stage == working || j.found[common] && dir == filepath.Join(common, "worktrees", filepath.Base(dir)) {
			return nil
		}
	}
	return []Change{{Path: path}}
}

// hooks returns a change for each hook that is not a file which git copies into the user's new
// repositories.
func (j *judge) hooks(dir string, entries map[string]state) (changes []Change) {
	for name, entry := range entries {
		hook, ok := j.template[name]
		copied := bytes.Equal(hook, entry.data) || j.stage == working && bytes.HasPrefix(hook, entry.data)
		if !ok || entry.kind != regular || !copied {
			changes = append(changes, Change{Path: filepath.Join(dir, name)})
		}
	}
	return changes
}

// answers reports whether a link leads to a git directory that was found, and thus judged, and that
// names the link itself.
func (j *judge) answers(link string) bool {
	own := Leads(link)
	return j.found[own] && Answers(own, link)
}

// leadsWell reports whether an unwatched link may stay.
func (j *judge) leadsWell(link string) bool {
	if before := j.known(link); before != "" && j.texts[before] == textOf(link) {
		return true // it is unchanged, here or at its previous place
	}
	own := Leads(link)
	return j.answers(link) || j.found[own] && j.known(own) == "" // a new one, which is judged itself
}
