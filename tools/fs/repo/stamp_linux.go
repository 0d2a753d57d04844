package repo

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	stat, _ := info.Sys().(*syscall.Stat_t) // os.Lstat always has one
	return stamp{file: identity{stat.Dev, stat.Ino}, changed: uint64(stat.Ctim.Nano())}
}
