//go:build linux

// Doors that lead through a cache to the user's own. The directory outside of each door is such a cache: in a sandbox that has
// caches, it shows what is there, and gets nothing of what is written.

package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func caches(p *probe) {
	f, v := p.outside(scene.Caches), p.file
	appended := func(name string, path func() string) {
		f(name, func() error { return scribble(path(), unix.O_WRONLY|unix.O_APPEND) })
	}
	appended("write to a file of a cache", func() string { return v })
	f("create a file in a cache", func() error { return create(p.fresh) })
	f("remove a file of a cache", func() error { return os.Remove(v) })
	f("rename a file of a cache", func() error { return os.Rename(v, p.out+"/renamed") })
	f("chmod a file of a cache", func() error { return unix.Chmod(v, 0o640) })
	appended("write to a file of a cache by another name for a descriptor", func() string { return self(open(v, unix.O_RDONLY)) })
	appended("write by a link from a cache to the root", func() string {
		check(os.Link(v, p.own+"/linked"))
		return p.own + "/linked"
	})
	f("give a file of a cache an attribute of overlays", func() error {
		return unix.Setxattr(v, "user.overlay.redirect", []byte("/dir"), 0)
	})
	appended("write to a file of a cache through /proc/self/root", func() string { return "/proc/self/root" + v })
	appended("write to a file of a cache through its directory's descriptor", func() string {
		return self(open(p.out, unix.O_PATH|unix.O_DIRECTORY)) + "/victim"
	})
	f("write to a file of a cache by a hard link planted in the root", func() error { return scribble(p.planted, unix.O_WRONLY) })
}
