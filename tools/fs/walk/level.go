// The ignore files that apply to one directory: its own, its parents', the repository's and the
// user's, and which of them wins.

package walk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/repo"
)

// sources are the ignore files of a directory, the stronger ones first: if one has a matching line,
// at whatever depth, the later ones are not used. Only the last is git's, and only it ends at the
// repository's top.
var sources = [...]string{".rgignore", ".ignore", gitSource: ".gitignore"}

const gitSource = 2

// largestIgnoreFile is the largest ignore file that is read, in bytes. The number is our own: the
// longest in use have some thousand lines.
const largestIgnoreFile = 1 << 20

// A level is the ignore files of one directory. A directory without any has no level of its own.
type level struct {
	parent *level // nil at the highest directory whose files count
	skip   int    // length of the directory's path and its slash, in full paths
	own    [len(sources)]Rules
	// top is set if a repository begins here, or nothing above counts. exclude and global are git's
	// other two files.
	top             bool
	exclude, global Rules
	silent          bool // neither this level nor its parents have any rules
}

// special are the names that decide about the ignore files of a directory.
var special = [...]string{sources[0], sources[1], sources[gitSource], ".git"}

// ignored judges a full path, which starts at the highest directory whose files count. It skips the
// sources before first.
func (l *level) ignored(full string, isDir bool, first int) bool {
	for source := first; source < len(sources); source++ {
		for at := l; at != nil; at = at.parent {
			if v := at.own[source].Match(full[at.skip:], isDir); v != Silent {
				return v == Ignored
			}
			if at.top && source == gitSource {
				break
			}
		}
	}
	at := l
	for !at.top {
		at = at.parent
	}
	if v := at.exclude.Match(full[at.skip:], isDir); v != Silent {
		return v == Ignored
	}
	return at.global.Match(full[at.skip:], isDir) == Ignored
}

// level returns the level of a directory inside l's. dir opens its files; abs is its absolute path,
// and skip the length of its full path with a slash. Files for which has is false are not there.
func (w *walker) level(l *level, dir int, abs string, skip int, has func(name string) bool) *level {
	next := &level{parent: l, skip: skip}
	found := l == nil
	if l == nil {
		next.top, next.global = true, w.user
	}
	for i, name := range sources {
		if !has(name) {
			continue
		}
		rules, err := rulesOf(openAt(dir, name, name))
		if err != nil {
			w.fault(filepath.Join(abs, name), err)
		}
		next.own[i] = rules
		found = found || !rules.empty()
	}
	if has(".git") && repo.HasLink(dir, "") {
		next.top, found = true, true
		exclude, override, err := repositoryRules(abs, w.o.Environ)
		w.fault("", err)
		next.exclude, next.global = exclude, w.user
		if override != nil {
			next.global = *override
		}
	}
	if !found {
		return l
	}
	next.silent = (l == nil || l.silent) && next.exclude.empty() && next.global.empty() &&
		!slices.ContainsFunc(next.own[:], func(own Rules) bool { return !own.empty() })
	return next
}

// rulesOf returns the rules of an ignore file that was opened. A missing file has none, and so has
// one that is not regular and could block.
func rulesOf(f *os.File, err error) (Rules, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, errNotRegular):
		return Rules{}, nil
	case err != nil:
		return Rules{}, err
	}
	defer f.Close()
	data, err := readWhole(f)
	if err != nil {
		return Rules{}, err
	}
	return ParseRules(data), nil
}

var errTooLarge = errors.New("an ignore file of more than 1 MiB is not read")

func readWhole(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, largestIgnoreFile+1))
	if err == nil && len(data) > largestIgnoreFile {
		err = errTooLarge
	}
	return data, err
}

// ancestors returns the directories from the highest one whose ignore files count for dir down to
// its parent: up to the top of dir's repository, otherwise up to top if dir lies below it.
func ancestors(o Options) []string {
	var above []string
	for at := o.Dir; ; at = filepath.Dir(at) {
		if at != o.Dir {
			above = append([]string{at}, above...)
		}
		if repo.HasLink(unix.AT_FDCWD, at) {
			return above
		}
		if at == filepath.Dir(at) || at == o.Bound {
			break
		}
	}
	for i, at := range above {
		if at == o.Top {
			return above[i:]
		}
	}
	return nil
}

// outset reads the ignore files that apply to the whole walk and returns the level of the root's
// parent, nil if nothing above counts. It sets prefix to the path of the root below the highest
// directory that counts, with a slash. Parents that cannot be opened have no rules.
func (w *walker) outset() (l *level) {
	var err error
	w.user, err = optionalRules(repo.UserExcludes(w.o.Environ))
	w.fault("", err)
	above := ancestors(w.o)
	if len(above) == 0 {
		return nil
	}
	base := strings.TrimSuffix(above[0], "/") + "/"
	w.prefix = w.o.Dir[len(base):] + "/"
	for _, at := range above {
		f, err := os.Open(at)
		if err != nil {
			w.fault("", err)
			continue
		}
		l = w.level(l, int(f.Fd()), at, len(strings.TrimSuffix(at, "/"))+1-len(base), anyName)
		f.Close()
	}
	return l
}
