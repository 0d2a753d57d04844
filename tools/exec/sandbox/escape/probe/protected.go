//go:build linux

// Doors to paths in the roots that decide what other programs run: git's hooks, settings of editors and of the daemon.
// Some of them do not exist yet. The suite looks at each path when all is over: what was taken away again was shut.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func protected() []door {
	return append(protectedFiles(), gitFiles()...)
}

// gitFiles are doors to what leads git to programs, besides the configuration and the hooks of .git itself.
func gitFiles() []door {
	const program = "[core]\n\tfsmonitor = ./probe\n"
	var doors []door
	add := func(name string, try func(s *scene.Scene, path string) error) {
		doors = append(doors, plain("protected", name, func(s *scene.Scene) error { return try(s, guarded(s, name)) }))
	}
	onto := func(s *scene.Scene, path string) error { return unix.Rename(own(s, ownFile), path) }
	appended := func(_ *scene.Scene, path string) error { return writeTo(path, unix.O_WRONLY|unix.O_APPEND, program) }
	repository := func(_ *scene.Scene, path string) error {
		dir := filepath.Dir(path)
		return errors.Join(os.MkdirAll(dir+"/objects", 0o755), os.MkdirAll(dir+"/refs", 0o755),
			writeTo(dir+"/HEAD", unix.O_WRONLY|unix.O_CREAT, "ref: refs/heads/main\n"), writeTo(path, unix.O_WRONLY|unix.O_CREAT, program))
	}
	add("create .git/commondir", create)
	add("rename onto the .git file of a linked worktree", onto)
	add("rename onto the commondir of another worktree", onto)
	add("rename onto the .git file of a submodule", onto)
	add("append to the configuration of a submodule", appended)
	add("create a hook of a submodule", create)
	add("append to the configuration of a submodule of a submodule", appended)
	add("create the first hook of a submodule of a submodule", func(s *scene.Scene, path string) error {
		return errors.Join(unix.Mkdir(path, 0o755), create(s, path+"/pre-commit"))
	})
	add("create a hook below core.hooksPath", create)
	add("append a program to the configuration of a bare repository", appended)
	add("make a bare repository whose configuration runs a program", repository)
	add("make a .git file that leads to another repository", func(_ *scene.Scene, path string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), writeTo(path, unix.O_WRONLY|unix.O_CREAT, "gitdir: ../deep/er/bare.git\n"))
	})
	add("make a module whose configuration runs a program", repository)
	return doors
}

func writeTo(path string, flags int, text string) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return write(fd, text)
}

func write(fd int, text string) error {
	_, err := unix.Write(fd, []byte(text))
	return err
}

func protectedFiles() []door {
	f := func(name string, try func(s *scene.Scene, path string) error) door {
		return plain("protected", name, func(s *scene.Scene) error { return try(s, guarded(s, name)) })
	}
	return []door{
		f("append to .git/config", func(_ *scene.Scene, p string) error { return scribble(p, unix.O_WRONLY|unix.O_APPEND) }),
		f("create .git/hooks/pre-commit", create),
		f("create .git/hooks/commit-msg through a symlink", func(s *scene.Scene, p string) error {
			check(unix.Symlink(filepath.Dir(p), own(s, "hooks")))
			return create(s, own(s, "hooks/"+filepath.Base(p)))
		}),
		f("link .git/hooks/post-commit", func(s *scene.Scene, p string) error { return unix.Link(own(s, ownFile), p) }),
		f("rename into .git/hooks/post-merge", func(s *scene.Scene, p string) error { return unix.Rename(own(s, ownFile), p) }),
		f("chmod a hook that exists", func(_ *scene.Scene, p string) error { return unix.Chmod(p, 0o700) }),
		f("unlink .gitmodules", func(_ *scene.Scene, p string) error { return unix.Unlink(p) }),
		f("create .mcp.json", create),
		f("rename a prepared directory to .claude", func(s *scene.Scene, p string) error {
			return errors.Join(settings(own(s, "prepared")), unix.Rename(own(s, "prepared"), p))
		}),
		f("mkdir .vscode with settings.json", func(_ *scene.Scene, p string) error { return settings(p) }),
		f("symlink .envrc", func(_ *scene.Scene, p string) error { return unix.Symlink("/etc/hostname", p) }),
		f("mkdir .toold with settings.json", func(_ *scene.Scene, p string) error { return settings(p) }),
		f("exchange a prepared directory with .idea", func(s *scene.Scene, p string) error {
			check(settings(own(s, "prepared")))
			return unix.Renameat2(unix.AT_FDCWD, own(s, "prepared"), unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
		}),
		f("create .git with a hook where there is none", func(s *scene.Scene, p string) error {
			check(os.MkdirAll(filepath.Join(p, "hooks"), 0o755))
			return create(s, filepath.Join(p, "hooks/pre-commit"))
		}),
		f("link a prepared file to .mcp.json where there is none", func(s *scene.Scene, p string) error {
			made := filepath.Join(s.Bare, "prepared")
			return errors.Join(create(s, made), unix.Link(made, p))
		}),
		{"rename .git away", "protected", false, func(s *scene.Scene) (string, error) { return away(s.Root+"/.git", s.Root+"/git") }},
		{"rename .git/hooks away", "protected", false, func(s *scene.Scene) (string, error) {
			return away(s.Root+"/.git/hooks", s.Root+"/.git/hooks.old")
		}},
		{"rename the root away", "protected", false, func(s *scene.Scene) (string, error) { return away(s.Root, s.Root+".old") }},
	}
}

func guarded(s *scene.Scene, door string) string {
	path, ok := scene.Guarded[door]
	if !ok {
		panic("BUG: no guarded path for " + door)
	}
	if bare, ok := strings.CutPrefix(path, "bare:"); ok {
		return filepath.Join(s.Bare, bare)
	}
	return filepath.Join(s.Root, path)
}

func create(_ *scene.Scene, path string) error {
	return scribble(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
}

// settings makes a directory with settings in it.
func settings(dir string) error {
	check(unix.Mkdir(dir, 0o755))
	return create(nil, filepath.Join(dir, "settings.json"))
}

// away moves a directory and puts it back: in between, another could have been there.
func away(from, to string) (string, error) {
	check(unix.Rename(from, to))
	if err := unix.Rename(to, from); err != nil {
		return "moved, and not put back", nil
	}
	return "moved, and put back", nil
}
