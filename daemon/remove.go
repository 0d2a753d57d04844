// Removing what programs of calls have made: directories in it may be ones that their owner cannot change.

package daemon

import (
	"io/fs"
	"os"
)

// removeTree removes what is at the path, with all that is in it. A directory that its owner may not change does not keep it; Go's
// module cache consists of those. Nothing outside of it is touched.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, openErr := os.OpenRoot(path)
	if openErr != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = root.Chmod(name, 0o700) // it is called before what is in the directory is read
		}
		return nil
	})
	return os.RemoveAll(path)
}
