package pipeline

// Where git keeps its own files for the directories of a call, so that they can be written like the roots and what git
// obeys in them is protected. It reads what a .git file says and believes it only if git's side says the same: a workspace
// is somebody else's files.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/workspace"
)

// A repository is a git directory that a call works with.
type repository struct {
	dir       string   // the git directory that its worktrees share
	protected []string // in it
	shared    []string // git directories outside the root that belong to it
}

// repositories finds those of root: at its top, one directory below, and from dir upwards to root.
func repositories(root, dir string) (found []repository) {
	tops := []string{root}
	entries, _ := os.ReadDir(root) // what cannot be listed cannot be written either
	for _, entry := range entries {
		if entry.IsDir() && len(tops) < maxRepositories {
			tops = append(tops, filepath.Join(root, entry.Name()))
		}
	}
	for ; workspace.Within(root, dir) && dir != root; dir = filepath.Dir(dir) {
		if !slices.Contains(tops, dir) {
			tops = append(tops, dir)
		}
	}
	for _, top := range tops {
		if r, ok := repositoryAt(top); ok {
			found = append(found, r)
		}
	}
	return found
}

// maxRepositories is how many directories of a root are looked at. Ours: a look is some microseconds.
const maxRepositories = 200

func repositoryAt(top string) (r repository, ok bool) {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return r, false
	}
	if info.IsDir() {
		return repository{dir: git, protected: permission.ProtectedInGit(git)}, true
	}
	own, err := filepath.EvalSymlinks(pointer(git, "gitdir: "))
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return r, false
	}
	// A worktree's git directory names the .git file that leads to it, and the directory that all worktrees share.
	if back, err := filepath.EvalSymlinks(pointer(filepath.Join(own, "gitdir"), "")); err != nil || back != git {
		return r, false
	}
	common, err := filepath.EvalSymlinks(pointer(filepath.Join(own, "commondir"), ""))
	if err != nil || filepath.Dir(filepath.Dir(own)) != common {
		return r, false
	}
	return repository{dir: common, protected: append(permission.ProtectedInGit(common), filepath.Join(own, "config.worktree")), shared: []string{common}}, true
}

// settled are subcommands of git by which it writes its own settings, but for config: of branches, of remotes and of
// submodules, none of which makes it run anything.
var settled = []string{"branch", "checkout", "push", "remote", "submodule add", "submodule init", "submodule sync", "switch", "worktree add"}

// plain are those, and others that may stand beside them, which run nothing but what git's settings and hooks already say.
var plain = append([]string{"add", "commit", "diff", "fetch", "init", "log", "merge", "pull", "rev-parse", "show", "status", "submodule status", "tag"}, settled...)

// settable are the keys that git config may then set: names, and how things are shown and joined. Those of "branch" and
// "remote" are beginnings.
var settable = []string{
	"user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "merge.conflictstyle",
	"core.autocrlf", "core.eol", "core.filemode", "color.ui", "rebase.autostash", "fetch.prune", "rerere.enabled", "advice.",
}

// setsGit says whether the call is git alone, and git has to write its own settings in it: then it may. What reaches them by
// another way may not, and nor may what makes git run something.
func setsGit(f *permission.Facts) (sets bool) {
	if f.Hidden != "" || f.Unread {
		return false
	}
	for i := range f.Commands {
		c := &f.Commands[i]
		words := literals(c)
		switch {
		case len(words) == 0 || len(c.Assigns) > 0:
			return false
		case c.Name == "cd" || c.Name == "echo" || c.Name == "true" || c.Name == "wc" || c.Name == "head" || c.Name == "tail":
		case c.Name != "git" || len(words) < 2:
			return false
		case words[1] == "config" && len(words) == 4 && settles(words[2]), oneOf(settled, words):
			sets = true
		case !oneOf(plain, words):
			return false
		}
	}
	return sets
}

// settles says whether a key may be set.
func settles(key string) bool {
	return slices.ContainsFunc(settable, func(k string) bool {
		return strings.EqualFold(k, key) || strings.HasSuffix(k, ".") && strings.HasPrefix(strings.ToLower(key), k)
	})
}

// oneOf says whether git is called with one of the subcommands. Options that name a program are none of theirs.
func oneOf(subcommands, words []string) bool {
	if slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "--exec") || strings.HasPrefix(w, "--upload-pack") || strings.HasPrefix(w, "--receive-pack") ||
			strings.HasPrefix(w, "--template") || strings.HasPrefix(w, "--separate-git-dir") || strings.HasPrefix(w, "--config")
	}) {
		return false
	}
	line := strings.Join(words[1:], " ") + " "
	return slices.ContainsFunc(subcommands, func(s string) bool { return strings.HasPrefix(line, s+" ") })
}

// literals are the words of a command without git's own options, if all of them are known.
func literals(c *shell.Command) (words []string) {
	all := c.Words
	if c.SubcommandSafe {
		all = c.Subcommand
	}
	for _, w := range all {
		if !w.Literal {
			return nil
		}
		words = append(words, w.Text)
	}
	return words
}

// pointer reads a file that holds one path, behind a prefix, which is relative to where the file is.
func pointer(file, prefix string) string {
	text, err := os.ReadFile(file)
	if err != nil || len(text) > 4096 {
		return ""
	}
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), prefix)
	if !ok || path == "" {
		return ""
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}
