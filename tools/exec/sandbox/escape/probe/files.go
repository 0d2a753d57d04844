//go:build linux

// Doors that change what files hold, and which files there are, outside of the roots. The suite compares each door's
// directory outside with what it was.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func files(p *probe) {
	f, v, n := p.outside("files"), p.file, p.fresh
	f("append to a file outside", func() error { return scribble(v, unix.O_WRONLY|unix.O_APPEND) })
	f("overwrite a file outside", func() error { return scribble(v, unix.O_RDWR) })
	f("open a file outside with O_TRUNC", func() error { return scribble(v, unix.O_WRONLY|unix.O_TRUNC) })
	f("open a file outside with O_TRUNC for reading", func() error {
		return unix.Close(open(v, unix.O_RDONLY|unix.O_TRUNC))
	})
	f("create a file outside", func() error { return create(n) })
	f("creat a file outside", func() error { return unix.Close(must(unix.Creat(n, 0o644))) })
	f("openat2 a file outside for writing", func() error {
		return write(must(unix.Openat2(cwd, v, &unix.OpenHow{Flags: unix.O_WRONLY})), "!")
	})
	f("name an O_TMPFILE outside", func() error {
		fd := must(unix.Open(p.out, unix.O_TMPFILE|unix.O_RDWR, 0o644))
		return unix.Linkat(cwd, self(fd), cwd, n, unix.AT_SYMLINK_FOLLOW)
	})
	f("write a file outside through a shared mapping", func() error {
		b := must(unix.Mmap(open(v, unix.O_RDWR), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
		b[0] = '!'
		return unix.Msync(b, unix.MS_SYNC)
	})
	f("truncate a file outside by its path", func() error { return unix.Truncate(v, 1) })
	f("truncate a file outside by a descriptor", func() error { return unix.Ftruncate(open(v, unix.O_WRONLY), 1) })
	f("fallocate a file outside", func() error { return unix.Fallocate(open(v, unix.O_WRONLY), 0, 0, 8192) })
	f("rename a file inside over one outside", func() error { return unix.Rename(p.ownFile, v) })
	f("rename a file outside over one inside", func() error { return unix.Rename(v, p.ownFile) })
	f("rename a file outside", func() error { return unix.Rename(v, n) })
	f("rename a directory outside", func() error { return unix.Rename(p.dir, n) })
	f("exchange a file inside with one outside", func() error { return exchange(p.ownFile, v) })
	f("rename a file outside with RENAME_NOREPLACE", func() error {
		return unix.Renameat2(cwd, v, cwd, n, unix.RENAME_NOREPLACE)
	})
	f("link a file inside to a name outside", func() error { return unix.Link(p.ownFile, n) })
	f("link a file outside to a name outside", func() error { return unix.Link(v, n) })
	f("link a file outside into the root", func() error { return unix.Link(v, p.own+"/stolen") })
	f("link a file outside by its descriptor", func() error { // into the root, where it may be written
		return unix.Linkat(cwd, self(open(v, unix.O_RDONLY)), cwd, p.own+"/stolen", unix.AT_SYMLINK_FOLLOW)
	})
	f("symlink outside", func() error { return unix.Symlink("/nowhere", n) })
	f("unlink a file outside", func() error { return unix.Unlink(v) })
	f("mkdir outside", func() error { return unix.Mkdir(n, 0o755) })
	f("rmdir outside", func() error { return unix.Rmdir(p.dir) })
	f("mkfifo outside", func() error { return unix.Mkfifo(n, 0o644) })
	f("mknod a file outside", func() error { return unix.Mknod(n, unix.S_IFREG|0o644, 0) })
	f("mknod a socket outside", func() error { return unix.Mknod(n, unix.S_IFSOCK|0o644, 0) })
	f("change into a directory outside and write", func() error {
		check(unix.Chdir(p.out))
		return scribble("new", unix.O_WRONLY|unix.O_CREAT)
	})
	f("write through .. of the root", func() error {
		return scribble(must(filepath.Rel(p.own, n)), unix.O_WRONLY|unix.O_CREAT)
	})
	f("open a file outside by its handle", func() error { return write(p.byHandle(v, unix.O_WRONLY), "!") })
}

func exchange(a, b string) error { return unix.Renameat2(cwd, a, cwd, b, unix.RENAME_EXCHANGE) }

// byHandle opens a file by its handle. Any file of the same mount leads to it.
func (p *probe) byHandle(path string, flags int) int {
	h, _, err := unix.NameToHandleAt(cwd, path, 0)
	check(err)
	return must(unix.OpenByHandleAt(open(p.own, unix.O_RDONLY|unix.O_DIRECTORY), h, flags))
}

// ways are the detours by which a path that looks harmless leads outside.
func ways(p *probe) {
	f, v := p.outside("ways"), p.file
	through := func(name, path string) {
		f(name, func() error { return scribble(path, unix.O_WRONLY) })
	}
	below := fmt.Sprintf("/%s/%s", filepath.Base(p.out), filepath.Base(v))
	through("write outside through /proc/self/root", "/proc/self/root"+v)
	through("write outside through /proc/PID/root of a process outside", proc(p.Victim.PID, "root"+v))
	through("write outside through /proc/PID/root of the starter", proc(p.Starter.PID, "root"+v))
	through("write outside through /proc/1/root", "/proc/1/root"+v)
	through("write outside through /proc/PID/cwd of a process outside", proc(p.Victim.PID, "cwd"+below))
	through("write outside through /proc/PID/fd of a process outside", proc(p.Victim.PID, fmt.Sprintf("fd/%d%s", p.Victim.Directory, below)))
	f("open a read-only descriptor again for writing", func() error { return scribble(self(open(v, unix.O_RDONLY)), unix.O_WRONLY) })
	f("open an O_PATH descriptor again for writing", func() error { return scribble(self(open(v, unix.O_PATH)), unix.O_WRONLY) })
	through("write through a hard link planted in the root", p.planted)
	f("chmod through a hard link planted in the root", func() error { return unix.Chmod(p.planted, 0o600) })
	through("write through a symlink in the root", p.way+"/victim")
	f("create through a dangling symlink in the root", func() error { return scribble(p.dangling, unix.O_WRONLY|unix.O_CREAT) })
	f("rename through a symlink in the root", func() error { return unix.Rename(p.ownFile, p.way+"/new") })
	f("swap a directory for a symlink while writing", p.race)
}

// race writes into a directory that is by turns a link to the outside, until it has met it often enough as another than before.
func (p *probe) race() (last error) {
	const often, most = 50, 20_000
	var turns atomic.Int64
	stop := exchanging(func() {
		_ = exchange(p.swapped, p.way)
		turns.Add(1)
	})
	tries := 0
	for met, turn := 0, int64(0); met < often && tries < most; tries++ {
		if err := scribble(p.swapped+"/new", unix.O_WRONLY|unix.O_CREAT); err != nil {
			last = err
		}
		if now := turns.Load(); now != turn {
			met, turn = met+1, now
		}
	}
	stop()
	if _, err := os.Lstat(p.fresh); err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%d tries, none got out", tries), last)
}
