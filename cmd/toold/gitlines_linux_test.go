package main

// The three lines of defence of git directories, each by itself: what is read-only while a call runs, what is moved aside
// while it still runs, and what the comparison at its end finds.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A gitLine is a script, tried by a session in a copy of the repositories of testdata/gitdoors/scene.sh.
type gitLine struct {
	name, root, script string
	path               string // what the script changes, below the root
	keys               string // the settings that are taken out; empty: all of it is moved
	then               string // what the user does then, which would run the program
}

// gitBound are changes of what exists and is read-only.
var gitBound = []gitLine{
	{name: "settings", root: "main", path: ".git/config", script: `settings >>$P`},
	{name: "settings of git", root: "main", path: ".git/config", script: `git config core.fsmonitor "$pwn"`},
	{name: "a hook", root: "main", path: ".git/hooks/post-commit", script: `cp pwn $P`},
	{name: "settings of a submodule", root: "main", path: ".git/modules/sub/config", script: `settings >>$P`},
	{name: "a worktree's .git file", root: "main", path: "linked/.git", script: `echo gitdir: x >$P`},
	{name: "a worktree's commondir", root: "main", path: ".git/worktrees/linked/commondir", script: `echo x >$P`},
	{name: "settings of one worktree", root: "main", path: "hooked/.git/config", script: `settings >>$P`},
	{name: "core.hooksPath", root: "main", path: "hooked/.githooks/pre-commit", script: `cp pwn $P`},
	{name: "a new one in core.hooksPath", root: "main", path: "hooked/.githooks/post-commit", script: `cp pwn $P`},
	{name: "include.path", root: "driven", path: "shared.inc", script: `settings >>$P`},
	{name: "includeIf", root: "driven", path: "main.inc", script: `settings >>$P`},
	{name: "core.attributesFile", root: "driven", path: "attributes", script: `echo '*.txt filter=user' >>$P`},
	{name: "the program of core.fsmonitor", root: "driven", path: "tools/watch", script: `cp pwn $P`},
	{name: "the program of a filter", root: "driven", path: "tools/clean", script: `cp pwn $P`},
	{name: "the program of a text conversion", root: "driven", path: "tools/conv", script: `cp pwn $P`},
	{name: "the program of a merge", root: "driven", path: "tools/merge", script: `cp pwn $P`},
	{name: "the program of an alias", root: "driven", path: "tools/greet", script: `cp pwn $P`},
	{name: "the program that signs", root: "driven", path: "tools/sign", script: `cp pwn $P`},
}

