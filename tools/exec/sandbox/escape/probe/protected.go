//go:build linux

// Doors to paths in the roots that decide what other programs run: git's hooks, settings of editors and of the daemon.
// Some of them do not exist yet. The suite looks at each path when all is over: what was taken away again was shut.

package main

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// guarded adds a door to a path that the suite must find as it was.
func (p *probe) guarded(name, path string, try func(path string) error) {
	p.add(scene.Result{Group: "protected", Outside: true, Guards: path})(name, func() error { return try(path) })
}

func protected(p *probe) {
	f := func(name, path string, try func(path string) error) { p.guarded(name, p.Root+"/"+path, try) }
	prepared := p.own + "/prepared"
	f("append to .git/config", ".git/config", func(path string) error { return scribble(path, unix.O_WRONLY|unix.O_APPEND) })
	f("create .git/hooks/pre-commit", ".git/hooks/pre-commit", create)
	f("create .git/hooks/commit-msg through a symlink", ".git/hooks/commit-msg", func(path string) error {
		check(unix.Symlink(filepath.Dir(path), p.own+"/hooks"))
		return create(p.own + "/hooks/" + filepath.Base(path))
	})
	f("link .git/hooks/post-commit", ".git/hooks/post-commit", func(path string) error { return unix.Link(p.ownFile, path) })
	f("rename into .git/hooks/post-merge", ".git/hooks/post-merge", p.onto)
	f("chmod a hook that exists", ".git/hooks/pre-push", func(path string) error { return unix.Chmod(path, 0o700) })
	f("unlink .gitmodules", ".gitmodules", unix.Unlink)
	f("create .mcp.json", ".mcp.json", create)
	f("rename a prepared directory to .claude", ".claude", func(path string) error {
		check(settings(prepared))
		return unix.Rename(prepared, path)
	})
	f("mkdir .vscode with settings.json", ".vscode", settings)
	f("symlink .envrc", ".envrc", func(path string) error { return unix.Symlink("/etc/hostname", path) })
	f("mkdir .toold with settings.json", ".toold", settings)
	f("exchange a prepared directory with .idea", ".idea", func(path string) error {
		check(settings(prepared))
		return exchange(prepared, path)
	})
	p.guarded("create .git with a hook where there is none", p.Bare+"/.git", func(path string) error {
		check(os.MkdirAll(path+"/hooks", 0o755))
		return create(path + "/hooks/pre-commit")
	})
	p.guarded("link a prepared file to .mcp.json where there is none", p.Bare+"/.mcp.json", func(path string) error {
		check(create(p.Bare + "/prepared"))
		return unix.Link(p.Bare+"/prepared", path)
	})
	away := func(name, from, to string) { // and back: in between, another could have been there
		p.inside("protected")(name, func() error {
			check(unix.Rename(from, to))
			p.then(unix.Rename(to, from))
			return nil
		})
	}
	away("rename .git away", p.Root+"/.git", p.Root+"/git")
	away("rename .git/hooks away", p.Root+"/.git/hooks", p.Root+"/.git/hooks.old")
	away("rename the root away", p.Root, p.Root+".old")
}

// gitFiles are doors to what leads git to programs, besides the configuration and the hooks of .git itself.
func gitFiles(p *probe) {
	const program, module = "[core]\n\tfsmonitor = ./probe\n", ".git/modules/third_party/foo/"
	f := func(name, path string, try func(path string) error) { p.guarded(name, p.Root+"/"+path, try) }
	appended := func(path string) error { return writeTo(path, unix.O_WRONLY|unix.O_APPEND, program) }
	made := func(path, text string) {
		check(os.MkdirAll(filepath.Dir(path), 0o755))
		check(writeTo(path, unix.O_WRONLY|unix.O_CREAT, text))
	}
	repository := func(path string) error {
		dir := filepath.Dir(path)
		check(errors.Join(os.MkdirAll(dir+"/objects", 0o755), os.MkdirAll(dir+"/refs", 0o755)))
		made(dir+"/HEAD", "ref: refs/heads/main\n")
		made(path, program)
		return nil
	}
	f("create .git/commondir", ".git/commondir", create)
	f("rename onto the .git file of a linked worktree", "linked/.git", p.onto)
	f("rename onto the commondir of another worktree", ".git/worktrees/w/commondir", p.onto)
	f("rename onto the .git file of a submodule", "third_party/foo/.git", p.onto)
	f("append to the configuration of a submodule", module+"config", appended)
	f("create a hook of a submodule", module+"hooks/pre-commit", create)
	f("append to the configuration of a submodule of a submodule", module+"modules/inner/config", appended)
	f("create the first hook of a submodule of a submodule", module+"modules/inner/hooks", func(path string) error {
		check(unix.Mkdir(path, 0o755))
		return create(path + "/pre-commit")
	})
	f("create a hook below core.hooksPath", ".githooks/pre-commit", create)
	f("append a program to the configuration of a bare repository", "deep/er/bare.git/config", appended)
	f("make a bare repository whose configuration runs a program", "trap/config", repository)
	f("make a .git file that leads to another repository", "sub/.git", func(path string) error {
		made(path, "gitdir: ../deep/er/bare.git\n")
		return nil
	})
	f("make a module whose configuration runs a program", ".git/modules/trap/config", repository)
}

// onto renames a file of the door's own onto a path.
func (p *probe) onto(path string) error { return unix.Rename(p.ownFile, path) }

// settings makes a directory with settings in it.
func settings(dir string) error {
	check(unix.Mkdir(dir, 0o755))
	return create(dir + "/settings.json")
}
