package sandbox

// Protected paths at which nothing stands. Nothing can be put on them to protect them, so what a process brings into being
// there is taken away afterwards.

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// takeAway moves what stands there now aside, so that nothing is lost and nobody finds it by its name, and says so. No link is
// followed on the way: a path that leads somewhere else now is none of those that were to be watched.
func (a absences) takeAway() (denials []Denial) {
	for _, path := range a {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
		dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), how)
		if err != nil {
			continue
		}
		name := fmt.Sprintf(".denied-%s-%x", filepath.Base(path), time.Now().UnixNano())
		err = unix.Renameat2(dir, filepath.Base(path), dir, name, unix.RENAME_NOREPLACE)
		_ = unix.Close(dir)
		if err == nil {
			denials = append(denials, Denial{Operation: Writing, Target: path, Count: 1, MovedTo: filepath.Join(filepath.Dir(path), name)})
		}
	}
	return denials
}
