package repo

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// harmless are the settings that git, or a program that works with git, writes into a repository's
// configuration in everyday work, and that do not make git run programs. A last component of *
// stands for any name. Source: git-config(1) of 2.39 to 2.47.
var harmless = strings.Fields(`
	core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.precomposeunicode core.symlinks
	core.autocrlf core.eol core.safecrlf core.quotepath core.longpaths core.sparsecheckout core.sparsecheckoutcone
	core.sharedrepository core.untrackedcache core.splitindex core.commitgraph core.multipackindex core.abbrev core.compression
	branch.* extensions.* user.* submodule.* remote.* index.* feature.* color.* column.* advice.*
	pull.rebase pull.ff push.default push.autosetupremote push.followtags fetch.prune fetch.prunetags rebase.autosquash
	rebase.autostash merge.conflictstyle merge.ff rerere.enabled commit.verbose init.defaultbranch gc.auto pack.*
	lfs.repositoryformatversion lfs.access lfs.*.access`)

// runningIn are the settings of those sections that can make git run a program all the same.
var runningIn = map[string][]string{
	"remote": {"vcs", "uploadpack", "receivepack", "proxy", "proxyauthmethod"},
	"index":  {"fsmonitor"},
}

// harmless reports whether a setting in a repository's configuration does not make git run a
// program, now or later. An unknown setting is not harmless.
func (s Setting) harmless() bool {
	section, rest, _ := strings.Cut(strings.ToLower(s.Key), ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	value := strings.TrimSpace(s.Value)
	switch {
	case strings.HasPrefix(value, "!"), strings.HasPrefix(value, "ext::"): // a command: for submodule.NAME.update, or a remote
		return false
	case slices.Contains(runningIn[section], name):
		return false
	}
	return slices.ContainsFunc(harmless, func(pattern string) bool {
		if all, ok := strings.CutSuffix(pattern, ".*"); ok {
			return section == all
		}
		return pattern == section+"."+rest || pattern == section+".*."+name
	})
}

// UserFiles returns the configuration files that git reads for every repository of a user with that
// home directory.
func UserFiles(home string) []string { return userFiles(home, os.Getenv) }

func userFiles(home string, getenv func(string) string) []string {
	system := cmp.Or(getenv("GIT_CONFIG_SYSTEM"), "/etc/gitconfig")
	if global := getenv("GIT_CONFIG_GLOBAL"); global != "" {
		return []string{system, global}
	}
	return []string{system, filepath.Join(configDir(home, getenv), "git", "config"), filepath.Join(home, ".gitconfig")}
}

// UserFilesIn returns the configuration files that git reads for every repository of a user with
// that home and those directories of configuration, if no variable names others.
func UserFilesIn(home string, dirs []string) []string {
	files := []string{"/etc/gitconfig"}
	for _, dir := range dirs {
		files = append(files, filepath.Join(dir, "git", "config"))
	}
	return append(files, filepath.Join(home, ".gitconfig"))
}

// configDir returns the directory that holds a user's configuration, after the XDG Base Directory
// Specification.
func configDir(home string, getenv func(string) string) string {
	return cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
}

// maxIncludes is how many included files are read for each configuration file. Those beyond it are
// still recorded as included. The number is our own; git allows ten levels.
const maxIncludes = 32

// A configured is the settings of configuration files, with all that they include.
type configured struct {
	settings []Setting
	included []string // the files that they name, existing or not
	left     int      // how many included files may still be read
}

// allIncludes is the beginning of the keys of all includes: conditions are ignored, so that no file
// is missed.
const allIncludes = "include"

// settings returns the settings of the files, in git's order, and follows the includes whose keys
// begin with includes. A file that git would reject counts as empty.
func (f *Finder) settings(home, includes string, files []string) configured {
	c := configured{included: slices.Clone(files)} // so that none is read twice
	for _, file := range files {                   // each with a count of its own: one must not keep the next from being followed
		c.left = maxIncludes
		f.read(&c, home, includes, file)
	}
	c.included = c.included[len(files):]
	return c
}

func (f *Finder) read(c *configured, home, includes, file string) {
	for _, s := range f.parsed(file) {
		path := absolute(filepath.Dir(file), expanded(s.Value, home))
		switch {
		case !strings.HasPrefix(s.Key, includes) || !strings.HasSuffix(s.Key, ".path"):
			c.settings = append(c.settings, s)
		case s.Value != "" && !strings.HasPrefix(s.Value, "%(prefix)") && !slices.Contains(c.included, path):
			c.included = append(c.included, path)
			if c.left > 0 {
				c.left--
				f.read(c, home, includes, path)
			}
		}
	}
}

// Sets reports whether the configuration of a repository has a setting for one of the branches.
func (f *Finder) Sets(r Repository, branches []string) bool {
	return slices.ContainsFunc(f.parsed(filepath.Join(r.Common, "config")), func(s Setting) bool {
		return slices.ContainsFunc(branches, func(name string) bool { return strings.HasPrefix(s.Key, "branch."+name+".") })
	})
}

// opens are the settings whose value is a file that git opens when it only reads, besides
// configuration.
var opens = strings.Fields("core.excludesfile core.attributesfile mailmap.file blame.ignorerevsfile diff.orderfile")

// Opened returns the files that git opens because these configuration files, or files that they
// include, name them: absolute paths, existing or not. Paths relative to a working tree are not
// included.
func (f *Finder) Opened(home string, files ...string) []string {
	c := f.settings(home, allIncludes, files)
	paths := c.included
	for _, s := range c.settings {
		if path := expanded(s.Value, home); slices.Contains(opens, s.Key) && filepath.IsAbs(path) {
			paths = append(paths, filepath.Clean(path))
		}
	}
	return paths
}

// Aliases returns git's aliases in dir, by name. It omits one with several values in the files,
// since which of them counts is not determined here.
func (f *Finder) Aliases(home, dir string) map[string]string {
	files := UserFiles(home)
	if r, ok := Discover(dir); ok {
		files = append(files, r.Configs()...)
	}
	aliases := map[string]string{}
	var several []string
	for _, s := range f.settings(home, allIncludes, files).settings {
		name, ok := strings.CutPrefix(s.Key, "alias.")
		if other, known := aliases[name]; ok && known && other != s.Value {
			several = append(several, name)
		}
		if ok && !s.Implicit {
			aliases[name] = s.Value
		}
	}
	for _, name := range several {
		delete(aliases, name)
	}
	return aliases
}

// expanded replaces the ~ in front of a path.
func expanded(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// A parsedFile is the settings of a configuration file when it was read.
type parsedFile struct {
	stamp    stamp
	settings []Setting
}

// maxParsed is how many files are cached. The number is our own.
const maxParsed = 256

// parsed returns the settings of one file, which is read again only if it has changed.
func (f *Finder) parsed(file string) []Setting {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	now := stampOf(info)
	f.mu.Lock()
	known, ok := f.files[file]
	f.mu.Unlock()
	if ok && known.stamp == now {
		return known.settings
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil
	}
	data, err := ReadSmall(real)
	if err != nil {
		return nil
	}
	settings, err := ParseConfig(data)
	if err != nil {
		return nil
	}
	if time.Since(time.Unix(0, int64(now.changed))) > settling {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.files == nil || len(f.files) >= maxParsed {
			f.files = map[string]parsedFile{}
		}
		f.files[file] = parsedFile{now, settings}
	}
	return settings
}

// commands are the settings whose value is a command line, by the last part of their key and by the
// whole.
var commands = strings.Fields(`
	fsmonitor sshcommand editor pager askpass gitproxy alternaterefscommand external textconv command cmd clean smudge process driver program helper
	difffilter defaultkeycommand packobjectshook uploadpack receivepack tocmd cccmd hook`)

// isCommand reports whether the value is a command line for a shell. By default helpers and aliases
// are commands of git.
func (s Setting) isCommand(name string) bool {
	switch {
	case strings.HasPrefix(s.Key, "alias."):
		return strings.HasPrefix(s.Value, "!")
	case name == "helper":
		return strings.ContainsAny(s.Value, "!/")
	}
	return strings.HasPrefix(s.Key, "pager.") || slices.Contains(commands, name)
}

// named returns the paths that git uses because the configuration of a repository names them: its
// hooks, further attributes, included files, and files that are words of commands. Git runs hooks
// in the working tree, and those for a push in the git directory.
func (c configured) named(r Repository, home string) (paths []string) {
	top := r.Top
	paths = append(paths, c.included...)
	for _, s := range c.settings {
		name := s.Key[strings.LastIndexByte(s.Key, '.')+1:]
		switch {
		case s.Key == "core.hookspath", s.Key == "core.attributesfile", s.Key == "init.templatedir":
			paths = append(paths, absolute(top, expanded(s.Value, home)), absolute(r.Common, expanded(s.Value, home)))
		case !s.isCommand(name):
		default:
			for n, word := range strings.Fields(strings.TrimPrefix(s.Value, "!")) {
				word = strings.Trim(word, `"';|&()`)
				path := absolute(top, expanded(word, home))
				info, err := os.Stat(path)
				if err == nil && info.Mode().IsRegular() || n == 0 && err != nil && strings.Contains(word, "/") {
					paths = append(paths, path) // also a program that does not exist yet
				}
			}
		}
	}
	return paths
}
