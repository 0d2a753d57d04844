// Judges a file that is not there, such as one that an editor has not saved yet, as a walk would if it were. It reads no
// directory.

package walk

import (
	"io/fs"
	"os"
	"strings"
)

// Missing reports whether Files would visit a regular file at path, below root and with slashes, if there were one; Visit
// is not called. left counts what leaves it out: the file, or the highest directory on the way to it that is not there.
// What leaves out a directory that is there is counted by Files.
func Missing(root *os.Root, o Options, path string) (taken bool, left Tally) {
	user, _ := readUserRules(o.Environ) // Files tells what cannot be read
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

// leave counts an entry that choose does not take.
func (t *Tally) leave(choice Choice, path string, isDir bool) {
	switch choice {
	case Deny:
		t.deny(isDir)
	case ignoredChoice:
		t.ignore(path, isDir)
	}
}

// Add counts what another tally of the same tree has left out.
func (t *Tally) Add(left Tally) {
	t.IgnoredFiles += left.IgnoredFiles
	t.IgnoredDirs += left.IgnoredDirs
	t.DeniedFiles += left.DeniedFiles
	t.DeniedDirs += left.DeniedDirs
	for _, path := range left.Ignored {
		t.name(path)
	}
}
