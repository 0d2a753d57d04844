// git: the commands that change a repository's configuration, or what else makes git run programs,
// in everyday work. What is missing here cannot write there, in a sandbox that protects it. Source:
// the manual of git 2.39 to 2.47.

package shell

import (
	"path"
	"slices"
	"strings"
)

// A GitChange is what a git command changes, besides files and history, in the repository it works
// in.
type GitChange struct {
	// Keys are the settings that it sets, by their names; NAME.* is every setting of a section.
	// Empty: none.
	Keys []string
	// Worktrees and Submodules: it moves or removes linked worktrees; it adds, moves or removes
	// submodules.
	Worktrees, Submodules bool
	// Start is the name of a branch or commit that a new branch may come to follow, which sets Keys
	// only if it is on a remote; empty: Keys are set in any case.
	Start string
	// Branches are those whose settings it removes, which changes Keys only if there are any; nil:
	// Keys are set in any case.
	Branches []string
	// Programs are the command lines that a rebase is told to run between its steps.
	Programs []string
	// Dir is the directory, as a path from the one that the command runs in, that -C leads to;
	// empty: that one.
	Dir string
}

var (
	branchKeys    = []string{"branch.*"}
	remoteKeys    = []string{"remote.*", "branch.*"}
	submoduleKeys = []string{"submodule.*"}
	sparseKeys    = []string{"core.sparsecheckout", "core.sparsecheckoutcone", "extensions.worktreeconfig", "index.sparse"}
)

// GitChange returns what the command changes in a repository's configuration; false if it is not a
// git command, or not one that is known to change any.
func (c Command) GitChange() (g GitChange, ok bool) {
	words := c.gitWords()
	if g.Dir = c.gitDir(); !c.runsGit(words) {
		return g, false
	}
	g.of(words[1].Text, words[2:])
	return g, len(g.Keys) > 0 || g.Worktrees || g.Submodules
}

// gitShows are commands of git that change nothing but what git keeps to be faster.
const gitShows = " status diff log show blame annotate grep ls-files ls-tree ls-remote rev-parse rev-list describe cat-file for-each-ref" +
	" shortlog show-ref name-rev merge-base count-objects diff-tree diff-index check-ignore check-attr var version help "

// GitWork reports whether the command is a git that may change the repository it works in, and
// returns the directory that -C leads to, as GitChange.Dir.
func (c Command) GitWork() (dir string, ok bool) {
	words := c.gitWords()
	if c.ReadOnly || c.Remote || !c.runsGit(words) {
		return "", false
	}
	return c.gitDir(), !listed(gitShows, words[1].Text)
}

// IsGit reports whether the command is git, by whatever path.
func (c *Command) IsGit() bool { return base(c.Name) == "git" }

// gitWords returns the command's words, of a git without the options in front of its subcommand.
func (c *Command) gitWords() []Word {
	if c.Subcommand != nil {
		return c.Subcommand
	}
	return c.Words
}

// runsGit reports whether the words are a git with a subcommand.
func (c *Command) runsGit(words []Word) bool { return len(words) > 1 && base(words[0].Text) == "git" }

// gitDir returns the directory that the options -C in front of the subcommand lead to, as
// GitChange.Dir.
func (c *Command) gitDir() string {
	if c.Subcommand == nil {
		return ""
	}
	return directoryFlag(c.Words[:len(c.Words)-len(c.Subcommand)+1])
}

