// The ignore files that git keeps outside the tree. tools/fs/repo finds them.

package walk

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/toold/toold/tools/fs/repo"
)

// repositoryRules returns the rules of .git/info/exclude of the repository whose top is dir, and those of the file that
// core.excludesFile of its configuration names. global is nil if the configuration does not set that.
func repositoryRules(dir string, environ []string) (exclude Rules, global *Rules, err error) {
	file, named, isSet := repo.Excludes(dir, environ)
	exclude, err = optionalRules(file)
	if err != nil || !isSet {
		return exclude, nil, err
	}
	rules, err := optionalRules(named)
	return exclude, &rules, err
}

// optionalRules returns no rules for a file that does not exist. A path that is not absolute names none.
func optionalRules(path string) (Rules, error) {
	if !filepath.IsAbs(path) {
		return Rules{}, nil
	}
	data, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Rules{}, nil
	}
	if err != nil {
		return Rules{}, err
	}
	return ParseRules(data), nil
}

// userRules are the rules of the user's own ignore file, which apply in repositories that do not
// name another.
type userRules struct {
	Rules
	environ []string // of git
}

// readUserRules returns the rules of the user's own ignore file. environ says where the user's git configuration is.
func readUserRules(environ []string) (userRules, error) {
	rules, err := optionalRules(repo.UserExcludes(environ))
	return userRules{rules, environ}, err
}

// TakesBack reports whether an ignore file that applies to the file at path, absolute and without
// symbolic links, may keep what another one leaves out: it has a line that begins with "!", or
// cannot be read. environ is where git finds the user's configuration.
func TakesBack(path string, environ []string) bool {
	user, err := readUserRules(environ)
	found := user.takeBack() || err != nil
	for dir := filepath.Dir(path); !found; dir = filepath.Dir(dir) {
		for _, name := range sources {
			rules, err := optionalRules(filepath.Join(dir, name))
			found = found || rules.takeBack() || err != nil
		}
		exclude, global, err := repositoryRules(dir, environ)
		found = found || exclude.takeBack() || global != nil && global.takeBack() || err != nil
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return found
}
