// The judgement of a file that does not exist, such as one that an editor has not saved yet, as if
// a walk had found it.

package walk

import (
	"io/fs"
	"os"
	"strings"
)

// Missing reports whether Files would visit a regular file at path, below root and with slashes, if
// it existed; Visit is not called. left counts what leaves it out: the file, or the highest missing
// directory on the way to it. If an existing directory is left out, Files counts it.
func Missing(root *os.Root, o Options, path string) (taken bool, left Tally) {
	user, _ := readUserRules(o.Environ) // Files reports errors
	w := &walker{o: o, user: user}
	l, prefix, _ := outset(o, user)
	w.prefix = prefix
	dir, err := openRoot(root)
	if err != nil {
		return false, left
	}
	below := ""
	for more := true; more; {
		var name string
		var next *openDir
		name, path, more = strings.Cut(path, "/")
		kind := fs.FileMode(0)
		if more {
			kind = fs.ModeDir
		}
		if dir != nil {
			l, _ = l.below(dir.fd, strings.TrimSuffix(o.Dir+"/"+below, "/"), len(prefix)+len(below), user)
			if more {
				next, _ = dir.open(name)
			}
			dir.drop()
		}
		choice := w.choose(below+name, l, kind)
		if choice != Take {
			if next == nil {
				left.leave(choice, below+name, more)
			} else {
				next.drop()
			}
			return false, left
		}
		dir, below = next, below+name+"/"
	}
	return true, left
}

// leave counts an entry that was not taken.
func (t *Tally) leave(choice Choice, path string, isDir bool) {
	switch choice {
	case Deny:
		t.deny(isDir)
	case ignoredChoice:
		t.ignore(path, isDir)
	}
}

// Add adds what another tally of the same tree has left out.
func (t *Tally) Add(left Tally) {
	t.IgnoredFiles += left.IgnoredFiles
	t.IgnoredDirs += left.IgnoredDirs
	t.DeniedFiles += left.DeniedFiles
	t.DeniedDirs += left.DeniedDirs
	for _, path := range left.Ignored {
		t.name(path)
	}
}
