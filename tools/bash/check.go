// What only the present state can say against a command before anybody is asked. It runs nothing but `git config`.

package bash

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/shell"
)

// maxRepositories is how many directories a command may name before its repositories are not looked at one by one.
const maxRepositories = 8

// check asks about what the text of a command cannot say: whether a git that only reads would run a program that the
// repository's own settings name.
func check(ctx context.Context, env *tools.Env, in input) (tools.Preview, error) {
	if in.Unconfined {
		return tools.Preview{Ask: "It asks to run outside the sandbox."}, nil
	}
	if !in.analysis.Git || !in.analysis.ReadOnly {
		return tools.Preview{}, nil
	}
	dirs := []string{env.Dir}
	for _, path := range effects(in).Reads {
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
		if why := gitRuns(ctx, env, dir); why != "" {
			return tools.Preview{Ask: why}, nil
		}
	}
	return tools.Preview{}, nil
}

// gitRuns says what makes a reading git run another program in the repository that dir is in; empty: nothing does.
func gitRuns(ctx context.Context, env *tools.Env, dir string) string {
	top := repository(dir)
	if top == "" {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(top, ".gitmodules")); err == nil {
		return fmt.Sprintf("The git repository %s has submodules, whose settings may run programs.", top)
	}
	keys, err := configKeys(ctx, env, top)
	if err != nil {
		return fmt.Sprintf("The settings of the git repository %s cannot be read: %v.", top, err)
	}
	for _, key := range keys {
		if shell.GitKeyRuns(key) {
			return fmt.Sprintf("The git repository %s has the setting %s, which may run a program.", top, key)
		}
	}
	return ""
}

// repository is the nearest directory from dir upwards that has a .git; empty: none.
func repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// configKeys lists the names of the repository's own settings; git reads them and runs nothing for it.
func configKeys(ctx context.Context, env *tools.Env, top string) ([]string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, nil // then the command will not find it either
	}
	var out, complaints bytes.Buffer
	p, err := env.Runner.Start(sandbox.Command{
		ID: env.CallID, Path: git, Args: []string{"git", "config", "--local", "--includes", "--list", "--name-only", "-z"},
		Dir: top, Env: sandbox.Environ(shell.ReadOnlyEnv(env.Environ, env.Files.Roots()), shell.GitHardening()...),
		Stdout: &out, Stderr: &complaints,
	})
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, p.Stop)()
	if exit := p.Wait(); exit.Code != 0 {
		return nil, fmt.Errorf("git says: %s", strings.TrimSpace(complaints.String()))
	}
	return strings.Split(out.String(), "\x00"), nil
}
