// Directories for temporary files that a session has of its own, under the names that programs know: what /tmp is for its
// calls lies elsewhere on the disk. It does not know how processes come to see them there.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/pathname"
)

// A Temporary is a directory for temporary files. Both paths are absolute and clean.
type Temporary struct {
	Name string // by which calls know it, such as /tmp
	Dir  string // the real path of what stands there; Name itself: what the machine has there
}

// Own reports whether the directory is the session's own and not the machine's.
func (t Temporary) Own() bool { return t.Dir != t.Name }

// Disk returns where the path lies on the disk that calls know as path, which is absolute and clean and has no links in
// it. That is another path only below the name of a Temporary. There the path stands for the file in the session's own
// directory, unless an opened place holds it or only the machine has it: the side on which more of the path exists counts,
// and the session's own where both have as much.
func (w *Workspace) Disk(path string) string {
	for _, t := range w.temporary {
		if w.machine || !t.Own() || !pathname.Within(t.Name, path) {
			continue
		}
		rest := path[len(t.Name):]
		if _, opened := deepest(w.opened, path); opened || depth(t.Dir, rest) < depth(t.Name, rest) {
			return path
		}
		return t.Dir + rest
	}
	return path
}

// Seen returns the name by which calls know what lies at the real path: it reverses Disk.
func (w *Workspace) Seen(real string) string {
	for _, t := range w.temporary {
		if pathname.Within(t.Dir, real) {
			return t.Name + real[len(t.Dir):]
		}
	}
	return real
}

// Temporary returns the directories for temporary files. The list belongs to the caller.
func (w *Workspace) Temporary() []Temporary { return slices.Clone(w.temporary) }

// Machine returns the workspace as a process sees it that runs outside of the sandbox: each name is the machine's.
func (w *Workspace) Machine() *Workspace {
	other := *w
	other.machine = true
	return &other
}

// depth counts how many components of rest, which is empty or begins with a slash, exist in dir. Links are not followed.
func depth(dir, rest string) (found int) {
	for at := 0; at < len(rest); found++ {
		end := strings.IndexByte(rest[at+1:], '/') + at + 1
		if end == at {
			end = len(rest)
		}
		info, err := os.Lstat(dir + rest[:end])
		if err != nil || isMountPoint(info) {
			return found
		}
		if at = end; !info.IsDir() {
			return found + 1
		}
	}
	return found
}

// isMountPoint reports whether an entry of a session's own directory is there only so that the sandbox can show something
// of the machine's in its place. The sandbox package makes them with the mode that is looked for here.
func isMountPoint(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeSticky|fs.ModePerm) == fs.ModeSticky
}

// MakeMountPoint makes what the sandbox needs so that it can show the file or directory at path under the name rel in a
// session's own directory. What exists there stays as it is; so it does when nothing is at path.
func MakeMountPoint(dir *os.Root, rel, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to show
	}
	if info.IsDir() {
		return dir.MkdirAll(rel, 0o755)
	}
	if err := dir.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	f, err := dir.OpenFile(rel, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(fs.ModeSticky), f.Close())
}
