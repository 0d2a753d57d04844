// What only the kernel can tell, on macOS. It does not know what was granted. Not tested.

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// isMadeUp: there is no procfs.
func isMadeUp(*os.File) bool { return false }

// isMagic: nor are there its links.
func isMagic(string) bool { return false }

// liesAt reports that f is the file at the real path, and that no link leads there.
func liesAt(f *os.File, real string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(real)
	if err != nil || !os.SameFile(here, there) {
		return false
	}
	resolved, err := filepath.EvalSymlinks(real)
	return err == nil && resolved == real
}

// stateFile returns an open file that holds data and has no name.
func stateFile(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "buffer")
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(data, 0)
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reserve does nothing: what does not fit is found out while it is written, and then put back.
func reserve(*os.File, int64, int64) error { return nil }

func changeTime(s *syscall.Stat_t) time.Time { return time.Unix(s.Ctimespec.Unix()) }

// idOf returns which file f is.
func idOf(f *os.File) FileID {
	info, err := f.Stat()
	if err != nil {
		return FileID{}
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return born(uint64(s.Dev), s.Ino, time.Unix(s.Birthtimespec.Unix()))
}
