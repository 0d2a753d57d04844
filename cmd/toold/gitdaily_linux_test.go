package main

// Everyday git in the sandbox and in plain bash: what it asks, how it ends, and what becomes of the repository.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A day is some of what people do with git, in one copy of the repositories: see testdata/gitdaily/daily.txt.
type day struct {
	name string
	rows []daily
}

// A daily is one command. Who is "user" for the user's own commands, "free" for those that ask nothing, and "asks" for
// those that ask one question, whose reason has the word in it.
type daily struct{ who, word, command string }

func gitDays(t *testing.T) (days []day) {
	t.Helper()
	for line := range strings.Lines(content(t, "testdata/gitdaily/daily.txt")) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind == "" || kind == "#" {
			continue
		}
		if kind == "begin" {
			days = append(days, day{name: rest})
			continue
		}
		d := &days[len(days)-1]
		switch kind {
		case "asks":
			word, command, _ := strings.Cut(rest, " ")
			d.rows = append(d.rows, daily{kind, word, command})
		case "free", "user":
			d.rows = append(d.rows, daily{who: kind, command: rest})
		default:
			t.Fatalf("%q is no line of a day", line)
		}
	}
	return days
}

// gitWorkspaces are the roots that the days are spent in, and what each of them needs beside it.
var gitWorkspaces = []struct{ name, root, needs string }{
	{"clone", "clone", "base clone extra"},
	{"linked worktree", "tree", "base tree extra"},
	{"submodule", "super/third_party/foo", "super extra"},
}

// TestEverydayGit spends a sixth of the days in one or the other workspace, with TOOLD_ALL each day in each of them.
func TestEverydayGit(t *testing.T) {
	inLasting(t)
	h := newHouse(t, map[string]string{
		"home/.gitconfig":                   gitHome + "[init]\n\ttemplateDir = ~/template\n",
		"home/template/hooks/post-checkout": "#!/bin/sh\necho checked >>checked\n",
	})
	hook := filepath.Join(h.dir, "home/template/hooks/post-checkout") // which is the user's own, in each new repository
	if err := os.Chmod(hook, 0o755); err != nil {                     //nolint:gosec // it is a program
		t.Fatal(err)
	}
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, fmt.Sprintf("run this where there is the full tier: here is %v", info.GetSandbox()))
	}
	s := layGitScene(t, h.dir, h.environ, "testdata/gitdaily/scene.sh")
	for w, place := range gitWorkspaces {
		for i, d := range gitDays(t) {
			if !chosen(i*len(gitWorkspaces)+w, 6) {
				continue
			}
			t.Run(place.name+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("day%d-%d", w, i)
				confined, plain := filepath.Join(h.dir, name), filepath.Join(h.dir, name+"p")
				s.copy(t, confined, place.needs)
				s.copy(t, plain, place.needs)
				here, beside := &workplace{s, confined, place.root}, &workplace{s, plain, place.root}
				d.spend(t, h.attach(t, here.attach(name)), here, beside)
			})
		}
	}
}

func TestEverydayGitAsNobody(t *testing.T) {
	asNobody(t, "testdata/gitdaily", "^TestEverydayGit$/^clone$")
}

// A workplace is a copy of the repositories, of which one is worked in.
type workplace struct {
	scene     *gitScene
	dir, root string
}

func (w *workplace) top() string   { return filepath.Join(w.dir, w.root) }
func (w *workplace) extra() string { return filepath.Join(w.dir, "extra") }

// attach is how a client attaches that answers, in a session that may run git.
func (w *workplace) attach(session string) *tooldv1.Attach {
	const settings = `{
		"env": {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true"},
		"permissions": {"allow": ["Bash(git *)"]}
	}`
	a := in(w.top(), &tooldv1.Options{SettingsJson: proto.String(settings)})
	a.SessionId, a.Roots = session, append(a.Roots, w.extra())
	return a
}

