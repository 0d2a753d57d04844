// Package gitdir names the parts of a git directory through which git comes to run programs. It
// compares names only: it does not know what is on the disk, nor where git directories are.
package gitdir

import (
	"slices"

	"github.com/toold/toold/tools/fs/pathname"
)

// running are those parts: settings, hooks, attributes, remotes of old that settings do not name,
// and what leads a linked worktree elsewhere. Everyday git changes only config. Source:
// gitrepository-layout(5).
var running = []string{
	"config", "config.worktree", "hooks", "info/attributes", "remotes", "branches",
	"commondir", "gitdir",
}

// Running returns, relative to a git directory, the paths that make git run a program or lead it to
// one.
func Running() []string { return slices.Clone(running) }

// Runs reports whether a path relative to a git directory is one of those, or lies in one.
func Runs(rest string) bool { return pathname.WithinAny(running, rest) }
