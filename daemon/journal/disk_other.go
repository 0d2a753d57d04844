//go:build !linux

// What the journal asks of the kernel beside reading and writing.

package journal

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// syncData waits until the file's bytes are on the disk, whichever process wrote them.
func syncData(f *os.File) error { return f.Sync() }

// allocate returns the file blocks for its first size bytes.
func allocate(f *os.File, size int64) error { return writeNoise(f, size) }

// freeRoom is how many bytes this user may still write beside the path.
func freeRoom(path string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(filepath.Dir(path), &stat)
	return int64(stat.Bavail) * int64(stat.Bsize), err
}
