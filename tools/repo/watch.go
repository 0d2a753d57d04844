package repo

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Watch remembers what made git run programs before a call, to tell afterwards what the call has left.
type Watch struct {
	finder  *Finder
	guard   *Guard
	allowed Allowed
	states  map[string]state
	inodes  map[uint64]string // the git directories, and the links, by their inodes
	texts   map[string]string // what the links say, by their paths
	begun   time.Time
}

// A Change is something that was left where it would make git run programs.
type Change struct {
	Path string
	// Before is what stood there, to be put back; nil if nothing did, or if it is not known any more.
	Before *File
}

// A File is the content of a regular file.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Allowed is what a call may leave although it makes git run programs, because whoever permitted the call saw it.
type Allowed struct {
	Keys     []string // of settings; NAME.* stands for a section
	Programs []string // command lines of the steps of a rebase
}

// Watch records the state of the given paths, and which git directories there are.
func (f *Finder) Watch(g *Guard, paths []string, allowed Allowed) *Watch {
	w := &Watch{
		finder: f, guard: g, allowed: allowed, states: map[string]state{}, inodes: map[uint64]string{}, texts: map[string]string{}, begun: time.Now(),
	}
	for _, path := range paths {
		w.states[path] = stateOf(path)
	}
	for _, path := range slices.Concat(g.dirs, g.links) {
		w.inodes[inodeOf(path)] = path
	}
	for _, link := range g.links {
		w.texts[link] = textOf(link)
	}
	return w
}

