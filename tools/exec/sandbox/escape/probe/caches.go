//go:build linux

// Doors that lead through a cache to the user's own. The directory outside of each door is such a cache.

package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func caches() (made []door) {
	tries := map[string]func(*scene.Scene) error{
		"write to a file of a cache": func(s *scene.Scene) error { return scribble(out(s, victimFile), unix.O_WRONLY|unix.O_APPEND) },
		"create a file in a cache":   func(s *scene.Scene) error { return create(s, out(s, "new")) },
		"remove a file of a cache":   func(s *scene.Scene) error { return os.Remove(out(s, victimFile)) },
		"rename a file of a cache":   func(s *scene.Scene) error { return os.Rename(out(s, victimFile), out(s, "renamed")) },
		"chmod a file of a cache":    func(s *scene.Scene) error { return unix.Chmod(out(s, victimFile), 0o640) },
		"write to a file of a cache by another name for a descriptor": func(s *scene.Scene) error {
			fd := must(unix.Open(out(s, victimFile), unix.O_RDONLY|unix.O_CLOEXEC, 0))
			defer unix.Close(fd)
			return scribble(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), unix.O_WRONLY|unix.O_APPEND)
		},
		"write by a link from a cache to the root": func(s *scene.Scene) error {
			return errors.Join(os.Link(out(s, victimFile), own(s, "linked")), scribble(own(s, "linked"), unix.O_WRONLY|unix.O_APPEND))
		},
		"write to a file of a cache through /proc/self/root": func(s *scene.Scene) error {
			return scribble("/proc/self/root"+out(s, victimFile), unix.O_WRONLY|unix.O_APPEND)
		},
		"write to a file of a cache through its directory's descriptor": func(s *scene.Scene) error {
			dir := must(unix.Open(s.Out, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
			return scribble(fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), dir, victimFile), unix.O_WRONLY|unix.O_APPEND)
		},
		"write to a file of a cache by a hard link planted in the root": func(s *scene.Scene) error { return scribble(own(s, planted), unix.O_WRONLY) },
		"give a file of a cache an attribute of overlays": func(s *scene.Scene) error {
			return unix.Setxattr(out(s, victimFile), "user.overlay.redirect", []byte("/"+victimDir), 0)
		},
	}
	for _, name := range scene.Caches {
		made = append(made, plain("caches", name, tries[name]))
	}
	return made
}
