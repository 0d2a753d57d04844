//go:build linux

// Doors that change what files hold, and which files there are, outside of the roots. The suite compares each door's
// directory outside with what it was.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// What the suite has laid into a door's directory outside, and inside.
const (
	victimFile = "victim"   // outside
	victimDir  = "dir"      // outside, empty
	ownFile    = "own"      // inside
	planted    = "planted"  // inside: a hard link to victimFile
	wayOut     = "way"      // inside: a symbolic link to the directory outside
	dangling   = "dangling" // inside: a symbolic link to "new" outside, which does not exist
	swapped    = "swapped"  // inside: an empty directory
)

func out(s *scene.Scene, name string) string { return filepath.Join(s.Out, name) }
func own(s *scene.Scene, name string) string { return filepath.Join(s.Own, name) }

// plain makes a door of a call that either does it or gives an error.
func plain(group, name string, try func(*scene.Scene) error) door {
	return door{name, group, true, func(s *scene.Scene) (string, error) {
		check(try(s))
		return "done", nil
	}}
}

// scribble opens with flags and, if that goes, writes one byte.
func scribble(path string, flags int) error { return writeTo(path, flags, "!") }

func files() []door {
	f := func(name string, try func(*scene.Scene) error) door { return plain("files", name, try) }
	v := func(s *scene.Scene) string { return out(s, victimFile) }
	n := func(s *scene.Scene) string { return out(s, "new") }
	return []door{
		f("append to a file outside", func(s *scene.Scene) error { return scribble(v(s), unix.O_WRONLY|unix.O_APPEND) }),
		f("overwrite a file outside", func(s *scene.Scene) error { return scribble(v(s), unix.O_RDWR) }),
		f("open a file outside with O_TRUNC", func(s *scene.Scene) error { return scribble(v(s), unix.O_WRONLY|unix.O_TRUNC) }),
		f("open a file outside with O_TRUNC for reading", func(s *scene.Scene) error {
			fd, err := unix.Open(v(s), unix.O_RDONLY|unix.O_TRUNC, 0)
			unix.Close(fd)
			return err
		}),
		f("create a file outside", func(s *scene.Scene) error { return scribble(n(s), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }),
		f("creat a file outside", func(s *scene.Scene) error { _, err := unix.Creat(n(s), 0o644); return err }),
		f("openat2 a file outside for writing", func(s *scene.Scene) error {
			return write(must(unix.Openat2(unix.AT_FDCWD, v(s), &unix.OpenHow{Flags: unix.O_WRONLY})), "!")
		}),
		f("name an O_TMPFILE outside", unnamed),
		f("write a file outside through a shared mapping", mapped),
		f("truncate a file outside by its path", func(s *scene.Scene) error { return unix.Truncate(v(s), 1) }),
		f("truncate a file outside by a descriptor", func(s *scene.Scene) error {
			return unix.Ftruncate(must(unix.Open(v(s), unix.O_WRONLY, 0)), 1)
		}),
		f("fallocate a file outside", func(s *scene.Scene) error {
			return unix.Fallocate(must(unix.Open(v(s), unix.O_WRONLY, 0)), 0, 0, 8192)
		}),
		f("rename a file inside over one outside", func(s *scene.Scene) error { return unix.Rename(own(s, ownFile), v(s)) }),
		f("rename a file outside over one inside", func(s *scene.Scene) error { return unix.Rename(v(s), own(s, ownFile)) }),
		f("rename a file outside", func(s *scene.Scene) error { return unix.Rename(v(s), n(s)) }),
		f("rename a directory outside", func(s *scene.Scene) error { return unix.Rename(out(s, victimDir), n(s)) }),
		f("exchange a file inside with one outside", func(s *scene.Scene) error {
			return unix.Renameat2(unix.AT_FDCWD, own(s, ownFile), unix.AT_FDCWD, v(s), unix.RENAME_EXCHANGE)
		}),
		f("rename a file outside with RENAME_NOREPLACE", func(s *scene.Scene) error {
			return unix.Renameat2(unix.AT_FDCWD, v(s), unix.AT_FDCWD, n(s), unix.RENAME_NOREPLACE)
		}),
		f("link a file inside to a name outside", func(s *scene.Scene) error { return unix.Link(own(s, ownFile), n(s)) }),
		f("link a file outside to a name outside", func(s *scene.Scene) error { return unix.Link(v(s), n(s)) }),
		f("link a file outside into the root", func(s *scene.Scene) error { return unix.Link(v(s), own(s, "stolen")) }),
		f("link a file outside by its descriptor", linkDescriptor),
		f("symlink outside", func(s *scene.Scene) error { return unix.Symlink("/nowhere", n(s)) }),
		f("unlink a file outside", func(s *scene.Scene) error { return unix.Unlink(v(s)) }),
		f("mkdir outside", func(s *scene.Scene) error { return unix.Mkdir(n(s), 0o755) }),
		f("rmdir outside", func(s *scene.Scene) error { return unix.Rmdir(out(s, victimDir)) }),
		f("mkfifo outside", func(s *scene.Scene) error { return unix.Mkfifo(n(s), 0o644) }),
		f("mknod a file outside", func(s *scene.Scene) error { return unix.Mknod(n(s), unix.S_IFREG|0o644, 0) }),
		f("mknod a socket outside", func(s *scene.Scene) error { return unix.Mknod(n(s), unix.S_IFSOCK|0o644, 0) }),
		f("change into a directory outside and write", func(s *scene.Scene) error {
			check(unix.Chdir(s.Out))
			return scribble("new", unix.O_WRONLY|unix.O_CREAT)
		}),
		f("write through .. of the root", func(s *scene.Scene) error {
			up, err := filepath.Rel(s.Own, n(s))
			return errors.Join(err, scribble(up, unix.O_WRONLY|unix.O_CREAT))
		}),
		f("open a file outside by its handle", byHandle),
	}
}

// linkDescriptor takes a file that is open for reading into the root, where it may be written.
func linkDescriptor(s *scene.Scene) error {
	fd := must(unix.Open(out(s, victimFile), unix.O_RDONLY, 0))
	from := fmt.Sprintf("/proc/self/fd/%d", fd)
	return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, own(s, "stolen"), unix.AT_SYMLINK_FOLLOW)
}

