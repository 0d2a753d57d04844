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
)

// told judges what was read.
func (p *probe) told(b []byte, err error) error {
	if p.Told(b) {
		return p.did(nil, "the secret was read")
	}
	if err != nil {
		return err
	}
	return errors.New("what was read is not the secret")
}

// toldBy judges what read puts into b.
func (p *probe) toldBy(read func(b []byte) (int, error)) error {
	b := make([]byte, 1024)
	n, err := read(b)
	return p.told(b[:max(n, 0)], err)
}

// toldFrom judges what is read from a descriptor.
func (p *probe) toldFrom(fd int) error {
	return p.toldBy(func(b []byte) (int, error) { return unix.Read(fd, b) })
}

func (p *probe) read(path string) error { return p.told(os.ReadFile(path)) }

func hidden(p *probe) {
	f, path, dir := p.inside("hidden"), p.HiddenInside, filepath.Dir(p.HiddenInside)
	reads := func(name, path string) { f(name, func() error { return p.read(path) }) }
	lent := ".." + strings.TrimPrefix(p.Lent, filepath.Dir(p.Outputs))
	reads("read a hidden file in the root", path)
	reads("read a hidden file outside", p.HiddenOutside)
	reads("read a credential in the home directory", p.Credential)
	reads("read the daemon's token", p.Token)
	reads("read a file of the daemon's state directory", p.State)
	reads("read what another session has kept of a cache", p.Kept)
	reads("read an output of another session", p.Lent)
	reads("read an output of another session by .. of its own", p.Outputs+"/"+lent)
	f("read an output of another session by a directory of its own", func() error {
		return p.toldFrom(must(unix.Openat(open(p.Outputs, unix.O_RDONLY|unix.O_DIRECTORY), lent, unix.O_RDONLY|unix.O_CLOEXEC, 0)))
	})
	f("write into the daemon's state directory", func() error {
		return scribble(filepath.Join(filepath.Dir(p.State), "new"), unix.O_WRONLY|unix.O_CREAT)
	})
	f("list the daemon's socket directory", func() error {
		names, err := os.ReadDir(p.Sockets)
		if err == nil && len(names) == 0 {
			err = errors.New("it looks empty")
		}
		return p.did(err, "%d names", len(names))
	})
	f("find the daemon's secret in the environment", func() error { return p.told([]byte(strings.Join(os.Environ(), "\n")), nil) })
	reads("read a hidden file by a hard link planted in the root", p.HiddenPlanted)
	f("link a hidden file to another name and read that", func() error {
		check(unix.Link(path, p.own+"/linked"))
		return p.read(p.own + "/linked")
	})
	f("rename a hidden file and read it", func() error { return p.moved(path) })
	f("rename the directory of a hidden file and read it", func() error { return p.moved(dir) })
	f("read a hidden file through a symlink", func() error {
		check(unix.Symlink(path, p.own+"/link"))
		return p.read(p.own + "/link")
	})
	reads("read a hidden file through /proc/self/root", "/proc/self/root"+path)
	reads("read a hidden file through /proc/PID/root of a process outside", proc(p.Victim.PID, "root"+path))
	reads("read a hidden file through /proc/PID/root of the starter", proc(p.Starter.PID, "root"+path))
	f("read a hidden file through /proc/self/fd of an O_PATH descriptor", func() error { return p.read(self(open(path, unix.O_PATH))) })
	f("read a hidden file in a mapping", func() error {
		fd := open(path, unix.O_RDONLY)
		size := must(unix.Seek(fd, 0, unix.SEEK_END))
		return p.told(unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE))
	})
	f("read a hidden file by its handle", func() error { return p.toldFrom(p.byHandle(path, unix.O_RDONLY)) })
	reads("read a hidden file through another spelling of its path", dir+"/.//../"+filepath.Base(dir)+"//./"+filepath.Base(path))
	f("unmount what hides a file, and read it", func() error { // nothing may be there to be unmounted
		check(errors.Join(unix.Unmount(path, unix.MNT_DETACH), unix.Unmount(dir, unix.MNT_DETACH)))
		return p.read(path)
	})
	f("find a hidden file's content in a block device", p.rawDisk)
}

// moved renames from, which is the hidden file or above it, reads the file where it is then, and puts all back.
func (p *probe) moved(from string) error {
	to := from + ".moved"
	check(unix.Rename(from, to))
	return errors.Join(p.read(to+strings.TrimPrefix(p.HiddenInside, from)), unix.Rename(to, from))
}

// rawDisk reads a sector of the disk that holds the hidden file: who can do that can read all of it.
func (p *probe) rawDisk() error {
	var st unix.Stat_t
	check(unix.Stat(filepath.Dir(p.HiddenInside), &st))
	link := must(os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))))
	f := must(os.Open("/dev/" + filepath.Base(link)))
	b := make([]byte, 512)
	must(f.Read(b))
	return p.did(nil, "a sector of %s was read, %d bytes of it not zero", f.Name(), len(b)-bytes.Count(b, []byte{0}))
}
