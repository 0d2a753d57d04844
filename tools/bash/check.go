// The check of a command against the present state, before a question is asked. It runs only git,
// to read its configuration, and bash, to parse the command.

package bash

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/repo"
)

// maxRepositories is how many directories a command may name before its repositories are no longer
// examined one by one. maxSubmodules is how many repositories are examined in all, including
// submodules. The numbers are our own: each takes some ms.
const (
	maxRepositories = 8
	maxSubmodules   = 32
)

// gitPatience is how long a git that only reads its configuration may take. The number is our own:
// it takes milliseconds, unless a user makes it wait, for instance with a pipe as a configuration
// file.
const gitPatience = 5 * time.Second

// Limits of git's output in bytes: the whole configuration, and an error message of a few lines.
const (
	maxSettings  = 4 << 20
	maxComplaint = 4 << 10
)

// check finds what the text of a command does not show: whether a git that only reads would run a
// program from the repository's own configuration, and which commands depend on a variable of the
// session.
func check(ctx context.Context, env *tools.Env, in input) (tools.Preview, error) {
	if in.Restart {
		return tools.Preview{}, nil
	}
	if err := checkSyntax(ctx, env, in); err != nil {
		return tools.Preview{}, err
	}
	if why := otherHome(env, in.analysis); why != "" {
		return tools.Preview{Ask: why}, nil
	}
	found := steered(env, in)
	for i, c := range in.analysis.Commands {
		if c.ReadOnly && c.Alias != "" && !gitLacks(ctx, env, c.Alias) {
			found[shell.Outermost(in.analysis.Commands, i)] = fmt.Sprintf("git may have a command %s of its own, beside the alias", c.Alias)
		}
	}
	return tools.Preview{Ask: gitAsks(ctx, env, in), Steered: found}, nil
}

// gitLacks reports whether git has no command of that name, neither its own nor on PATH.
func gitLacks(ctx context.Context, env *tools.Env, name string) bool {
	look := &gitLook{env: env}
	text, err := look.ask(ctx, env.Dir, nil, "--list-cmds=builtins,main,others")
	return err == nil && text != "" && !slices.Contains(strings.Fields(text), name)
}

// steered returns the commands that do not count as read-only because of the session's variables,
// for [tools.Preview].
func steered(env *tools.Env, in input) map[int]string {
	own := asMap(os.Environ())
	same := func(name, value string) bool {
		mine, had := own[name]
		return had && mine == value
	}
	set := asMap(env.Environ)
	if maps.DeleteFunc(set, same); len(set) == 0 {
		return map[int]string{} // without the policy, which decides what reaches the shell and is made when it starts
	}
	set = variables(env, in)
	maps.DeleteFunc(set, same)
	found := in.analysis.Steered(set)
	for i, name := range found {
		found[i] = fmt.Sprintf("it depends on the variable %s, which is %.100q in this session and differs from the daemon's own",
			name, set[name])
	}
	return found
}