func unnamed(s *scene.Scene) error {
	fd := must(unix.Open(s.Out, unix.O_TMPFILE|unix.O_RDWR, 0o644))
	from := fmt.Sprintf("/proc/self/fd/%d", fd)
	return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, out(s, "new"), unix.AT_SYMLINK_FOLLOW)
}

func mapped(s *scene.Scene) error {
	fd := must(unix.Open(out(s, victimFile), unix.O_RDWR, 0))
	b := must(unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	b[0] = '!'
	return unix.Msync(b, unix.MS_SYNC)
}

func byHandle(s *scene.Scene) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, out(s, victimFile), 0)
	check(err)
	dir := must(unix.Open(s.Own, unix.O_RDONLY|unix.O_DIRECTORY, 0)) // any file of the same mount will do
	return write(must(unix.OpenByHandleAt(dir, h, unix.O_WRONLY)), "!")
}

// ways are the detours by which a path that looks harmless leads outside.
func ways() []door {
	f := func(name string, try func(*scene.Scene) error) door { return plain("ways", name, try) }
	through := func(format string, number func(*scene.Scene) int) func(*scene.Scene) error {
		return func(s *scene.Scene) error {
			return scribble(fmt.Sprintf(format, number(s))+out(s, victimFile), unix.O_WRONLY)
		}
	}
	pid := func(s *scene.Scene) int { return s.Victim.PID }
	return []door{
		f("write outside through /proc/self/root", func(s *scene.Scene) error {
			return scribble("/proc/self/root"+out(s, victimFile), unix.O_WRONLY)
		}),
		f("write outside through /proc/PID/root of a process outside", through("/proc/%d/root", pid)),
		f("write outside through /proc/PID/root of the starter", through("/proc/%d/root", func(s *scene.Scene) int { return s.Starter.PID })),
		f("write outside through /proc/1/root", through("/proc/%d/root", func(*scene.Scene) int { return 1 })),
		f("write outside through /proc/PID/cwd of a process outside", func(s *scene.Scene) error {
			return scribble(fmt.Sprintf("/proc/%d/cwd/%s/%s", s.Victim.PID, filepath.Base(s.Out), victimFile), unix.O_WRONLY)
		}),
		f("write outside through /proc/PID/fd of a process outside", func(s *scene.Scene) error {
			dir := fmt.Sprintf("/proc/%d/fd/%d", s.Victim.PID, s.Victim.Directory)
			return scribble(filepath.Join(dir, filepath.Base(s.Out), victimFile), unix.O_WRONLY)
		}),
		f("open a read-only descriptor again for writing", func(s *scene.Scene) error {
			fd := must(unix.Open(out(s, victimFile), unix.O_RDONLY, 0))
			return scribble(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
		}),
		f("open an O_PATH descriptor again for writing", func(s *scene.Scene) error {
			fd := must(unix.Open(out(s, victimFile), unix.O_PATH, 0))
			return scribble(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
		}),
		f("write through a hard link planted in the root", func(s *scene.Scene) error { return scribble(own(s, planted), unix.O_WRONLY) }),
		f("chmod through a hard link planted in the root", func(s *scene.Scene) error { return unix.Chmod(own(s, planted), 0o600) }),
		f("write through a symlink in the root", func(s *scene.Scene) error {
			return scribble(own(s, wayOut+"/"+victimFile), unix.O_WRONLY)
		}),
		f("create through a dangling symlink in the root", func(s *scene.Scene) error {
			return scribble(own(s, dangling), unix.O_WRONLY|unix.O_CREAT)
		}),
		f("rename through a symlink in the root", func(s *scene.Scene) error {
			return unix.Rename(own(s, ownFile), own(s, wayOut+"/new"))
		}),
		f("swap a directory for a symlink while writing", race),
	}
}

// race writes into a directory that is by turns a link to the outside, until it has met it often enough as another than before.
func race(s *scene.Scene) error {
	const often, most = 50, 20_000
	var wg sync.WaitGroup
	var turns atomic.Int64
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, own(s, swapped), unix.AT_FDCWD, own(s, wayOut), unix.RENAME_EXCHANGE)
				turns.Add(1)
			}
		}
	})
	var last error
	tries := 0
	for met, turn := 0, int64(0); met < often && tries < most; tries++ {
		if err := scribble(own(s, swapped+"/new"), unix.O_WRONLY|unix.O_CREAT); err != nil {
			last = err
		}
		if now := turns.Load(); now != turn {
			met, turn = met+1, now
		}
	}
	close(stop)
	wg.Wait()
	if _, err := os.Lstat(out(s, "new")); err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%d tries, none got out", tries), last)
}
