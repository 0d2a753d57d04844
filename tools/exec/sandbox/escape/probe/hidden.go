//go:build linux

// Doors to what must not be read: files that rules hide, credentials, the daemon's own. A door is open when the secret has
// been seen, and by nothing less.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

var errNoSecret = errors.New("what was read is not the secret")

// told judges what was read.
func told(s *scene.Scene, b []byte, err error) (string, error) {
	if s.Told(b) {
		return "the secret was read", nil
	}
	if err != nil {
		return "", err
	}
	return "", errNoSecret
}

// toldBy judges what read puts into b.
func toldBy(s *scene.Scene, read func(b []byte) (int, error)) (string, error) {
	b := make([]byte, 1024)
	n, err := read(b)
	return told(s, b[:max(n, 0)], err)
}

func read(s *scene.Scene, path string) (string, error) {
	b, err := os.ReadFile(path)
	return told(s, b, err)
}

func hidden() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "hidden", false, try}
	}
	in := func(name string, try func(s *scene.Scene, path string) (string, error)) door {
		return f(name, func(s *scene.Scene) (string, error) { return try(s, s.HiddenInside) })
	}
	return []door{
		in("read a hidden file in the root", read),
		f("read a hidden file outside", func(s *scene.Scene) (string, error) { return read(s, s.HiddenOutside) }),
		f("read a credential in the home directory", func(s *scene.Scene) (string, error) { return read(s, s.Credential) }),
		f("read the daemon's token", func(s *scene.Scene) (string, error) { return read(s, s.Token) }),
		f("read a file of the daemon's state directory", func(s *scene.Scene) (string, error) { return read(s, s.State) }),
		f("read what another session has kept of a cache", func(s *scene.Scene) (string, error) { return read(s, s.Kept) }),
		f("read an output of another session", func(s *scene.Scene) (string, error) { return read(s, s.Lent) }),
		f("read an output of another session by .. of its own", func(s *scene.Scene) (string, error) {
			return read(s, s.Outputs+"/../"+filepath.Base(filepath.Dir(s.Lent))+"/"+filepath.Base(s.Lent))
		}),
		f("read an output of another session by a directory of its own", func(s *scene.Scene) (string, error) {
			dir := must(unix.Open(s.Outputs, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
			fd := must(unix.Openat(dir, "../"+filepath.Base(filepath.Dir(s.Lent))+"/"+filepath.Base(s.Lent), unix.O_RDONLY|unix.O_CLOEXEC, 0))
			return toldBy(s, func(b []byte) (int, error) { return unix.Read(fd, b) })
		}),
		f("write into the daemon's state directory", func(s *scene.Scene) (string, error) {
			return "written", scribble(filepath.Join(filepath.Dir(s.State), "new"), unix.O_WRONLY|unix.O_CREAT)
		}),
		f("list the daemon's socket directory", func(s *scene.Scene) (string, error) {
			names, err := os.ReadDir(s.Sockets)
			if err == nil && len(names) == 0 {
				err = errors.New("it looks empty")
			}
			return fmt.Sprintf("%d names", len(names)), err
		}),
		f("find the daemon's secret in the environment", func(s *scene.Scene) (string, error) {
			return told(s, []byte(strings.Join(os.Environ(), "\n")), nil)
		}),
		f("read a hidden file by a hard link planted in the root", func(s *scene.Scene) (string, error) { return read(s, s.HiddenPlanted) }),
		in("link a hidden file to another name and read that", func(s *scene.Scene, p string) (string, error) {
			return firstThenRead(s, unix.Link(p, own(s, "linked")), own(s, "linked"))
		}),
		in("rename a hidden file and read it", func(s *scene.Scene, p string) (string, error) {
			return moved(s, p, p)
		}),
		in("rename the directory of a hidden file and read it", func(s *scene.Scene, p string) (string, error) {
			return moved(s, filepath.Dir(p), p)
		}),
		in("read a hidden file through a symlink", func(s *scene.Scene, p string) (string, error) {
			return firstThenRead(s, unix.Symlink(p, own(s, "link")), own(s, "link"))
		}),
		in("read a hidden file through /proc/self/root", func(s *scene.Scene, p string) (string, error) { return read(s, "/proc/self/root"+p) }),
		in("read a hidden file through /proc/PID/root of a process outside", func(s *scene.Scene, p string) (string, error) {
			return read(s, fmt.Sprintf("/proc/%d/root%s", s.Victim.PID, p))
		}),
		in("read a hidden file through /proc/PID/root of the starter", func(s *scene.Scene, p string) (string, error) {
			return read(s, fmt.Sprintf("/proc/%d/root%s", s.Starter.PID, p))
		}),
		in("read a hidden file through /proc/self/fd of an O_PATH descriptor", func(s *scene.Scene, p string) (string, error) {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			return firstThenRead(s, err, fmt.Sprintf("/proc/self/fd/%d", fd))
		}),
		in("read a hidden file in a mapping", mapAndRead),
		in("read a hidden file by its handle", handleAndRead),
		in("read a hidden file through another spelling of its path", func(s *scene.Scene, p string) (string, error) {
			return read(s, filepath.Dir(p)+"/.//../"+filepath.Base(filepath.Dir(p))+"//./"+filepath.Base(p))
		}),
		in("unmount what hides a file, and read it", func(s *scene.Scene, p string) (string, error) {
			err := errors.Join(unix.Unmount(p, unix.MNT_DETACH), unix.Unmount(filepath.Dir(p), unix.MNT_DETACH))
			if err != nil { // nothing was there to be unmounted, or it was not allowed
				return "", err
			}
			return read(s, p)
		}),
		in("find a hidden file's content in a block device", rawDisk),
	}
}

func firstThenRead(s *scene.Scene, err error, path string) (string, error) {
	if err != nil {
		return "", err
	}
	return read(s, path)
}

// moved renames from, which is file or above it, reads file where it is then, and puts all back.
func moved(s *scene.Scene, from, file string) (string, error) {
	to := from + ".moved"
	check(unix.Rename(from, to))
	detail, err := read(s, to+strings.TrimPrefix(file, from))
	return detail, errors.Join(err, unix.Rename(to, from))
}

func mapAndRead(s *scene.Scene, path string) (string, error) {
	fd := must(unix.Open(path, unix.O_RDONLY, 0))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size == 0 {
		return "", errors.Join(err, errNoSecret)
	}
	b, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	return told(s, b, err)
}

func handleAndRead(s *scene.Scene, path string) (string, error) {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	check(err)
	dir := must(unix.Open(s.Own, unix.O_RDONLY|unix.O_DIRECTORY, 0))
	return toldBy(s, func(b []byte) (int, error) { return unix.Read(must(unix.OpenByHandleAt(dir, h, unix.O_RDONLY)), b) })
}

// rawDisk reads a sector of the disk that holds the file: who can do that can read all of it.
func rawDisk(_ *scene.Scene, path string) (string, error) {
	var st unix.Stat_t
	check(unix.Stat(filepath.Dir(path), &st))
	link := must(os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))))
	f := must(os.Open("/dev/" + filepath.Base(link)))
	b := make([]byte, 512)
	must(f.Read(b))
	return fmt.Sprintf("a sector of %s was read, %d bytes of it not zero", f.Name(), len(b)-bytes.Count(b, []byte{0})), nil
}