// gitAsks returns why a git that only reads needs a question; empty: it does not.
func gitAsks(ctx context.Context, env *tools.Env, in input) string {
	if !slices.ContainsFunc(in.analysis.Commands, readsGit) {
		return ""
	}
	dirs := []string{env.Files.Leads(env.Dir)}
	for _, c := range in.analysis.Commands {
		for _, dir := range c.Dirs {
			if dir = untilded(dir); !filepath.IsAbs(dir) {
				dir = filepath.Join(env.Dir, dir)
			}
			if readsGit(c) && !looked(env, dir) {
				return fmt.Sprintf("It reads the git repository in %s, whose settings cannot be read.", dir)
			}
		}
	}
	for _, path := range effects(in).Reads {
		if path.By == 0 || !readsGit(in.analysis.Commands[path.By-1]) {
			continue
		}
		dir := path.Name
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(env.Dir, dir)
		}
		if dir = env.Files.Leads(dir); isDir(env.Files.Disk(dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) > maxRepositories {
		return fmt.Sprintf("It reads git repositories in %d places.", len(dirs))
	}
	look := &gitLook{env: env, fetches: !in.analysis.ReadOnly}
	for _, dir := range dirs {
		for _, top := range repo.Tops(dir, env.Files.Disk) {
			if why := look.at(ctx, top); why != "" {
				return why
			}
		}
	}
	return ""
}

// looked reports whether the daemon and a command see the same at a directory. Outside the roots
// that is not certain.
func looked(env *tools.Env, dir string) bool {
	real, err := filepath.EvalSymlinks(env.Files.Disk(dir))
	return dir == env.Dir || err == nil && isDir(real) && env.Files.MayWorkIn(real)
}

// readsGit reports whether the command is a git that its text shows to be read-only.
func readsGit(c shell.Command) bool { return c.ReadOnly && filepath.Base(c.Name) == "git" }

// otherHome returns why a command that uses the home directory would use another one than its
// effects: an earlier call has exported HOME. Empty: it would not.
func otherHome(env *tools.Env, a shell.Analysis) string {
	home, own := asMap(env.Environ)["HOME"], untilded("~")
	tilde := func(name string) bool { return untilded(name) != name }
	goes := slices.ContainsFunc(a.Reads, tilde) || slices.ContainsFunc(a.Writes, tilde)
	if home == own || !goes {
		return ""
	}
	return fmt.Sprintf("It uses the home directory, which is %q in this session but %s for the daemon's user.", home, own)
}

// A gitLook searches repositories, and the submodules that git may enter from there, for what makes
// a reading git run another program.
type gitLook struct {
	env     *tools.Env
	fetches bool     // it does not run with [shell.GitReads], so it may fetch
	seen    []string // the directories that were examined
}

// at returns what makes git run another program in the repository at top; empty: nothing.
func (l *gitLook) at(ctx context.Context, top string) string {
	if slices.Contains(l.seen, top) {
		return ""
	}
	if l.seen = append(l.seen, top); len(l.seen) > maxSubmodules {
		return fmt.Sprintf("It may read more than %d git repositories, those of submodules included.", maxSubmodules)
	}
	if why := l.runs(ctx, top); why != "" {
		return why
	}
	modules, err := l.submodules(ctx, top)
	if err != nil {
		return fmt.Sprintf("The submodules of the git repository %s cannot be listed: %v.", top, err)
	}
	for _, dir := range modules {
		if why := l.at(ctx, dir); why != "" {
			return why
		}
	}
	return ""
}

// runs returns the setting or hook of the repository at top itself that may run a program. A
// setting counts in every scope below the user's own: the repository's, the worktree's, and
// included files.
func (l *gitLook) runs(ctx context.Context, top string) string {
	settings, err := l.settings(ctx, top)
	if err != nil {
		return fmt.Sprintf("The settings of the git repository %s cannot be read: %v.", top, err)
	}
	hooks := ""
	for _, s := range settings {
		own := s.scope == "system" || s.scope == "global" || s.scope == "command"
		runs := shell.GitKeyRuns(s.key, s.value) || l.fetches && shell.GitKeyFetches(s.key)
		if runs && !own || shell.GitReadsMore(s.key, s.value) {
			return fmt.Sprintf("The git repository %s has the setting %s, which may run a program.", top, s.key)
		}
		if s.key == "core.hookspath" {
			hooks = untilded(s.value)
		}
	}
	if hook := hookIn(l.env, top, hooks); hook != "" {
		return fmt.Sprintf("The git repository %s has the hook %s, which may run whenever git reads it.", top, hook)
	}
	return ""
}

// hookIn returns the hook of the repository at top that runs when git refreshes its index; empty:
// none. hooks is core.hooksPath.
func hookIn(env *tools.Env, top, hooks string) string {
	r, _ := repo.Discover(env.Files.Disk(top))
	r.Top = top
	hook := r.Hook(hooks, "post-index-change")
	if _, err := os.Lstat(env.Files.Disk(hook)); err != nil {
		return ""
	}
	return hook
}