// Changes returns what now makes git run programs and did not before: what stands at the watched paths, and in git
// directories and links that are new.
func (w *Watch) Changes() (changes []Change) {
	for path, before := range w.states {
		changes = append(changes, w.compare(path, before, stateOf(path))...)
	}
	j := judge{Watch: w, template: w.finder.template(w.guard.home)}
	for _, root := range w.guard.roots {
		found := w.finder.Find(root)
		j.dirs = append(j.dirs, found.Dirs...)
		j.links = append(j.links, found.Links...)
	}
	for _, dir := range j.dirs {
		if w.inodes[inodeOf(dir)] != dir && w.isNew(dir) {
			changes = append(changes, j.dir(dir)...)
		}
	}
	for _, link := range j.links {
		if w.states[link].kind == absent && w.isNew(filepath.Dir(link)) && !j.leadsWell(link) {
			changes = append(changes, Change{Path: link})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(changes, func(a, b Change) bool { return a.Path == b.Path })
}

func inodeOf(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return stampOf(info).inode
}

// isNew reports whether a directory that was not found before may have come into being, or to its place, since then. Only where not
// all were found before may it have been there.
func (w *Watch) isNew(dir string) bool {
	info, err := os.Lstat(dir)
	return !w.guard.Partial || err == nil && time.Unix(0, int64(stampOf(info).changed)).After(w.begun.Add(-settling))
}

// compare returns what is worse at one path than it was.
func (w *Watch) compare(path string, before, now state) (changes []Change) {
	switch {
	case now.kind == absent, before.same(now):
		return nil
	case before.kind == directory && now.kind == directory:
		for name, entry := range now.entries {
			changes = append(changes, w.compare(filepath.Join(path, name), before.entries[name], entry)...)
		}
		return changes
	case filepath.Base(path) == "gitdir" && Leads(pointer(path, "")) == filepath.Dir(path):
		return nil
	case strings.HasSuffix(path, "/"+rebaseTodo):
		return w.todo(path, before, now)
	case filepath.Base(path) == ".git" && Answers(Leads(path), path):
		return nil
	case isConfig(path) && now.kind == regular && w.tolerable(path, before.data, now.data):
		return nil
	case now.kind == directory && len(now.entries) == 0:
		return nil
	}
	return []Change{{Path: path, Before: before.file()}}
}

// todo returns what the list of a rebase has gained of commands for a shell that the call does not name, with the list without
// them.
func (w *Watch) todo(path string, before, now state) []Change {
	var kept []byte
	for line := range bytes.Lines(now.data) {
		command, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		runs := command == "exec" || command == "x"
		if !runs || bytes.Contains(before.data, line) || slices.Contains(w.allowed.Programs, strings.TrimSpace(text)) {
			kept = append(kept, line...)
		}
	}
	if now.kind == regular && len(kept) == len(now.data) {
		return nil
	}
	return []Change{{Path: path, Before: &File{Data: kept, Mode: now.mode.Perm()}}}
}

func isConfig(path string) bool {
	return filepath.Base(path) == "config" || filepath.Base(path) == "config.worktree"
}

// tolerable reports whether a configuration says nothing new that makes git run programs, apart from what is allowed.
func (w *Watch) tolerable(path string, before, now []byte) bool {
	old, _ := ParseConfig(before) // of one that git refused everything is new
	settings, err := ParseConfig(now)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(settings, func(s Setting) bool {
		return !slices.Contains(old, s) && !s.Harmless() && !w.allows(s.Key) && !w.leadsInside(filepath.Dir(path), s)
	})
}

func (w *Watch) allows(key string) bool {
	return slices.ContainsFunc(w.allowed.Keys, func(name string) bool {
		section, all := strings.CutSuffix(name, ".*")
		return strings.EqualFold(name, key) || all && strings.HasPrefix(strings.ToLower(key), section+".")
	})
}

// leadsInside reports whether a setting names a working tree within the roots, as that of a submodule does.
func (w *Watch) leadsInside(dir string, s Setting) bool {
	if s.Key != "core.worktree" || filepath.Base(dir) == ".git" {
		return false
	}
	top := absolute(dir, s.Value)
	return slices.ContainsFunc(w.guard.roots, func(root string) bool { return within(top, root) })
}

// A judge decides about what is new.
type judge struct {
	*Watch
	dirs, links []string // all that there are now
	template    map[string][]byte
}

// dir returns what in a new git directory would make git run programs. One that was only moved may keep what it had, and
// a copy what the repositories of the roots have.
func (j *judge) dir(dir string) (changes []Change) {
	moved := j.inodes[inodeOf(dir)]
	changes = j.compare(filepath.Join(dir, rebaseTodo), state{}, stateOf(filepath.Join(dir, rebaseTodo)))
	for _, path := range GuardedIn(dir) {
		now := stateOf(path)
		rest, _ := filepath.Rel(dir, path)
		if before, watched := j.states[filepath.Join(moved, rest)]; moved != "" && (!watched || before.same(now)) {
			continue // what is not watched could not be changed
		}
		if !j.acceptable(dir, rest, now) {
			changes = append(changes, Change{Path: path})
		}
	}
	return changes
}

func (j *judge) acceptable(dir, rest string, now state) bool {
	switch rest {
	case "config", "config.worktree":
		return now.kind == absent || now.kind == regular && j.tolerable(filepath.Join(dir, rest), j.known(rest, now.data), now.data)
	case "hooks":
		return now.kind == absent || now.kind == directory && !now.irregular() && j.onlyKnown(now.entries)
	case "commondir":
		common := CommonOf(dir)
		return now.kind == absent || slices.Contains(j.dirs, common) && dir == filepath.Join(common, "worktrees", filepath.Base(dir))
	case "gitdir":
		return true
	}
	return now.kind == absent
}

// known returns data if a repository of the roots has the very same file, which its configuration then only repeats.
func (j *judge) known(rest string, data []byte) []byte {
	if slices.ContainsFunc(j.firmFiles(rest), func(own []byte) bool { return bytes.Equal(own, data) }) {
		return data
	}
	return nil
}

// onlyKnown reports whether all hooks are those that git puts into new repositories, or those of a repository of the roots.
func (j *judge) onlyKnown(entries map[string]state) bool {
	for name, entry := range entries {
		same := func(own []byte) bool { return bytes.Equal(own, entry.data) }
		if hook, ok := j.template[name]; !(ok && same(hook)) && !slices.ContainsFunc(j.firmFiles("hooks/"+name), same) {
			return false
		}
	}
	return true
}

// firmFiles returns the content of the files of that name in the git directories of the roots' own repositories, in which the
// call could not change them.
func (j *judge) firmFiles(rest string) (files [][]byte) {
	for _, dir := range j.guard.dirs {
		path := filepath.Join(dir, rest)
		guarded := func(own string) bool { return within(path, own) }
		if _, watched := j.states[path]; watched || j.inodes[inodeOf(dir)] != dir || !slices.ContainsFunc(j.guard.Firm, guarded) {
			continue
		}
		if data, err := ReadSmall(path); err == nil {
			files = append(files, data)
		}
	}
	return files
}

// leadsWell reports whether a new link leads to a git directory that has been judged, or that names the link itself.
func (j *judge) leadsWell(link string) bool {
	own := Leads(link)
	if before := j.inodes[inodeOf(link)]; before != "" && j.texts[before] == textOf(link) {
		return true // it is what it was, here or where it has been moved from
	}
	known := slices.Concat(j.guard.roots, j.guard.Shared) // elsewhere the call may have made what answers
	answers := slices.ContainsFunc(known, func(dir string) bool { return within(own, dir) }) && Answers(own, link)
	return own != "" && (answers || slices.Contains(j.dirs, own) && j.inodes[inodeOf(own)] == "")
}
