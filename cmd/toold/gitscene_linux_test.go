package main

// Repositories that real git has made, for tests of git, and a user who works in them outside of the sandbox.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A gitScene is repositories that doors are tried on, and where.
type gitScene struct {
	environ  []string
	template string // a directory, a copy of which each test begins with
	dir      string // that copies are made in
}

// gitHome is what a user has in the home directory. The tools in it keep git from starting those of the machine.
const gitHome = `[user]
	name = A
	email = a@example.com
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[diff]
	tool = none
[difftool "none"]
	cmd = true
[difftool "vimdiff"]
	path = true
[merge]
	tool = none
[mergetool "none"]
	cmd = true
[includeIf "gitdir:global/"]
	path = ~/global.inc
`

// layGitScene makes repositories with git, as a script says, if no test has made them before, whose copies lie below dir.
func layGitScene(t *testing.T, dir string, environ []string, script string) *gitScene {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		skip(t, "install git")
	}
	s := &gitScene{environ: environ, dir: dir}
	settings := "[core]\n\thooksPath = .githooks\n[filter \"team\"]\n\tclean = tools/team\n"
	put(t, filepath.Join(dir, "home", "global.inc"), settings)
	if s.template = laidScenes[script]; s.template != "" {
		return s
	}
	place, err := lasting()
	if err != nil {
		t.Fatal(err)
	}
	if s.template, err = os.MkdirTemp(place, "toold-scene-"); err != nil {
		t.Fatal(err)
	}
	if out, err := s.shell(t, s.template, content(t, script)); err != nil {
		_ = os.RemoveAll(s.template)
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	laidScenes[script] = s.template
	return s
}

// copy makes a copy of some of the repositories, whose paths are those of the copy.
func (s *gitScene) copy(t *testing.T, to, names string) {
	t.Helper()
	script := fmt.Sprintf(`mkdir -p %[2]s && cd %[1]s && cp -a %[3]s %[2]s && cd %[2]s &&
		grep -rlIZ --exclude-dir=objects --exclude=.gitmodules %[1]s . | xargs -0 sed -i s,%[1]s,%[2]s,g`,
		s.template, to, names)
	if out, err := s.shell(t, s.dir, script); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// gitPrograms are variables that name programs which git runs. Here the user has none of them but EDITOR, which counts
// only where no setting names another.
var gitPrograms = []string{
	"EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH",
	"GIT_SSH_COMMAND",
}

// shell runs a script outside of any sandbox, as the user would.
func (s *gitScene) shell(t *testing.T, dir, script string, set ...string) (string, error) {
	t.Helper()
	// timeout ends what the script has started, too.
	cmd := exec.CommandContext(t.Context(), "timeout", "60", "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(slices.Clone(s.environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(gitPrograms, name)
	}), append([]string{"GIT_TERMINAL_PROMPT=0", "EDITOR=true", "LC_ALL=C"}, set...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