// of notes what a command of git changes.
func (g *GitChange) of(command string, args []Word) {
	named := plainWords(args)
	first := ""
	if len(named) > 0 {
		first = named[0]
	}
	switch command {
	case "config":
		g.Keys = configKeys(args, named)
	case "remote":
		if first != "" && !listed(" show get-url prune update ", first) {
			g.Keys = remoteKeys
		}
	case "push", "pull", "fetch":
		if flagged(args, "u", "--set-upstream") {
			g.Keys = branchKeys
		}
	case "branch", "checkout", "switch", "worktree":
		g.branches(command, args, named)
	case "submodule":
		if first != "" && !listed(" status summary foreach ", first) {
			g.Keys, g.Submodules = submoduleKeys, true
		}
	case "rebase":
		g.Programs = rebasePrograms(args)
	case "sparse-checkout":
		if first != "list" {
			g.Keys = sparseKeys
		}
	case "init":
		if first == "" {
			g.Keys = []string{"core.*", "extensions.*"}
		}
	}
}

// branches is for the commands that make branches, which follow one of a remote that they begin at
// or whose name they have.
func (g *GitChange) branches(command string, args []Word, named []string) {
	least := map[string]int{"branch": 2, "checkout": 1, "switch": 1, "worktree": 3}[command] // words that name where to begin
	switch {
	case command == "worktree" && len(named) > 0 && named[0] != "add":
		g.Worktrees = listed(" remove move prune repair ", named[0])
	case flagged(args, "", "--no-track"):
	case command == "branch" && flagged(args, "umMcC", "--set-upstream-to", "--unset-upstream", "--move", "--copy", "--edit-description"),
		command != "worktree" && flagged(args, "t", "--track"):
		g.Keys = branchKeys
	case command == "branch" && flagged(args, "dD", "--delete"):
		g.Keys, g.Branches = branchKeys, named
	case len(named) >= least && named[len(named)-1] != "":
		g.Keys, g.Start = branchKeys, named[len(named)-1]
	}
}

// configKeys returns the settings that git config is told to set in the repository's own file.
func configKeys(args []Word, named []string) []string {
	if flagged(args, "f", "--global", "--system", "--file", "--blob") {
		return nil
	}
	for _, key := range named {
		switch {
		case key == "":
			return nil
		case strings.Contains(key, "."):
			return []string{key}
		case !listed(" set unset get list edit rename-section remove-section ", key):
			return []string{key + ".*"}
		}
	}
	return nil
}

// plainWords returns the words that are not flags; one that is not literal is empty. Flags that
// take a value are not told from others, so it is good only for what asks, not for what allows.
func plainWords(args []Word) (found []string) {
	for _, w := range args {
		switch {
		case w.dashed():
		case w.Literal:
			found = append(found, w.Text)
		default:
			found = append(found, "")
		}
	}
	return found
}

// flagged reports whether one of the short flags, also in a cluster, or of the long ones is among
// the words.
func flagged(args []Word, short string, long ...string) bool {
	return slices.ContainsFunc(args, func(w Word) bool {
		name, _, _ := strings.Cut(w.Text, "=")
		if strings.HasPrefix(name, "--") {
			return slices.Contains(long, name)
		}
		return strings.HasPrefix(name, "-") && strings.ContainsAny(name[1:], short)
	})
}

// rebasePrograms returns the literal values of -x and --exec.
func rebasePrograms(args []Word) (programs []string) {
	for i, w := range args {
		name, value, attached := strings.Cut(w.Text, "=")
		switch {
		case name == "--exec" && attached && w.Literal:
			programs = append(programs, value)
		case (w.Text == "-x" || w.Text == "--exec") && i+1 < len(args) && args[i+1].Literal:
			programs = append(programs, args[i+1].Text)
		case strings.HasPrefix(w.Text, "-x") && len(w.Text) > 2 && w.Literal:
			programs = append(programs, w.Text[2:])
		}
	}
	return programs
}

// directoryFlag returns the directory that the flags -C among the options of git itself lead to,
// each from the one before.
func directoryFlag(options []Word) (dir string) {
	for i, w := range options {
		switch {
		case w.Text != "-C" || i+1 == len(options) || !options[i+1].Literal:
		case path.IsAbs(options[i+1].Text):
			dir = options[i+1].Text
		default:
			dir = path.Join(dir, options[i+1].Text)
		}
	}
	return dir
}
