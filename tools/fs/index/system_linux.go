// What Linux knows of file systems, mappings and threads.

package index

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stampsTell reports whether the file system of an open file changes a file's times with every
// change. Local ones on a disk do. On tmpfs a mapping that was read first is written unnoticed;
// network file systems answer from a cache.
func stampsTell(fd int) bool {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return false
	}
	switch int64(s.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// mappedForWriting returns the inodes of the files that processes have mapped for writing, so that a
// change may leave the times as they are. Devices differ in what /proc shows and are not compared.
// Processes of other users that cannot be looked at are not included.
func mappedForWriting() (map[uint64]bool, error) {
	processes, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer processes.Close()
	names, err := processes.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	mapped := map[uint64]bool{}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if maps, err := os.Open("/proc/" + name + "/maps"); err == nil {
			for lines := bufio.NewScanner(maps); lines.Scan(); {
				if inode, ok := writable(lines.Bytes()); ok {
					mapped[inode] = true
				}
			}
			maps.Close()
		}
	}
	return mapped, nil
}

// writable returns the inode of a line of /proc/PID/maps, "00400000-00452000 rw-s 00000000 08:02
// 173521 /usr/file". ok is set if the mapping is shared and of a file. One that is not writable now
// may be made so.
func writable(line []byte) (inode uint64, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(string(fields[1]), "s") {
		return 0, false
	}
	inode, err := strconv.ParseUint(string(fields[4]), 10, 64)
	return inode, err == nil && inode != 0
}

// lowPriority has the thread run when no other wants to.
func lowPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) }
