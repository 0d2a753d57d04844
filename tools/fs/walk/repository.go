// The ignore files that git keeps outside the tree. tools/fs/repo finds them.

package walk

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/repo"
)

// repositoryRules returns the rules of .git/info/exclude of the repository whose top is dir, and
// those of the file that core.excludesFile of its configuration names. global is nil if the
// configuration does not set that.
func repositoryRules(dir string, environ []string) (exclude Rules, global *Rules, err error) {
	file, named, isSet := repo.Excludes(dir, environ)
	exclude, err = optionalRules(file)
	if err != nil || !isSet {
		return exclude, nil, err
	}
	rules, err := optionalRules(named)
	return exclude, &rules, err
}

// optionalRules returns the rules of a file that the user or git names, and that may be a link. A
// path that is not absolute names none.
func optionalRules(path string) (Rules, error) {
	if !filepath.IsAbs(path) {
		return Rules{}, nil
	}
	return rulesOf(os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0))
}

// TakesBack reports whether an ignore file that applies to the file at path, absolute and without
// symbolic links, may keep what another one leaves out: it has a line that begins with "!", or
// cannot be read. environ is where git finds the user's configuration.
func TakesBack(path string, environ []string) bool {
	user, err := optionalRules(repo.UserExcludes(environ))
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
