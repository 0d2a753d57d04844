// The judgement of a file that does not exist, such as one that an editor has not saved yet, as if
// a walk had found it.

package walk

import (
	"io/fs"
	"os"
	"strings"

	"github.com/toold/toold/tools/fs/index"
)

// Missing reports whether Files would visit a regular file at path, below root and with slashes, if
// it existed; Visit is not called. left counts what leaves it out: the file, or the highest missing
// directory on the way to it. If an existing directory is left out, Files counts it.
func Missing(root *os.Root, o Options, path string) (taken bool, left Tally) {
	w := &walker{o: o} // Files reports errors
	l := w.outset()
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
			l = w.level(l, dir.fd, strings.TrimSuffix(o.Dir+"/"+below, "/"), len(w.prefix)+len(below), anyName)
			if more {
				next = dir.child(name)
				if next.open() != nil {
					next.drop()
					next = nil
				}
			}
			dir.drop()
		}
		if choice := w.chooser(below, l)(name, kind); choice != Take {
			if next == nil {
				left.leave(choice, below, index.Entry{Name: name, Type: kind})
			} else {
				next.drop()
			}
			return false, left
		}
		dir, below = next, below+name+"/"
	}
	return true, left
}
