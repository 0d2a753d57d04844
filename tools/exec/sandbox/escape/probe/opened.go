//go:build linux

// Doors beside what was opened for one call: a file of the machine's temporary directory that the call names, and a directory
// that an answer has opened.

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func shownFiles(p *probe) {
	f, dir := p.outside(scene.Temporary), filepath.Join(p.Shown, scene.Slug(p.name))
	shown, sibling := dir+"/shown", dir+scene.ShownSibling
	f("write to a file of the machine's /tmp that is shown", func() error { return scribble(shown, unix.O_WRONLY) })
	f("truncate a file of the machine's /tmp that is shown", func() error { return unix.Truncate(shown, 0) })
	f("remove a file of the machine's /tmp that is shown", func() error { return unix.Unlink(shown) })
	f("rename over a file of the machine's /tmp that is shown", func() error {
		check(scribble(dir+"/mine", unix.O_WRONLY|unix.O_CREAT))
		return unix.Rename(dir+"/mine", shown)
	})
	f("rename a file of the machine's /tmp that is shown", func() error { return unix.Rename(shown, dir+"/moved") })
	f("make a file beside one of the machine's /tmp that is shown", func() error { return create(dir + "/new") })
	f("write to a file beside one of the machine's /tmp that is shown", func() error { return scribble(sibling, unix.O_WRONLY) })
	f("write by .. beside one of the machine's /tmp that is shown", func() error {
		return scribble(dir+"/shown-dir/.."+scene.ShownSibling, unix.O_WRONLY)
	})
	p.inside(scene.Temporary)("read a file beside one of the machine's /tmp that is shown", func() error { return p.read(sibling) })
}

func openedDirectories(p *probe) {
	f, v := p.outside(scene.Opened), p.file
	f("make a file beside a directory that was opened", func() error { return create(p.fresh) })
	f("write to a file beside one that was opened", func() error { return scribble(v, unix.O_WRONLY) })
	f("rename a directory that was opened", func() error { return unix.Rename(p.dir, p.out+"/moved") })
	f("move a file into a directory that was opened", func() error { return unix.Rename(v, p.dir+"/in") })
	f("link a file into a directory that was opened", func() error { return unix.Link(v, p.dir+"/in") })
	f("write by .. of a directory that was opened", func() error {
		check(unix.Chdir(p.dir))
		return scribble("../victim", unix.O_WRONLY)
	})
	f("write by a descriptor of a directory and its ..", func() error {
		return write(must(unix.Openat(open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY), "../victim", unix.O_WRONLY, 0)), "!")
	})
}
