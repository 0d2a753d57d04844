// Package repo finds what git has on disk: git directories, the files that lead to them, linked
// worktrees, submodules and bare repositories, and what in all of these makes git run a program. It
// follows git's own rules (gitrepository-layout(5), "DISCOVERY" of git(1)).
//
// It only reads, and starts no git. It does not know what a call is, who may change what it finds,
// or how that is prevented.
package repo

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Repository is a git directory as git finds it from a working tree.
type Repository struct {
	// Dir is the git directory; absolute and without symbolic links.
	Dir string
	// Common is the directory with configuration, hooks and objects: Dir itself, or what the
	// worktrees of a repository share.
	Common string
	// Top is the directory in which git found it: that of the working tree, or Dir itself for a
	// bare repository.
	Top string
}

// Discover returns the repository that git would use in dir, an absolute path without symbolic
// links. It goes up from dir as git does and reports false if there is none.
func Discover(dir string) (Repository, bool) {
	for ; ; dir = filepath.Dir(dir) {
		if own := Leads(filepath.Join(dir, ".git")); own != "" {
			return repositoryAt(own, dir), true
		}
		if IsGitDir(dir) {
			return repositoryAt(dir, dir), true
		}
		if dir == filepath.Dir(dir) {
			return Repository{}, false
		}
	}
}

func repositoryAt(dir, top string) Repository {
	return Repository{Dir: dir, Common: commonOf(dir), Top: top}
}

// Leads returns the git directory that link, a path that ends in .git, is or leads to; empty if git
// would ignore it. The result has no symbolic links.
func Leads(link string) string {
	info, err := os.Stat(link)
	if err != nil {
		return ""
	}
	target := link
	if !info.IsDir() {
		if target = pointer(link, "gitdir:"); target == "" {
			return ""
		}
	}
	real, err := filepath.EvalSymlinks(target)
	if err != nil || !IsGitDir(real) {
		return ""
	}
	return real
}

// commonOf returns the directory that the worktrees of the git directory dir share: dir itself
// unless its file commondir names another.
func commonOf(dir string) string {
	common := pointer(filepath.Join(dir, "commondir"), "")
	if common == "" {
		return dir
	}
	if real, err := filepath.EvalSymlinks(common); err == nil {
		return real
	}
	return common
}

// IsGitDir reports whether git accepts dir as a git directory. The content of HEAD is not read, so
// that a directory that is about to become one counts. dir is a path on the disk.
func IsGitDir(dir string) bool { return completes(dir, "") }

// completes reports whether dir is a git directory once it has an entry of that name: it then has
// HEAD, and objects and refs of its own or in the common directory.
func completes(dir, name string) bool {
	has := func(entry string) bool { return entry == name || exists(filepath.Join(dir, entry)) }
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Answers reports whether the git directory dir itself names link, a .git file that leads to it: a
// linked worktree does so in its file gitdir, and a submodule in core.worktree. A workspace may
// hold files of other users, so a pointer by itself proves nothing.
func Answers(dir, link string) bool {
	if back, err := filepath.EvalSymlinks(pointer(filepath.Join(dir, "gitdir"), "")); err == nil && back == link {
		common := commonOf(dir)
		return common != dir && dir == filepath.Join(common, "worktrees", filepath.Base(dir))
	}
	if !slices.Contains(strings.Split(dir, "/"), "modules") {
		return false
	}
	for _, name := range []string{"config", "config.worktree"} { // where a sparse checkout moves it
		data, _ := ReadSmall(filepath.Join(dir, name)) // it may not exist
		settings, _ := ParseConfig(data)
		for _, s := range settings {
			top, err := filepath.EvalSymlinks(absolute(dir, s.Value))
			if s.Key == "core.worktree" && err == nil && top == filepath.Dir(link) {
				return true
			}
		}
	}
	return false
}

// largest is how much of one of git's files is read, in bytes. The number is our own: configuration
// files have some kilobytes.
const largest = 1 << 20

// ReadSmall returns the content of a regular file of at most 1 MiB. It follows no symbolic link at
// the end of the path and never blocks: the file is not trusted.
func ReadSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > largest {
		return nil, &os.PathError{Op: "read", Path: path, Err: os.ErrInvalid}
	}
	return io.ReadAll(io.LimitReader(f, largest+1))
}

// pointer returns the path after a prefix in a file, or "" if the file has none. The file may be a
// symbolic link; a relative path then begins at the link's own directory.
func pointer(file, prefix string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	data, err := ReadSmall(real)
	if err != nil || len(data) > unix.PathMax+len(prefix) {
		return ""
	}
	text, ok := bytes.CutPrefix(data, []byte(prefix))
	path := strings.TrimLeft(strings.TrimRight(string(text), "\r\n"), " ")
	if !ok || path == "" {
		return ""
	}
	return absolute(filepath.Dir(file), path)
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// OnRemote reports whether a new branch that begins at start, or that has its name and none of its
// own exists, would come to follow a branch of a remote: there is a remote-tracking branch of that
// name.
func (r Repository) OnRemote(start string) bool {
	if start == "" || strings.Contains(start, "..") {
		return false
	}
	if r.hasRef("refs/heads/" + start) {
		return false
	}
	remotes, _ := os.ReadDir(filepath.Join(r.Common, "refs", "remotes")) // it may not exist
	isOn := func(remote os.DirEntry) bool { return r.hasRef("refs/remotes/" + remote.Name() + "/" + start) }
	return r.hasRef("refs/remotes/"+start) || slices.ContainsFunc(remotes, isOn) || r.packed(func(ref string) bool {
		name, ok := strings.CutPrefix(ref, "refs/remotes/")
		return ok && strings.HasSuffix(name, "/"+start)
	})
}

func (r Repository) hasRef(ref string) bool {
	return exists(filepath.Join(r.Common, ref)) || r.packed(func(packed string) bool { return packed == ref })
}

// packed reports whether fits accepts one of the packed references.
func (r Repository) packed(fits func(ref string) bool) bool {
	data, _ := ReadSmall(filepath.Join(r.Common, "packed-refs")) // it may not exist
	for line := range strings.Lines(string(data)) {
		if _, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && fits(ref) {
			return true
		}
	}
	return false
}
