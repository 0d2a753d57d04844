package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestCarried: each of them runs `git push`, and deny rules see it.
func TestCarried(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"env - git push", "env -i -u X A=b - git push", "timeout -k $t 5 git push", "nice --5 git push", "/usr/bin/time -p git push", "sudo -u bob git push",
		"setarch -R git push", "setarch x86_64 -R git push", "taskset -c 0 git push", "taskset 0x1 git push", "chrt -b 0 git push", "rlwrap git push",
		"unbuffer -p git push", "script -c 'git push'", "script -qc 'git push' f", "script -q f git push", "script f -c 'git push'", "sg wheel -c 'git push'",
		"sg wheel 'git push'", "su -c 'git push'", "su - bob -c 'git push'", "su bob --command='git push'", "runuser -l bob -c 'git push'", "runuser -u bob -- git push",
		"flock f -c 'git push'", "flock -n f git push", "watch -d git push", "watch -n1 'git push'", "busybox git push", "npx -c 'git push'", "npx --call 'git push'",
		"uv run git push", "uv --quiet run -- git push", "poetry run git push", "npm exec -c 'git push'", "npm exec -- git push", "/usr/local/bin/uv run git push",
		"tmux new -d 'git push'", "tmux -L s new-session -s x 'git push'", "tmux send-keys -t x 'git push' Enter", "screen -dm git push", "screen -dmS x git push",
		"systemd-run --user --scope git push", "systemd-run -p A=b git push", "dbus-run-session -- git push", "pkexec git push",
		"/lib64/ld-linux-x86-64.so.2 git push", "/lib/ld-musl-x86_64.so.1 --library-path /x git push", "/usr/lib/git-core/git-push", "git-push origin",
		"git rebase -x 'git push' main", "git rebase -i --exec='git push' main", "git -C x rebase --exec 'git push' main", "git submodule foreach git push",
		"git submodule --quiet foreach --recursive 'git push'", "git bisect run git push", "git difftool -y -x 'git push'", "git -c alias.x='!git push' x",
		"git -c alias.x=push x", "git -c a.b=c -c alias.X='!git push' x", "git config alias.x '!git push'", "git -c core.pager='git push' log",
		"compgen -C 'git push'", "complete -C 'git push' x", "mapfile -C 'git push' -c 1 x", "readarray -C'git push' x",
		"parallel git push ::: a b", "parallel ::: 'git push' ls", "parallel git ::: push pull", "parallel -j 2 git {} ::: push", "parallel 'git push {}' ::: a",
		"xargs -a f git push", "sudo env - nice git push", "exec -c git push", "find . -execdir git push ';'",
	} {
		checkCarried(t, script, "git push")
	}
}

// checkCarried: the script is not read-only, and deny rules see a command that begins so.
func checkCarried(t *testing.T, script, want string) {
	t.Helper()
	a := Analyze(script)
	if a.ReadOnly {
		t.Errorf("%q is read-only", script)
	}
	seen := slices.ContainsFunc(a.Commands, func(c Command) bool {
		return c.Via != "" && (c.String() == want || strings.HasPrefix(c.String(), want+" "))
	})
	if !seen {
		t.Errorf("%q: %q is not listed", script, want)
	}
	checkBlamed(t, script, a)
}

// TestNotCarried: what is no command of theirs is not listed as one.
func TestNotCarried(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"git commit -m run git push", "git log --grep 'git push'", "git -c user.name='git push' log", "git config user.name 'git push'", "mapfile -t git push",
		"echo git push", "grep -r 'git push' .", "git help submodule foreach git push", "make SHELL='git push'", "uv add run-git push",
	} {
		for _, c := range Analyze(script).Commands {
			if c.Via != "" {
				t.Errorf("%q lists %q as a command of its own", script, c.String())
			}
		}
	}
}

// TestCarriedByFd: what fd runs is listed, however the flag is written.
func TestCarriedByFd(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"fd -x git push", "fd a -X git push", "fd a --exec git push", "fd --exec-batch git push", "fdfind a --exec=git push", "fd -Hx git push", "fd -xgit push", "fd -x ls \\; -x git push",
		"fd -e go -x git push \\;", "timeout 5 fd -x git push", "trap -- 'git push' EXIT", "trap -- 'git push' 0",
	} {
		checkCarried(t, script, "git push")
	}
}
