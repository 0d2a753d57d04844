// What a call has to do with git directories: what in them is protected while it runs, what it may change there because
// the question named it, and what is put back afterwards.

package pipeline

import (
	"context"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// A gitChange is what the git commands of a call change in configuration, as the question names it.
type gitChange struct {
	places []string // files and directories that they may write, which are looked at afterwards
	repo.Allowed
}

// gitChanges notes the configuration that the call's git commands would change among the facts.
func (r *Rights) gitChanges(f *permission.Facts) (changes gitChange) {
	for i, command := range f.Commands {
		change, ok := command.GitChange()
		changes.Programs = append(changes.Programs, change.Programs...)
		if !ok || command.ReadOnly {
			continue
		}
		for _, dir := range command.Places(f.Dir) {
			git, ok := repo.Discover(r.Places.Disk(shell.From(dir, change.Dir)))
			if !ok || change.Start != "" && !git.OnRemote(change.Start) {
				continue
			}
			if change.Branches != nil && !r.Confining.Git.Sets(git, change.Branches) {
				changes.places = append(changes.places, git.Writes(repo.Effects{})...)
				continue
			}
			places := git.Writes(repo.Effects{Keys: change.Keys, Worktrees: change.Worktrees, Submodules: change.Submodules})
			for _, place := range places {
				f.Accesses = append(f.Accesses, permission.Access{
					Named: r.Places.Seen(place), Real: r.Places.Seen(place), Disk: place, Write: true, Unnamed: true, Inside: true,
					By: i + 1, Part: command.Text,
					Runs: repo.RunsThrough(change.Keys...),
				})
			}
			changes.places, changes.Keys = append(changes.places, places...), append(changes.Keys, change.Keys...)
		}
	}
	return changes
}

// gitWorks notes the repositories outside the roots that the call's git commands work in: git changes them though no word names
// a file of theirs.
func (s scene) gitWorks(ctx context.Context) {
	for i, command := range s.f.Commands {
		to, ok := command.GitWork()
		if !ok {
			continue
		}
		for _, dir := range command.Dirs {
			git, ok := repo.Discover(shell.From(shell.From(s.dir, dir), to))
			if !ok || s.Places.Place(git.Top) == workspace.InRoot {
				continue
			}
			for _, dir := range []string{git.Top, git.Common} {
				same := func(o permission.Access) bool { return o.Real == dir && o.Write && o.By == i+1 }
				if s.Places.Place(dir) != workspace.Outside || dir != git.Top && pathname.Within(git.Top, dir) || slices.ContainsFunc(s.f.Accesses, same) {
					continue
				}
				a := permission.Access{Named: dir, Real: dir, Dir: true, Tree: true, Write: true, By: i + 1, Part: command.Text}
				a.Below = s.below(ctx, &a, nil)
				s.f.Accesses = append(s.f.Accesses, a)
			}
		}
	}
}

// repositories protects what makes git run programs in the roots, and returns what watches over the rest: what the processes of
// the call leave that would make git run programs is moved aside, and what stood there before put back. open are the paths
// that may be changed without that.
func (l layout) repositories(c *Call, f *permission.Facts, roots []string, open func(path string) bool) *gitWatch {
	conf := c.rights.Confining
	git := conf.Git.Guard(slices.Concat(roots, conf.ownDirs()), c.rights.Places.Disk(f.Dir), c.rights.Anchors.Home)
	c.overlookedGit = git.Partial
	for _, dir := range git.Shared {
		l.put(dir, sandbox.Write)
	}
	eased := c.easing(f)
	watched := slices.DeleteFunc(slices.Clone(git.Loose), open)
	trees, places, binds := slices.Concat(roots, git.Shared), 0, conf.fully()
	for _, path := range git.Firm {
		if open(path) {
			continue
		}
		if binds && places < maxBound && !eased(path) && l.bind(trees, path) {
			places++
			continue
		}
		watched = append(watched, path)
	}
	return &gitWatch{watch: conf.Git.Watch(git, watched, c.git.Allowed), open: open, roots: trees, notice: c.aside(), silent: !conf.fully()}
}

// later ends a notice about what was moved aside while a command runs.
const later = " The command still runs: bring it back when it has ended, since it would be moved again."

// aside returns what notifies clients of what was moved aside while the call's processes run; nil for processes of no call.
func (c *Call) aside() func(sandbox.Denial) {
	if c.session.Recorder == nil {
		return nil
	}
	file := c.rights.UserFile
	return func(d sandbox.Denial) {
		c.session.Remark(Noticed{Code: "moved_aside", CallID: c.Use.ID, Message: SandboxDenial{d, allowing(d)}.words(file) + later})
	}
}

// maxBound is how many paths are bound one by one; more are checked afterwards. The number is our
// own: each costs a mount.
const maxBound = 500

// bind makes a path read-only that stands in one of the trees, and keeps the directories above it in their places, up to the working
// tree: moved as a whole, a repository takes along what is bound in it. It reports false for what cannot be bound because
// nothing, or a link, is there.
func (l layout) bind(trees []string, path string) bool {
	for _, tree := range trees {
		if path == tree || !pathname.Within(tree, path) {
			continue
		}
		bound, _ := l.shut(repo.TopBelow(tree, path), path)
		return bound
	}
	return false
}

// easing returns which guarded paths the call may change, to be looked at afterwards: those that the question names for its git
// commands, and what lies in a directory that the call names to be changed as a whole, such as rm -r DIR.
func (c *Call) easing(f *permission.Facts) func(path string) bool {
	var trees []string
	for _, a := range f.Accesses {
		if a.Write && !a.Unnamed && a.Dir && !f.Command(&a).IsGit() {
			trees = append(trees, a.OnDisk())
		}
		if pathname.WithinAny(c.rights.Places.Roots(), a.Opens) { // it is protected, and opened all the same
			trees = append(trees, a.Opens)
		}
	}
	trees = append(trees, c.git.places...)
	return func(path string) bool {
		return pathname.WithinAny(trees, path) || repo.IsLink(path) && pathname.WithinAny(trees, repo.Leads(path))
	}
}

// gitElsewhere reports whether git would work in a git directory outside of what the call may read, as that of a linked worktree
// is: the fast tier shows nothing of that.
func (r *Rights) gitElsewhere(f *permission.Facts) bool {
	places := slices.Concat(r.Places.Roots(), r.Places.Readable())
	for _, c := range f.Commands {
		for _, dir := range c.Dirs {
			if !c.IsGit() {
				break
			}
			if git, ok := repo.Discover(r.Places.Disk(shell.From(f.Dir, dir))); ok && !git.LiesIn(places) {
				return true
			}
		}
	}
	return false
}
