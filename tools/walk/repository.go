// Finds the ignore files that git keeps outside the tree. Of git's configuration it reads core.excludesFile
// and knows nothing else; files that the configuration includes are not read.

package walk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Top returns the top of the repository in which walks count a directory, by its real path: the nearest directory with an
// entry .git; empty if there is none.
func Top(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// repositoryRules returns .git/info/exclude of the repository whose top is dir, and what core.excludesFile of its own
// configuration names, nil when it names nothing.
func repositoryRules(dir string) (exclude Rules, global *Rules, err error) {
	store := gitDir(dir)
	exclude, err = optionalRules(filepath.Join(store, "info", "exclude"))
	if err != nil {
		return exclude, nil, err
	}
	file, ok := excludesSetting(filepath.Join(store, "config"))
	if !ok || !filepath.IsAbs(file) {
		return exclude, nil, nil
	}
	rules, err := optionalRules(file)
	return exclude, &rules, err
}

// gitDir is the directory that the working trees of a repository share. In a linked working tree and in a submodule
// .git is a file that names another directory.
func gitDir(dir string) string {
	dot := filepath.Join(dir, ".git")
	data, err := readSmall(dot)
	if err != nil {
		return dot
	}
	named, ok := strings.CutPrefix(string(data), "gitdir:")
	if !ok {
		return dot
	}
	store := against(dir, strings.TrimSpace(named))
	if common, err := readSmall(filepath.Join(store, "commondir")); err == nil {
		return against(store, strings.TrimSpace(string(common)))
	}
	return store
}

func against(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func optionalRules(path string) (Rules, error) {
	data, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Rules{}, nil
	}
	if err != nil {
		return Rules{}, err
	}
	return ParseRules(data), nil
}

// globalRules reads the user's excludes file. environ says where home is.
func globalRules(environ []string) (Rules, error) {
	home, config := lookup(environ, "HOME"), lookup(environ, "XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	file := ""
	if config != "" {
		file = filepath.Join(config, "git", "ignore")
	}
	for _, settings := range []string{"/etc/gitconfig", filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")} {
		if named, ok := excludesSetting(settings); ok {
			file = named
		}
	}
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(file) {
		return Rules{}, nil
	}
	return optionalRules(file)
}

// TakesBack reports whether an ignore file that applies to the file at path, absolute and without symbolic links, may keep
// what another one leaves out: it has a line that begins with "!", or cannot be read. environ says where the user's git
// configuration is.
func TakesBack(path string, environ []string) bool {
	rules, err := globalRules(environ)
	found := rules.takeBack() || err != nil
	for dir := filepath.Dir(path); !found; dir = filepath.Dir(dir) {
		for _, name := range sources {
			rules, err := optionalRules(filepath.Join(dir, name))
			found = found || rules.takeBack() || err != nil
		}
		exclude, global, err := repositoryRules(dir)
		found = found || exclude.takeBack() || global != nil && global.takeBack() || err != nil
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return found
}

func lookup(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest
		}
	}
	return value
}

// excludesSetting returns core.excludesFile of one configuration file; the last one counts.
func excludesSetting(path string) (value string, ok bool) {
	data, err := readSmall(path)
	if err != nil {
		return "", false
	}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if rest, found := strings.CutPrefix(line, "["); found {
			section, line, _ = strings.Cut(rest, "]")
			line = strings.TrimSpace(line)
		}
		key, raw, found := strings.Cut(line, "=")
		if found && strings.EqualFold(section, "core") && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			value, ok = unquote(strings.TrimSpace(raw)), true
		}
	}
	return value, ok
}

// unquote takes the quotes and escapes out of a configuration value and ends it at a comment.
func unquote(raw string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(raw):
			i++
			b.WriteByte(raw[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimRight(b.String(), " \t")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
