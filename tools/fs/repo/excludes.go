package repo

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// HasLink reports whether the directory at path, relative to the open directory dirfd, has an entry
// .git. For ripgrep such a directory is the top of a repository. git also checks what the entry
// leads to, see [Discover].
func HasLink(dirfd int, path string) bool {
	return unix.Faccessat(dirfd, filepath.Join(path, ".git"), unix.F_OK, 0) == nil
}

// WorkTree returns the top of the working tree of the repository that git would use in dir, an
// absolute path without symbolic links. It returns the directory of a bare repository, and an empty
// string if there is no repository.
func WorkTree(dir string) string {
	r, _ := Discover(dir)
	if r.Top == r.Dir && IsLink(r.Dir) {
		return filepath.Dir(r.Dir)
	}
	return r.Top
}

// Excludes returns the ignore files outside of the working tree at top that only its repository
// names: info/exclude, and the value of core.excludesFile in the repository's configuration. isSet
// reports whether it has that setting. The files may not exist. environ is the environment of git;
// the last entry of a name counts.
func Excludes(top string, environ []string) (exclude, named string, isSet bool) {
	own := filepath.Join(top, ".git")
	if named := pointer(own, "gitdir:"); named != "" {
		own = named // ripgrep does not check that it is a git directory
	}
	common := commonOf(own)
	files := []string{filepath.Join(common, "config")}
	if slices.ContainsFunc(new(Finder).parsed(files[0]), Setting.hasWorktreeConfig) {
		files = append(files, filepath.Join(own, "config.worktree"))
	}
	named, isSet = excludesSetting(Getenv(environ, "HOME"), files...)
	return filepath.Join(common, "info", "exclude"), named, isSet
}

// UserExcludes returns the ignore file that git uses in all repositories whose configuration does
// not set core.excludesFile. The file may not exist. The result is empty if there is none.
func UserExcludes(environ []string) string {
	getenv := func(name string) string { return Getenv(environ, name) }
	home := getenv("HOME")
	if named, isSet := excludesSetting(home, userFiles(home, getenv)...); isSet {
		return named
	}
	return filepath.Join(configDir(home, getenv), "git", "ignore")
}

// hasWorktreeConfig reports whether git reads config.worktree because of the setting.
func (s Setting) hasWorktreeConfig() bool {
	return s.Key == "extensions.worktreeconfig" && (s.Implicit || slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(s.Value)))
}

// excludesSetting returns the last value of core.excludesFile in configuration files, as an
// absolute path. It is empty if the value is empty or relative.
func excludesSetting(home string, files ...string) (named string, isSet bool) {
	for _, s := range new(Finder).settings(home, "include.", files).settings {
		if s.Key == "core.excludesfile" {
			named, isSet = expanded(s.Value, home), true
		}
	}
	if !filepath.IsAbs(named) {
		named = ""
	}
	return named, isSet
}

// Getenv returns the value of a variable in an environment; the last entry counts.
func Getenv(environ []string, name string) (value string) {
	for _, entry := range environ {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest
		}
	}
	return value
}
