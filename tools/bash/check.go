// What only the present state can say against a command before anybody is asked. It runs nothing but a git that
// reads settings, and does not know what anybody answers.

package bash

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/shell"
)

// maxRepositories is how many directories a command may name before its repositories are not looked at one by one.
const maxRepositories = 8

// gitPatience is how long a git that only reads settings may take. Ours: it takes milliseconds, unless somebody has made it
// wait, for instance with a pipe among the settings.
const gitPatience = 5 * time.Second

// How much of what git prints is looked at, in bytes: the names of all settings, and a complaint of a few lines.
const (
	maxSettings  = 1 << 20
	maxComplaint = 4 << 10
)

// check asks about what the text of a command cannot say: whether a git that only reads would run a program that the
// repository's own settings name.
func check(ctx context.Context, env *tools.Env, in input) (tools.Preview, error) {
	if why := otherHome(env, in.analysis); why != "" {
		return tools.Preview{Ask: why}, nil
	}
	if !slices.ContainsFunc(in.analysis.Commands, readsGit) {
		return tools.Preview{}, nil
	}
	dirs := []string{env.Dir}
	for _, path := range effects(in).Reads {
		if path.By == 0 || !readsGit(in.analysis.Commands[path.By-1]) {
			continue
		}
		dir := path.Name
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(env.Dir, dir)
		}
		if isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) > maxRepositories {
		return tools.Preview{Ask: fmt.Sprintf("It reads git repositories in %d places.", len(dirs))}, nil
	}
	for _, dir := range dirs {
		if why := gitRuns(ctx, env, dir, in.analysis.ReadOnly); why != "" {
			return tools.Preview{Ask: why}, nil
		}
	}
	return tools.Preview{}, nil
}

// readsGit: a git that needs nobody's leave, as far as its words say.
func readsGit(c shell.Command) bool { return c.ReadOnly && filepath.Base(c.Name) == "git" }

// otherHome says that a command which goes by the home directory would meet another one than its effects were declared
// by, or another git configuration than the user's own: an earlier call has exported HOME. Empty: it would not.
func otherHome(env *tools.Env, a shell.Analysis) string {
	home, had := asMap(env.Environ)["HOME"]
	own := untilded("~")
	tilde := func(name string) bool { return untilded(name) != name }
	goes := slices.ContainsFunc(a.Reads, tilde) || slices.ContainsFunc(a.Writes, tilde) || a.ReadOnly && a.Git && had
	if home == own || !goes {
		return ""
	}
	return fmt.Sprintf("It goes by the home directory, which is %q in this session while that of the daemon's user is %s.", home, own)
}

// gitRuns says what makes a reading git run another program in the repository that dir is in; empty: nothing does.
// hardened: it runs as [shell.GitHardening] wants it, which it does not beside commands that do more than read.
func gitRuns(ctx context.Context, env *tools.Env, dir string, hardened bool) string {
	for _, top := range repositories(dir) {
		if why := repositoryRuns(ctx, env, top, hardened); why != "" {
			return why
		}
	}
	return ""
}

func repositoryRuns(ctx context.Context, env *tools.Env, top string, hardened bool) string {
	if _, err := os.Lstat(filepath.Join(top, ".gitmodules")); err == nil {
		return fmt.Sprintf("The git repository %s has submodules, whose settings may run programs.", top)
	}
	keys, err := gitSays(ctx, env, top, "config", "--local", "--includes", "--list", "--name-only", "-z")
	if err != nil {
		return fmt.Sprintf("The settings of the git repository %s cannot be read: %v.", top, err)
	}
	for _, key := range strings.Split(keys, "\x00") {
		if shell.GitKeyRuns(key) || !hardened && shell.GitKeyStopped(key) {
			return fmt.Sprintf("The git repository %s has the setting %s, which may run a program.", top, key)
		}
	}
	if hardened {
		return ""
	}
	hook, err := gitSays(ctx, env, top, "rev-parse", "--git-path", "hooks/post-index-change")
	if err != nil {
		return fmt.Sprintf("The hooks of the git repository %s cannot be found: %v.", top, err)
	}
	if hook = strings.TrimSuffix(hook, "\n"); !filepath.IsAbs(hook) {
		hook = filepath.Join(top, hook)
	}
	if _, err := os.Lstat(hook); err == nil {
		return fmt.Sprintf("The git repository %s has the hook %s, which may run whenever git reads it.", top, hook)
	}
	return ""
}

// repositories are the directories from dir upwards in which git may find the repository: those that may be one
// themselves, by their HEAD, up to the nearest that has a .git.
func repositories(dir string) (tops []string) {
	for ; ; dir = filepath.Dir(dir) {
		_, git := os.Lstat(filepath.Join(dir, ".git"))
		_, head := os.Lstat(filepath.Join(dir, "HEAD"))
		if git == nil || head == nil {
			tops = append(tops, dir)
		}
		if git == nil || dir == "/" {
			return tops
		}
	}
}

// gitSays gives what git prints of its settings, for which it runs nothing. It is not hardened: that would answer for
// some settings itself.
func gitSays(ctx context.Context, env *tools.Env, top string, args ...string) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", nil // then the command will not find it either
	}
	out, complaints := sandbox.Beginning{Most: maxSettings}, sandbox.Beginning{Most: maxComplaint}
	p, err := env.Box.Start(sandbox.Command{
		ID: env.CallID, Path: git, Args: append([]string{"git"}, args...),
		Dir: top, Env: env.Box.Environ(shell.ReadOnlyEnv(env.Environ, untilded("~"), env.Files.Roots())),
		Stdout: &out, Stderr: &complaints,
	})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	defer context.AfterFunc(ctx, p.Stop)()
	if exit := p.Wait(); exit.Stopped {
		return "", fmt.Errorf("git did not answer within %s", gitPatience)
	} else if exit.Code != 0 {
		return "", fmt.Errorf("git says: %s", strings.TrimSpace(complaints.String()))
	}
	if out.Cut {
		return "", fmt.Errorf("their names are more than %d bytes", maxSettings)
	}
	return out.String(), nil
}
