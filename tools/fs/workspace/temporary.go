// A session's own directories for temporary files. Calls use the usual names, such as /tmp, and the
// files are elsewhere on the disk. The sandbox shows them to processes.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Temporary is a directory for temporary files. Both paths are absolute and clean.
type Temporary struct {
	Name string // the path that calls use, such as /tmp
	Dir  string // the real path of the directory; equal to Name if it is the machine's
}

// Own reports whether the directory is the session's own rather than the machine's.
func (t Temporary) Own() bool { return t.Dir != t.Name }

// Disk returns the location on the disk of a path that calls use. The path must be absolute and
// clean, without links. The result differs only below the Name of a Temporary. There it is the file
// in the session's own directory, unless an opened place holds the path or only the machine has the
// file. The side on which more components of the path exist wins; the session's own wins a tie.
func (w *Workspace) Disk(path string) string {
	for _, t := range w.temporary {
		if w.machine || !t.Own() || !pathname.Within(t.Name, path) {
			continue
		}
		rest := path[len(t.Name):]
		if pathname.Deepest(w.opened, path) != "" || depth(t.Dir, rest) < depth(t.Name, rest) {
			return path
		}
		return t.Dir + rest
	}
	return path
}

// Seen returns the name that calls use for a real path: the reverse of Disk.
func (w *Workspace) Seen(real string) string {
	for _, t := range w.temporary {
		if pathname.Within(t.Dir, real) {
			return t.Name + real[len(t.Dir):]
		}
	}
	return real
}

// Temporary returns the directories for temporary files. The caller may modify the slice.
func (w *Workspace) Temporary() []Temporary { return slices.Clone(w.temporary) }

// Machine returns the workspace as a process outside the sandbox sees it: each name is the
// machine's.
func (w *Workspace) Machine() *Workspace {
	other := *w
	other.machine = true
	return &other
}

// depth counts how many components of rest, which is empty or begins with a slash, exist in dir.
// Links are not followed.
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

// isMountPoint reports whether an entry of a session's own directory is only a mount point of the
// sandbox. The sandbox package makes them with the mode that is checked here.
func isMountPoint(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeSticky|fs.ModePerm) == fs.ModeSticky
}

// MakeMountPoint makes the mount point for the file or directory at path, under the name rel in a
// session's own directory. An existing entry stays unchanged. If nothing is at path, MakeMountPoint
// does nothing.
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