// gitLeft are changes where nothing can be bound: of names that do not exist, in repositories deeper down, and in new ones.
var gitLeft = []gitLine{
	{name: "the first hook", root: "main", path: "deep/a/b/repo/.git/hooks", script: `mkdir $P; cp pwn $P/pre-commit`, then: "git -C deep/a/b/repo commit --allow-empty -m x"},
	{name: "a hook by a link", root: "main", path: "deep/a/b/repo/.git/hooks", script: `mkdir $P; ln pwn $P/pre-commit`, then: "git -C deep/a/b/repo commit --allow-empty -m x"},
	{name: "hooks by renaming", root: "main", path: "deep/a/b/repo/.git/hooks", script: `mkdir h; cp pwn h/pre-commit; mv h $P`, then: "git -C deep/a/b/repo commit --allow-empty -m x"},
	{name: "a hook by a link to its directory", root: "main", path: "bare.git/hooks/post-update", script: `ln -s bare.git/hooks h; mkdir -p h; cp pwn h/post-update`, then: "git push -q ./bare.git HEAD:refs/heads/x"},
	{name: "core.hooksPath", root: "main", path: "soon/.githooks", script: `mkdir $P; cp pwn $P/pre-commit`, then: "git -C soon commit --allow-empty -m x"},
	{name: "attributes", root: "driven", path: ".git/info/attributes", script: `mkdir -p ${P%/*}; echo '*.txt filter=user' >$P`, then: "echo x >new.txt; git add new.txt"},
	{name: "attributes of a submodule", root: "main", path: ".git/modules/sub/info/attributes", script: `mkdir -p ${P%/*}; echo '*.txt filter=user' >$P`, then: "git -C sub status"},
	{name: "a config.worktree", root: "main", path: ".git/config.worktree", script: `git config --worktree core.fsmonitor "$pwn"`, then: "git status"},
	{name: "a config.worktree of a worktree", root: "main", path: ".git/worktrees/linked/config.worktree", script: `settings >$P`, keys: "core.fsmonitor", then: "git -C linked status"},
	{name: "a commondir", root: "main", path: ".git/commondir", script: `echo gone >.git/new; mv .git/new $P`, then: "git status"},
	{name: "a setting", root: "main", path: "deep/a/b/repo/.git/config", script: `git -C deep/a/b/repo config core.fsmonitor "$pwn"`, keys: "core.fsmonitor", then: "git -C deep/a/b/repo status"},
	{name: "a setting in an open file", root: "main", path: "deep/a/b/repo/.git/config", script: `exec 3>>$P; settings >&3`, keys: "core.fsmonitor", then: "git -C deep/a/b/repo status"},
	{
		name: "settings among others", root: "main", path: "deep/a/b/repo/.git/config", keys: "alias.st, core.pager, include.path", then: "git -C deep/a/b/repo st",
		script: `cp $P new; set -- git config --file new; $@ remote.o.url x; $@ core.pager "$pwn"; $@ alias.st "!$pwn"; $@ include.path /x; $@ user.name me; mv new $P`,
	},
	{name: "a new repository", root: "main", path: "src/.git/config", script: `mkdir -p src/.git/objects src/.git/refs; settings >$P; echo 'ref: refs/heads/main' >src/.git/HEAD`, keys: "core.fsmonitor", then: "git -C src status"},
	{name: "a clone", root: "main", path: "copy/.git/config", script: `git clone -q . copy; git -C copy config filter.x.clean "$pwn"`, keys: "filter.x.clean", then: "cd copy; echo '* filter=x' >.gitattributes; git add ."},
	{name: "a new bare repository", root: "main", path: "b/hooks/post-update", script: `git init -q --bare b; mkdir -p b/hooks; cp pwn $P`, then: "git push -q ./b HEAD:refs/heads/x"},
	{name: "includeIf", root: "driven", path: "main.inc", script: `settings >$P`, then: "git status"},
	{name: "include.path", root: "driven", path: "soon.inc", script: `settings >soon; mv soon $P`, then: "git status"},
}

// gitSettled are changes that are judged only when nothing has followed for a while.
var gitSettled = []gitLine{
	{name: "a .git file", root: "main", path: "src/.git", script: `git init -q --bare "$TMPDIR/e"; git -C "$TMPDIR/e" config core.fsmonitor "$pwn"; git -C "$TMPDIR/e" config core.bare false; echo "gitdir: $(realpath "$TMPDIR/e")" >$P`, then: "git -C src status"},
	{name: "a .git that is a link", root: "main", path: "src/.git", script: `ln -s ../bare.git $P`, then: "git -C src status"},
	{name: "a working tree elsewhere", root: "main", path: "deep/a/b/repo/.git/config", script: `git -C deep/a/b/repo config core.worktree ../../..`, keys: "core.worktree", then: "git -C deep/a/b/repo status"},
}

