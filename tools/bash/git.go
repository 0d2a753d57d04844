// Queries to the git program for the check. Configuration comes from git itself and not from
// tools/fs/repo, since only git decides which conditional includes and scopes apply to the call's
// environment, and since the index is in git's own format. git runs in the sandbox and starts
// nothing that the repository names.

package bash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/repo"
)

// A gitSetting is one value of one key of git's configuration.
type gitSetting struct{ scope, key, value string }

// settings returns git's configuration in dir, of all scopes and included files.
func (l *gitLook) settings(ctx context.Context, dir string) (all []gitSetting, err error) {
	text, err := l.ask(ctx, dir, nil, "config", "--list", "--show-scope", "--includes", "-z")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(text, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		all = append(all, gitSetting{scope: fields[i], key: key, value: value})
	}
	return all, nil
}

// submodules returns the directories at which the index of dir's repository has a submodule that is
// checked out. git enters those, whatever .gitmodules contains.
func (l *gitLook) submodules(ctx context.Context, dir string) (dirs []string, err error) {
	links := &gitlinks{most: maxSettings}
	_, err = l.ask(ctx, dir, links, "ls-files", "--stage", "--full-name", "-z", "--", ":/")
	if err != nil || len(links.paths) == 0 {
		return nil, err
	}
	top, err := l.ask(ctx, dir, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	for _, path := range links.paths {
		path = filepath.Join(strings.TrimSuffix(top, "\n"), path)
		if repo.HasLink(unix.AT_FDCWD, l.env.Files.Disk(path)) {
			dirs = append(dirs, path)
		}
	}
	return dirs, nil
}

// ask runs git in dir. It returns the output, or writes it to to if that is not nil.
func (l *gitLook) ask(ctx context.Context, dir string, to io.Writer, args ...string) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", nil // the command will not find it either
	}
	out, complaints := sandbox.Beginning{Most: maxSettings}, sandbox.Beginning{Most: maxComplaint}
	var set []string
	if to == nil {
		to = &out // for configuration, without hardening: that would override some settings
	} else {
		set = shell.GitHardening()
	}
	exit, err := query(ctx, l.env, sandbox.Command{
		Path: git, Args: append([]string{"git"}, args...), Dir: dir, Stdout: to, Stderr: &complaints,
		Env: l.env.Box.Environ(slices.DeleteFunc(slices.Clone(l.env.Environ), unasked), set...),
	})
	switch {
	case err != nil:
		return "", err
	case exit.Stopped:
		return "", fmt.Errorf("git did not answer within %s", gitPatience)
	case exit.Code != 0:
		return "", fmt.Errorf("git failed: %s", strings.TrimSpace(complaints.String()))
	case exit.Output != nil:
		return "", exit.Output
	case out.Cut:
		return "", fmt.Errorf("they are more than %d bytes", maxSettings)
	}
	return out.String(), nil
}

// query runs a program that only reads, until gitPatience is over.
func query(ctx context.Context, env *tools.Env, c sandbox.Command) (sandbox.Exit, error) {
	c.ID = env.CallID
	p, err := env.Box.Start(c)
	if err != nil {
		return sandbox.Exit{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	defer context.AfterFunc(ctx, p.Stop)()
	return p.Wait(), nil
}

// unasked reports whether a variable is withheld from a git that only lists its configuration. The
// others decide whose configuration it is.
func unasked(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	return name != "HOME" && name != "XDG_CONFIG_HOME" && name != "PATH"
}

// gitlinks parses the output of `git ls-files --stage -z` and keeps the paths of submodules, so
// that an index of any size needs little memory.
type gitlinks struct {
	paths []string
	most  int    // bytes of one entry
	rest  []byte // the beginning of an entry that is not complete
}

// gitlinkMode is the mode of an entry that is a commit of another repository, from
// gitformat-index(5).
const gitlinkMode = "160000 "

func (g *gitlinks) Write(p []byte) (int, error) {
	g.rest = append(g.rest, p...)
	for {
		entry, rest, ok := bytes.Cut(g.rest, []byte{0})
		if !ok {
			break
		}
		if _, path, ok := bytes.Cut(entry, []byte{'\t'}); ok && bytes.HasPrefix(entry, []byte(gitlinkMode)) {
			g.paths = append(g.paths, string(path))
		}
		g.rest = rest
	}
	if len(g.rest) > g.most {
		return 0, fmt.Errorf("a path in the index has more than %d bytes", g.most)
	}
	return len(p), nil
}
