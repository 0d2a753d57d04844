package shell

import (
	"strings"
	"testing"
)

// TestGitChange: what git commands set in configuration, and what else of a repository they change.
func TestGitChange(t *testing.T) {
	for _, tt := range []struct{ command, keys, start, more string }{
		{"git config core.editor vim", "core.editor", "", ""},
		{"git config --local user.name 'A B'", "user.name", "", ""},
		{"git config set alias.st status", "alias.st", "", ""},
		{"git config --unset alias.st", "alias.st", "", ""},
		{"git config --global core.editor vim", "", "", ""},
		{"git config $KEY vim", "", "", ""},
		{"git remote add origin x", "remote.* branch.*", "", ""},
		{"git remote -v", "", "", ""},
		{"git remote show origin", "", "", ""},
		{"git push", "", "", ""},
		{"git push -u origin main", "branch.*", "", ""},
		{"git push -fu origin main", "branch.*", "", ""},
		{"git push --set-upstream origin main", "branch.*", "", ""},
		{"git fetch origin", "", "", ""},
		{"git branch new", "", "", ""},
		{"git branch new origin/main", "branch.*", "origin/main", ""},
		{"git branch --track new origin/main", "branch.*", "", ""},
		{"git branch --set-upstream-to=origin/main", "branch.*", "", ""},
		{"git branch -d old", "branch.*", "", "of old"},
		{"git branch -D old older", "branch.*", "", "of old older"},
		{"git branch -m new", "branch.*", "", ""},
		{"git branch -m old new", "branch.*", "", ""},
		{"git branch --no-track new origin/main", "", "", ""},
		{"git switch -q --no-track -c mine origin/side", "", "", ""},
		{"git submodule update", "submodule.*", "", "submodules"},
		{"git rebase -x 'make test' --exec=true main", "", "", "runs make test, true"},
		{"git checkout main", "branch.*", "main", ""},
		{"git checkout -b new origin/main", "branch.*", "origin/main", ""},
		{"git checkout -b new", "branch.*", "new", ""},
		{"git checkout --track origin/main", "branch.*", "", ""},
		{"git checkout -- .", "branch.*", ".", ""},
		{"git switch -c new", "branch.*", "new", ""},
		{"git worktree add ../w", "", "", ""},
		{"git worktree add -q linked", "", "", ""},
		{"git worktree add ../w origin/main", "branch.*", "origin/main", ""},
		{"git worktree add -b n ../w origin/main", "branch.*", "origin/main", ""},
		{"git worktree remove w", "", "", "worktrees"},
		{"git worktree list", "", "", ""},
		{"git submodule update --init --recursive", "submodule.*", "", "submodules"},
		{"git submodule status", "", "", ""},
		{"git submodule", "", "", ""},
		{"git sparse-checkout set a", "core.sparsecheckout core.sparsecheckoutcone extensions.worktreeconfig index.sparse", "", ""},
		{"git sparse-checkout list", "", "", ""},
		{"git init", "core.* extensions.*", "", ""},
		{"git init -q -b main new", "", "", ""},
		{"git -C sub remote add a b", "remote.* branch.*", "", "in sub"},
		{"git -c core.pager=cat -C sub/x config a.b c", "a.b", "", "in sub/x"},
		{"git -C a -C b config a.b c", "a.b", "", "in a/b"},
		{"git commit -m x", "", "", ""},
		{"git add -u .", "", "", ""},
		{"git merge x", "", "", ""},
		{"git stash", "", "", ""},
		{"hg config a.b c", "", "", ""},
		{"git", "", "", ""},
		{"git -", "", "", ""},
	} {
		commands := Analyze(tt.command).Commands
		g, ok := commands[0].GitChange()
		more := strings.TrimSpace(map[bool]string{true: "worktrees "}[g.Worktrees] + map[bool]string{true: "submodules "}[g.Submodules])
		switch {
		case g.Branches != nil:
			more = "of " + strings.Join(g.Branches, " ")
		case g.Programs != nil:
			more = "runs " + strings.Join(g.Programs, ", ")
		}
		if g.Dir != "" {
			more = "in " + g.Dir
		}
		got := []string{strings.Join(g.Keys, " "), g.Start, more}
		if want := []string{tt.keys, tt.start, tt.more}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || ok != (tt.keys != "" || g.Worktrees || g.Submodules) {
			t.Errorf("%s: %q %v, want %q", tt.command, got, ok, want)
		}
	}
}