// gitAfter are changes that are judged only when a call has ended, since git makes the like in several steps, or uses it only
// while it works.
var gitAfter = []gitLine{
	{name: "a .git file", root: "main", path: "src/.git", script: `echo gitdir: ../bare.git >$P`, then: "git -C src status"},
	{name: "a .git that is a link", root: "main", path: "src/.git", script: `ln -s ../bare.git $P`, then: "git -C src status"},
	{name: "a working tree elsewhere", root: "main", path: "deep/a/b/repo/.git/config", script: `git -C deep/a/b/repo config core.worktree ../../..`, keys: "core.worktree", then: "git -C deep/a/b/repo status"},
	{name: "the list of a stopped rebase", root: "main", path: "rebasing/.git/rebase-merge/git-rebase-todo", script: `echo "exec $pwn" >>$P`, then: `! grep exec rebasing/.git/rebase-merge/git-rebase-todo || : >"$MARK"`},
	{name: "a list that a rebase makes", root: "main", path: ".git/rebase-merge/git-rebase-todo", script: `echo "sed -i 1s/^pick/edit/ \"\$1\"; echo exec $pwn >>\"\$1\"" >todo; GIT_SEQUENCE_EDITOR='sh todo' git rebase -qi HEAD~1 2>log || :`, then: `! grep exec .git/rebase-merge/git-rebase-todo || : >"$MARK"`},
	{name: "a new git directory of a HEAD and a commondir", root: "main", path: "x/commondir", script: `mkdir x; echo ../bare.git >$P; echo 'ref: refs/heads/main' >x/HEAD`, then: "git -C x status"},
}

// bringsBack finds the command in a report.
var bringsBack = regexp.MustCompile("`(mv -T [^`]*)` brings it back")

// A gitHouse is a daemon beside repositories.
type gitHouse struct {
	*house
	scene *gitScene
	tier  string
}

// newGitHouse starts one; the test is skipped where there is another tier.
func newGitHouse(t *testing.T, tier string) *gitHouse {
	t.Helper()
	inLasting(t)
	h := newHouse(t, map[string]string{"home/.gitconfig": gitHome})
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if full := info.GetSandbox() == tooldv1.SandboxTier_SANDBOX_TIER_FULL; full != (tier == "full") {
		skip(t, fmt.Sprintf("run this where there is the tier %s: here is %v", tier, info.GetSandbox()))
	}
	return &gitHouse{h, layGitScene(t, h.dir, h.environ, "testdata/gitdoors/scene.sh"), tier}
}

// begin makes a copy for the line and a session in it, whose script is work.sh.
func (h *gitHouse) begin(t *testing.T, l gitLine, name, after string) (*gitPlace, *talk) {
	t.Helper()
	p := h.scene.place(t, door{roots: []string{l.root}}, name)
	script := fmt.Sprintf("P=%s\n%s\n%s\n%s\n", l.path, content(t, "testdata/gitdoors/prelude.sh"), l.script, after)
	put(t, filepath.Join(p.roots[0], "work.sh"), script)
	options := &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(sh *)","Bash(git *)"]}}`)}
	return p, h.attach(t, &tooldv1.Attach{SessionId: name, Roots: p.roots, Options: options})
}

// TestGitBound: what exists is read-only, and nothing has to be undone.
func TestGitBound(t *testing.T) {
	h := newGitHouse(t, "full")
	for i, l := range gitBound {
		if !chosen(i, 3) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p, c := h.begin(t, l, fmt.Sprint("bound", i), "")
			path := filepath.Join(p.roots[0], l.path)
			if l.name == "includeIf" {
				put(t, path, "[user]\n\tname = B\n")
			}
			before, _ := os.ReadFile(path) // it need not exist
			r := c.run("1", "sh ./work.sh")
			after, _ := os.ReadFile(path)
			holds(t, "the result", textIn(r), "did not let it write")
			if exitCode(r) == 0 || string(before) != string(after) || bringsBack.MatchString(textIn(r)) {
				t.Errorf("it is\n%s\nand was\n%s\n%s", after, before, textIn(r))
			}
		})
	}
}

// TestGitMeanwhile: what appears while a command runs in the background is moved aside before it ends, is reported, and comes
// back by the command that the report names. As in the other tests here, a third of the lines is tried, with TOOLD_ALL all of them.
func TestGitMeanwhile(t *testing.T) {
	leaveMeanwhile(t, newGitHouse(t, "full"), slices.Concat(gitLeft, gitSettled))
}

func TestGitMeanwhileWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	leaveMeanwhile(t, newGitHouse(t, "fallback"), gitLeft)
}

