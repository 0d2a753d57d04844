package repo

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Watch holds what made git run programs before a call. Changes finds what the call has added. It
// may be called more than once, and concurrently.
type Watch struct {
	finder   *Finder
	guard    *Guard
	allowed  Allowed
	states   map[string]state
	files    map[identity]string // the git directories, and the links
	texts    map[string]string   // the contents of the links, by their paths
	template map[string][]byte   // the hooks of new repositories
	begun    time.Time
}

// A Change is something that was left where it would make git run programs.
type Change struct {
	Path string
	// Before is what stood there, to be restored; nil if nothing did, or if it was not recorded.
	Before *File
}

// A File is the content of a regular file.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Allowed is what a call may leave although it makes git run programs, because the question about
// the call named it.
type Allowed struct {
	Keys     []string // of settings; NAME.* stands for a section
	Programs []string // command lines of the steps of a rebase
}

// Watch records the state of the given paths, and which git directories there are.
func (f *Finder) Watch(g *Guard, paths []string, allowed Allowed) *Watch {
	w := &Watch{
		finder: f, guard: g, allowed: allowed, states: map[string]state{}, files: map[identity]string{}, texts: map[string]string{},
		template: f.template(g.home), begun: time.Now(),
	}
	r := recorder{left: budget}
	for _, path := range paths {
		w.states[path] = r.stateOf(path)
	}
	for _, path := range slices.Concat(g.dirs, g.links) {
		if file, ok := identityOf(path); ok {
			w.files[file] = path
		}
	}
	for _, link := range g.links {
		w.texts[link] = textOf(link)
	}
	return w
}

// known returns where a git directory or a link was before the call; empty: it was not found then.
func (w *Watch) known(path string) string {
	file, ok := identityOf(path)
	if !ok {
		return ""
	}
	return w.files[file]
}

func identityOf(path string) (file identity, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return file, false
	}
	return stampOf(info).file, true
}

// Changes returns what makes git run programs now and did not before: at the watched paths, and in
// git directories and links that are new.
func (w *Watch) Changes() (changes []Change) {
	j := judge{Watch: w, found: map[string]bool{}}
	var links []string
	for _, root := range w.guard.roots {
		found := w.finder.find(root, farther*maxFolders)
		for _, dir := range found.Dirs {
			j.found[dir] = true
		}
		links = append(links, found.Links...)
	}
	for path, before := range w.states {
		changes = append(changes, j.compare(path, before, now(path))...)
	}
	for dir := range j.found {
		if w.known(dir) != dir && w.isNew(dir) {
			changes = append(changes, j.dir(dir)...)
		}
	}
	for _, link := range links {
		if w.states[link].kind == absent && w.isNew(filepath.Dir(link)) && !j.leadsWell(link) {
			changes = append(changes, Change{Path: link})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(changes, func(a, b Change) bool { return a.Path == b.Path })
}

// farther is how many times more directories are examined after a call than before it, so that a
// call cannot hide a repository behind directories that it makes.
const farther = 10

// now returns what is at path.
func now(path string) state { return (&recorder{left: budget}).stateOf(path) }

// isNew reports whether a directory that was not found before may have been made, or moved to its
// place, since then. It may have existed only if the earlier search was incomplete.
func (w *Watch) isNew(dir string) bool {
	info, err := os.Lstat(dir)
	return !w.guard.Partial || err == nil && time.Unix(0, int64(stampOf(info).changed)).After(w.begun.Add(-settling))
}

// compare returns changes for the worse at one path.
func (j *judge) compare(path string, before, now state) (changes []Change) {
	switch {
	case now.kind == absent, before.same(now), IsLink(path) && j.answers(path),
		filepath.Base(path) == "gitdir" && now.kind == regular && Leads(pointer(path, "")) == filepath.Dir(path),
		isConfig(path) && now.kind == regular && j.tolerable(path, before.data, now.data):
		return nil
	case before.kind == directory && now.kind == directory:
		for name, entry := range now.entries {
			changes = append(changes, j.compare(filepath.Join(path, name), before.entries[name], entry)...)
		}
		return changes
	case strings.HasSuffix(path, "/"+rebaseTodo):
		return j.todo(path, before, now)
	case now.kind == directory && len(now.entries) == 0:
		return nil
	}
	return []Change{{Path: path, Before: before.file()}}
}

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

// tolerable reports whether a configuration has no new settings that make git run programs, apart
// from allowed ones.
func (w *Watch) tolerable(path string, before, now []byte) bool {
	was, _ := ParseConfig(before) // if git rejected it, everything is new
	old := map[Setting]bool{}
	for _, s := range was {
		old[s] = true
	}
	settings, err := ParseConfig(now)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(settings, func(s Setting) bool {
		return !old[s] && !s.harmless() && !w.allows(s.Key) && !w.leadsInside(filepath.Dir(path), s)
	})
}

func (w *Watch) allows(key string) bool {
	return slices.ContainsFunc(w.allowed.Keys, func(name string) bool {
		section, all := strings.CutSuffix(name, ".*")
		return strings.EqualFold(name, key) || all && strings.HasPrefix(strings.ToLower(key), section+".")
	})
}

// leadsInside reports whether a setting names the working tree of a submodule, which leads back to
// the git directory dir.
func (w *Watch) leadsInside(dir string, s Setting) bool {
	if s.Key != "core.worktree" || IsLink(dir) {
		return false
	}
	top := absolute(dir, s.Value)
	return slices.ContainsFunc(w.guard.roots, func(root string) bool { return pathname.Within(root, top) }) && Leads(filepath.Join(top, ".git")) == dir
}

// A judge decides about what is new.
type judge struct {
	*Watch
	found map[string]bool // the git directories that there are now
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
		if !j.acceptable(dir, rest, stands) {
			changes = append(changes, Change{Path: path})
		}
	}
	return changes
}

func (j *judge) acceptable(dir, rest string, now state) bool {
	if now.kind == absent {
		return true
	}
	switch rest {
	case "config", "config.worktree":
		return now.kind == regular && j.tolerable(filepath.Join(dir, rest), nil, now.data)
	case "hooks":
		return now.kind == directory && j.fromTemplate(now.entries)
	case "commondir":
		common := commonOf(dir)
		return now.kind == regular && j.found[common] && dir == filepath.Join(common, "worktrees", filepath.Base(dir))
	}
	return rest == "gitdir" // without a link that leads back, git does not use it
}

// fromTemplate reports whether all hooks are files that git copies into the user's new
// repositories.
func (j *judge) fromTemplate(entries map[string]state) bool {
	for name, entry := range entries {
		if hook, ok := j.template[name]; !ok || entry.kind != regular || !bytes.Equal(hook, entry.data) {
			return false
		}
	}
	return true
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
