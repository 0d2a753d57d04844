//go:build linux

// Doors beside what was opened for one call: a file of the machine's temporary directory that the call names, and a directory
// that an answer has opened.

package main

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func shownFiles() (made []door) {
	const sibling = scene.ShownSibling
	tries := map[string]func(dir string) error{
		"write to a file of the machine's /tmp that is shown": func(dir string) error { return scribble(dir+"/shown", unix.O_WRONLY) },
		"truncate a file of the machine's /tmp that is shown": func(dir string) error { return unix.Truncate(dir+"/shown", 0) },
		"remove a file of the machine's /tmp that is shown":   func(dir string) error { return unix.Unlink(dir + "/shown") },
		"rename over a file of the machine's /tmp that is shown": func(dir string) error {
			return errors.Join(scribble(dir+"/mine", unix.O_WRONLY|unix.O_CREAT), unix.Rename(dir+"/mine", dir+"/shown"))
		},
		"rename a file of the machine's /tmp that is shown": func(dir string) error { return unix.Rename(dir+"/shown", dir+"/moved") },
		"make a file beside one of the machine's /tmp that is shown": func(dir string) error {
			return scribble(dir+"/new", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		},
		"write to a file beside one of the machine's /tmp that is shown": func(dir string) error { return scribble(dir+sibling, unix.O_WRONLY) },
		"write by .. beside one of the machine's /tmp that is shown": func(dir string) error {
			return scribble(dir+"/shown-dir/.."+sibling, unix.O_WRONLY)
		},
	}
	for _, name := range scene.ShownDoors {
		made = append(made, plain("temporary", name, func(s *scene.Scene) error { return tries[name](filepath.Join(s.Shown, scene.Slug(name))) }))
	}
	const name = "read a file beside one of the machine's /tmp that is shown"
	return append(made, door{name, "temporary", false, func(s *scene.Scene) (string, error) {
		return read(s, filepath.Join(s.Shown, scene.Slug(scene.ShownDoors[0]))+sibling)
	}})
}

func openedDirectories() (made []door) {
	tries := map[string]func(*scene.Scene) error{
		"make a file beside a directory that was opened":  func(s *scene.Scene) error { return create(s, out(s, "new")) },
		"write to a file beside one that was opened":      func(s *scene.Scene) error { return scribble(out(s, victimFile), unix.O_WRONLY) },
		"rename a directory that was opened":              func(s *scene.Scene) error { return unix.Rename(out(s, victimDir), out(s, "moved")) },
		"move a file into a directory that was opened":    func(s *scene.Scene) error { return unix.Rename(out(s, victimFile), out(s, victimDir+"/in")) },
		"link a file into a directory that was opened":    func(s *scene.Scene) error { return unix.Link(out(s, victimFile), out(s, victimDir+"/in")) },
		"write by .. of a directory that was opened":      func(s *scene.Scene) error { return above(s) },
		"write by a descriptor of a directory and its ..": func(s *scene.Scene) error { return aboveDescriptor(s) },
	}
	for _, name := range scene.OpenedDoors {
		made = append(made, plain("opened", name, tries[name]))
	}
	return made
}

func above(s *scene.Scene) error {
	check(unix.Chdir(out(s, victimDir)))
	return scribble("../"+victimFile, unix.O_WRONLY)
}

func aboveDescriptor(s *scene.Scene) error {
	dir := must(unix.Open(out(s, victimDir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
	defer unix.Close(dir)
	return write(must(unix.Openat(dir, "../"+victimFile, unix.O_WRONLY|unix.O_CLOEXEC, 0)), "!")
}