func leaveMeanwhile(t *testing.T, h *gitHouse, lines []gitLine) {
	t.Helper()
	for i, l := range lines {
		if !chosen(i, 3) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p, c := h.begin(t, l, fmt.Sprint("meanwhile", i), "sleep 1000")
			c.use("1", "Bash", `{"command":"sh ./work.sh","run_in_background":true}`)
			c.finish("1", no)
			said := c.awaitNotice("moved_aside")
			if len(c.tasks()) != 1 {
				t.Error("the command does not run any more")
			}
			p.wasUndone(t, l, said)
			c.use("2", "KillShell", fmt.Sprintf(`{"shell_id":%q}`, c.tasks()[0].GetTaskId()))
			holds(t, "the result of KillShell", textIn(c.finish("2", no)), bringsBack.FindString(said))
			p.comesBack(t, l, said)
		})
	}
}

// TestGitAfterwards: what a call leaves is moved aside when it has ended.
func TestGitAfterwards(t *testing.T) { leaveAfterwards(t, newGitHouse(t, "full")) }

func TestGitAfterwardsWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	leaveAfterwards(t, newGitHouse(t, "fallback"))
}

func leaveAfterwards(t *testing.T, h *gitHouse) {
	t.Helper()
	for i, l := range gitAfter {
		if !chosen(i, 3) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p, c := h.begin(t, l, fmt.Sprint("afterwards", i), "")
			r := c.run("1", "sh ./work.sh")
			p.wasUndone(t, l, textIn(r))
			p.comesBack(t, l, textIn(r))
		})
	}
}

// everyday is what git does in a minute, while a command runs in the background.
const everyday = `set -e
git init -q made && git -C made commit -q --allow-empty -m x && git -C made config user.name x
git clone -q . copy && git -C copy checkout -q -b topic --track origin/main && git -C copy remote add o x && git -C copy push -q -u origin topic
git -C deep/a/b/repo remote add o x && git -C deep/a/b/repo config branch.main.remote o
git -C deep/a/b/repo worktree add -q ../tree && git -C deep/a/b/repo worktree add -q -b y ../tree2 && git -C deep/a/b/repo worktree move ../tree2 ../tree3
git -C copy submodule --quiet add "$root/deep/a/b/repo" nested/one && git -C copy commit -qm submodule
git clone -q --recurse-submodules copy again && git -C again submodule --quiet deinit -f nested/one && git -C again submodule --quiet update --init
git -C again submodule absorbgitdirs 2>/dev/null
cd copy && for i in 1 2 3; do git commit -q --allow-empty -m $i; done
git rebase -q --keep-empty -x 'test ! -e never' HEAD~3 2>/dev/null
GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i --keep-empty HEAD~2 2>/dev/null && git rebase --continue >/dev/null 2>&1
git init -q "$TMPDIR/own" && mkdir -p "$TMPDIR/own/.git/hooks" && printf '#!/bin/sh\n: >ran\n' >"$TMPDIR/own/.git/hooks/pre-commit"
chmod +x "$TMPDIR/own/.git/hooks/pre-commit" && sleep 0.5 && git -C "$TMPDIR/own" commit -q --allow-empty -m x && test -e "$TMPDIR/own/ran"
git stash -q || : ; git gc -q; git fetch -q origin; git config --worktree user.name x 2>/dev/null || :
`

// TestGitMeanwhileLeavesAlone: everyday git is not disturbed while it works, nor is what the user makes beside it, in
// repositories that the command has not changed.
func TestGitMeanwhileLeavesAlone(t *testing.T) {
	leaveAlone(t, newGitHouse(t, "full"), "mkdir -p rebasing/.git/hooks; cp user.sh rebasing/.git/hooks/pre-push; git -C hooked config alias.mine '!x'",
		"test -e rebasing/.git/hooks/pre-push && git -C hooked config alias.mine")
}

// Without namespaces the daemon cannot tell what the user makes from what the command makes.
func TestGitMeanwhileLeavesAloneWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	leaveAlone(t, newGitHouse(t, "fallback"), "git -C deep/a/b/repo config user.email y", "git -C deep/a/b/repo config user.email")
}