// spend does the rows of the day in both places, and compares.
func (d day) spend(t *testing.T, c *talk, here, beside *workplace) {
	t.Helper()
	for i, row := range d.rows {
		code, out := beside.shell(t, row.command)
		if row.who == "user" {
			if got, out := here.shell(t, row.command); got != 0 || code != 0 {
				t.Fatalf("%s\nends with exit codes %d and %d:\n%s", row.command, got, code, out)
			}
			continue
		}
		id := fmt.Sprint(i)
		c.bash(id, strings.ReplaceAll(row.command, "EXTRA", here.extra()))
		result, questions := c.answered(id)
		if got := exitCode(result); got != code {
			t.Errorf("%s\nends with exit code %d:\n%s\nand in plain bash with %d:\n%s",
				row.command, got, textIn(result), code, out)
		}
		if text := textIn(result); strings.Contains(text, "error: ") && !strings.Contains(out, "error: ") {
			t.Errorf("%s\nprints an error that plain bash does not have:\n%s", row.command, text)
		}
		row.asked(t, questions)
	}
	if got, want := here.state(t), beside.state(t); got != want {
		t.Errorf("of the repositories there is only here\n%s\nand only in plain bash\n%s",
			missing(want, got), missing(got, want))
	}
}

// missing returns the lines of text that other does not have.
func missing(other, text string) string {
	lines := strings.Split(other, "\n")
	known := func(line string) bool { return slices.Contains(lines, line) }
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), known), "\n")
}

// asked holds what was asked against what is to be.
func (row daily) asked(t *testing.T, questions []*tooldv1.Question) {
	t.Helper()
	var reasons []string
	for _, q := range questions {
		reasons = append(reasons, q.GetReason())
	}
	said := strings.Join(reasons, "\n")
	switch {
	case row.who == "free" && len(questions) > 0:
		t.Errorf("%s\nasks:\n%s", row.command, said)
	case row.who == "asks" && len(questions) != 1:
		t.Errorf("%s\nasks %d questions, and not one:\n%s", row.command, len(questions), said)
	case row.who == "asks" && !strings.Contains(strings.ToLower(said), row.word):
		t.Errorf("%s\nasks without %q:\n%s", row.command, row.word, said)
	}
}

// answered ends the turn with a yes to every question, and returns the call's result and what was asked.
func (c *talk) answered(id string) (result *tooldv1.ToolResult, questions []*tooldv1.Question) {
	c.t.Helper()
	before := len(c.heard)
	result = c.finish(id, yes)
	for _, event := range c.heard[before:] {
		if q := event.GetQuestion(); q != nil {
			questions = append(questions, q)
		}
	}
	return result, questions
}

// exitCode is the command's, or -1 if it has none.
func exitCode(r *tooldv1.ToolResult) int {
	if code, is := r.GetStructured().GetFields()["exit_code"]; is {
		return int(code.GetNumberValue())
	}
	return -1
}

// shell runs a command as the user would.
func (w *workplace) shell(t *testing.T, command string) (code int, out string) {
	t.Helper()
	command = strings.ReplaceAll(command, "EXTRA", w.extra())
	out, err := w.scene.shell(t, w.top(), command, "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true")
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out
}

// gitState prints what there is to see of the repositories, but for what depends on when it was done.
const gitState = `for git in $(find . -name HEAD -path '*.git*' ! -path '*/logs/*' ! -path '*/refs/*' | sort); do
	git=${git%/HEAD}
	{
		git --git-dir=$git config --local --list
		git --git-dir=$git for-each-ref --format='%(refname) %(objecttype)'
		git --git-dir=$git log --all --format='%D %s %T'
		(cd $git && ls -d * hooks/* modules/*)
	} | grep -v -e _HEAD -e _EDITMSG -e 'gc\.' -e packed-refs -e '\.sample$' -e '\*$' | sort | sed "s,^,$git ,"
done
git status --short --branch --ignored
git config --local --list | sort
git stash list
git worktree list
git submodule status
git ls-files --stage
cat .gitmodules`

var hashes = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// state returns what becomes of the repositories, in words that are the same for both.
func (w *workplace) state(t *testing.T) string {
	t.Helper()
	_, out := w.shell(t, gitState)
	return hashes.ReplaceAllString(strings.ReplaceAll(out, w.dir+"/", "DIR/"), "HASH")
}
