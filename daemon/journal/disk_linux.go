// What the journal asks of the kernel beside reading and writing.

package journal

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// syncData waits until the file's bytes and its length are on the disk,
// whichever process wrote them. Times and modes may not be, which spares a write.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// allocate returns the file blocks for its first size bytes.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return writeNoise(f, size)
	}
	return err
}

// freeRoom is how many bytes this user may still write beside the path.
func freeRoom(path string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(filepath.Dir(path), &stat)
	return int64(stat.Bavail) * stat.Bsize, err
}