// leaveAlone does what git does all day in the background, then what the user makes, and then leaves a hook. Only that is moved,
// and the user's own is still there.
func leaveAlone(t *testing.T, h *gitHouse, users, still string) {
	t.Helper()
	l := gitLine{root: "main", path: "bare.git/hooks/post-update", script: everyday + "cd ..; >done; until [ -e seen ]; do sleep 0.1; done; mkdir -p ${P%/*}; cp pwn $P"}
	p, c := h.begin(t, l, "alone", "sleep 1000")
	c.use("1", "Bash", `{"command":"sh ./work.sh","run_in_background":true}`)
	c.finish("1", no)
	id := c.tasks()[0].GetTaskId()
	put(t, filepath.Join(p.roots[0], "user.sh"), "#!/bin/sh\n")
	if out, err := p.scene.shell(t, p.roots[0], "until [ -e done ]; do sleep 0.1; done; "+users+"; >seen"); err != nil {
		c.use("2", "BashOutput", fmt.Sprintf(`{"bash_id":%q}`, id))
		t.Fatalf("%v\n%s\n%s", err, out, textIn(c.finish("2", no)))
	}
	said := c.awaitNotice("moved_aside")
	if !strings.Contains(said, "bare.git/hooks") || strings.Count(said, "The sandbox") != 1 {
		t.Errorf("moved were\n%s", said)
	}
	others := ` && test -z "$(find . -name '.denied-*' ! -name '.denied-post-update*' ! -name '.denied-hooks*')"`
	if out, err := p.scene.shell(t, p.roots[0], still+others); err != nil {
		t.Errorf("the user's own is gone: %v\n%s", err, out)
	}
	c.use("3", "BashOutput", fmt.Sprintf(`{"bash_id":%q}`, id))
	holds(t, "what BashOutput reports", textIn(c.finish("3", no)), "is running", bringsBack.FindString(said))
}

// TestGitRebaseNamed: a program that the command names for the steps of a rebase stays in the list of one that has stopped.
func TestGitRebaseNamed(t *testing.T) {
	h := newGitHouse(t, "full")
	p, c := h.begin(t, gitLine{root: "main"}, "named", "")
	c.bash("1", "git rebase -q -x false HEAD~2")
	r, questions := c.answered("1")
	list := content(t, filepath.Join(p.roots[0], ".git/rebase-merge/git-rebase-todo"))
	if len(questions) > 0 || !strings.Contains(list, "exec false") || bringsBack.MatchString(textIn(r)) {
		t.Errorf("%d questions, the list is\n%s\n%s", len(questions), list, textIn(r))
	}
}

// wasUndone: the report is about the path and the settings, and the user's git runs nothing.
func (p *gitPlace) wasUndone(t *testing.T, l gitLine, said string) {
	t.Helper()
	path := filepath.Join(p.roots[0], l.path)
	holds(t, "the report", said, path)
	if l.keys != "" {
		holds(t, "the report", said, "out of "+path+": "+l.keys+".")
	}
	if opened, output := p.goThrough(t, door{then: l.then}); opened {
		t.Errorf("the user's git ran the program:\n%s\n%s", output, said)
	}
}

// comesBack runs the command of the report that is about the line's path.
func (p *gitPlace) comesBack(t *testing.T, l gitLine, said string) {
	t.Helper()
	path := filepath.Join(p.roots[0], l.path)
	for _, found := range bringsBack.FindAllStringSubmatch(said, -1) {
		words := strings.Fields(found[1])
		if words[3] != path {
			continue
		}
		list := func(path string) string {
			return fmt.Sprintf("readlink %[1]s; find %[1]s -type f -exec cat {} +", path)
		}
		was, err := p.scene.shell(t, p.roots[0], list(words[2]))
		if err != nil || was == "" {
			t.Fatalf("%s: %v\n%s", words[2], err, was)
		}
		if out, err := p.scene.shell(t, p.roots[0], found[1]); err != nil {
			t.Errorf("%s: %v\n%s", found[1], err, out)
		}
		if is, _ := p.scene.shell(t, p.roots[0], list(path)); is != was {
			t.Errorf("%s brought back\n%s\nof\n%s", found[1], is, was)
		}
		return
	}
	t.Errorf("no command brings %s back:\n%s", path, said)
}
