// git: the commands that read, each with its closed list of flags. To be
// checked against the manual pages of git 2.39 to 2.47.
//
// What a repository's configuration makes these commands run is in [GitHardening] and
// [GitKeyRuns].

package shell

import (
	"slices"
	"strings"
)

// gitGlobal are the flags before the command. Absent on purpose: -c and
// --config-env (any setting), --git-dir, --work-tree (another repository and its
// settings), --exec-path=, -p. So is -C, which is followed like cd where every
// repository is looked at.
const gitGlobal = gitHarmless + "--version --help"

var gitSteers = each(map[string]string{
	"-c --config-env": "changes a setting, which can name a program",
	"--exec-path":     "chooses its programs",
	"-C --git-dir":    "leads to another repository and its settings",
	"--work-tree":     "leads to other files",
	"-p --paginate":   "starts the pager",
})

// gitCommand judges a call of git.
func (a *judge) gitCommand(args []Word) (why, last string) {
	a.out.Git = true
	outer := a.cwds
	defer func() { a.cwds = outer }()
	if a.looked {
		args = a.gitDirectory(args)
	}
	if a.elsewhere() && !a.looked || a.cwds == nil {
		return "git in another directory has that repository's settings", "git"
	}
	global := program{flags: gitGlobal, refused: gitSteers, operands: textOperands, ordered: true}
	use, why := global.parse(args)
	if why != "" {
		return a.gitRefused(why)
	}
	if len(use.operands) == 0 {
		if use.has("--version --help") || len(args) == 0 {
			return "", "git"
		}
		return a.gitRefused("there is no command")
	}
	sub, rest := use.operands[0], use.operands[1:]
	if !sub.Literal {
		return a.gitRefused("which command it runs is only known when it runs")
	}
	if use.has("--help") {
		return a.gitRefused("it opens the manual in another program")
	}
	last = "git " + sub.Text
	p, ok := gitPrograms[sub.Text]
	switch sub.Text {
	case "submodule": // it looks into each of them
		ok = a.looked
	case "describe":
		if a.looked && slices.ContainsFunc(rest, func(w Word) bool { return w.Literal && (w.Text == "--dirty" || strings.HasPrefix(w.Text, "--dirty=")) }) {
			p = describeDirty
		}
	}
	if alias, has := a.aliases[sub.Text]; !ok && has {
		return a.gitAlias(sub.Text, alias, rest)
	}
	if !ok {
		why, _ = a.gitRefused("`" + last + "` is not among the commands known to only read")
		return why, last
	}
	why = a.gitUse(p, sub.Text, rest)
	if p == describeDirty && why == "" {
		a.present().Alone = true
	}
	return why, last
}

// gitDirectory follows the options -C in front of the others, only for this call.
func (a *place) gitDirectory(args []Word) (rest []Word) {
	for len(args) > 1 && args[0].is("-C") {
		dir := args[1]
		args = args[2:]
		if dir.holds() || dir.path == "" || dir.shape > one {
			a.cwds = nil
			return args
		}
		a.cwds = a.below(dir)
	}
	return args
}

func (a *listing) gitRefused(why string) (string, string) {
	a.unlisted()
	return why, "git"
}

func (a *listing) gitUse(p *program, sub string, args []Word) string {
	use, why := p.use(args)
	if why == "" {
		why = flagValues(use)
	}
	if why != "" {
		a.unlisted()
		return why
	}
	a.gitReads(sub, use)
	any := untracked(sub, use)
	if !any || sub == "diff" && !use.has("--no-index") {
		a.gitShows(sub, use)
	}
	a.present().Dirs = a.cwds
	a.present().Names = !any && (listed(gitListing, sub) || !patterned(use) || !showsContent(sub, use))
	return ""
}

// gitListing are the commands that show names of files, and facts, whichever they are asked about.
const gitListing = " ls-files ls-tree status check-ignore check-attr branch tag for-each-ref describe config "

// patterned: the files that it shows are chosen by a pattern, so any of them may be meant.
func patterned(use usage) bool {
	return slices.ContainsFunc(use.operands, func(w Word) bool {
		return w.holds() || pattern(w.prefix) && (w.shape == known || strings.HasPrefix(w.prefix, ":")) ||
			slices.ContainsFunc(w.texts, func(t text) bool { return pattern(t.prefix) })
	})
}

func pattern(pathspec string) bool {
	return strings.HasPrefix(pathspec, ":(") || strings.HasPrefix(pathspec, ":/") || strings.ContainsAny(pathspec, "*?[")
}

// gitReads lists the repository, and what the operands name if they name
// files: outside it that is an error for all but diff and grep. A REVISION:PATH
// is listed as its path.
func (a *listing) gitReads(sub string, use usage) {
	a.read(".")
	for _, f := range use.flags {
		if f.reads {
			a.read(f.Value.paths()...)
		}
		if f.Name == "-L" {
			a.read(f.Value.Text[strings.LastIndexByte(f.Value.Text, ':')+1:])
		}
	}
	named := use.operands
	if sub == "grep" && len(named) > 0 && !use.has("-e -f") {
		named = named[1:]
	}
	for _, w := range named {
		if w.path == "" && !w.Literal {
			a.unlisted()
		}
		for _, p := range w.paths() {
			if _, file, ok := strings.Cut(p, ":"); ok && relative(p) && strings.Trim(file, "/") != "" {
				a.read(strings.TrimLeft(file, "/"))
			}
			if len(p) <= maxName && !strings.Contains(p, "\n") {
				a.read(p)
			}
		}
	}
}

// maxName is how long a file's name can be on Linux, in bytes: longer operands
// name no file.
const maxName = 255

// untracked: it may show the content of files that git does not track, or read
// what a flag names. A diff of two operands, but for A -- B, compares any two
// files when they are not in one repository.
func untracked(sub string, use usage) bool {
	return use.readsFile() || sub == "diff" && len(use.operands) == 2 && use.rest != 1 || sub == "grep" && use.has("--untracked --no-index") ||
		sub == "stash" && use.has("--include-untracked --only-untracked")
}

// flagValues refuses values of flags: placeholders that start the signature
// program, formats that are not literal, and --ignore-submodules unless it keeps
// git out of submodules.
func flagValues(use usage) string {
	for _, f := range use.flags {
		switch f.Name {
		case "--ignore-submodules":
			if !f.Value.Literal || f.Value.Text != "" && !listed(" all dirty ", f.Value.Text) {
				return "it looks into submodules, whose settings may run programs"
			}
		case "--sort":
			if !f.Value.Literal || strings.Contains(f.Value.Text, "signature") {
				return "the order may need the signature program"
			}
		case "--format", "--pretty":
			if !f.Value.Literal && f.Value.Text != "" {
				return "the format is only known when it runs"
			}
			if text := f.Value.Text; strings.Contains(text, "%G") || strings.Contains(text, "(signature") || strings.Contains(text, "(*signature") || strings.Contains(text, "%-G") ||
				strings.Contains(text, "%+G") || strings.Contains(text, "% G") {
				return "the format runs the signature program"
			}
		}
	}
	return ""
}

// gitLists makes a check for a command that with an operand creates something, unless one of these
// flags or one that filters makes it list. The values of the latter are among the operands.
func gitLists(what, flags string) func(usage) string {
	return unless("it creates a "+what, func(use usage) bool {
		return len(use.operands) == 0 || use.has(flags+" --contains --no-contains --merged --no-merged --points-at")
	})
}

// gitConfig: with one operand it prints, with two it sets.
var gitConfig = unless("it changes the configuration", func(use usage) bool {
	n := len(use.operands)
	switch {
	case spreading(use.operands):
		return false
	case use.has("--get --get-all --get-regexp -l --list"), use.are("list"), n == 2 && use.are("get ..."):
		return true
	}
	return n == 1 && strings.Contains(use.operands[0].prefix, ".")
})

// gitStash: a flag before the command means push.
var gitStash = unless("it changes files", func(use usage) bool { return use.first == "list" || use.first == "show" })

var gitReflog = unless("it may change the log", func(use usage) bool {
	return len(use.operands) == 0 || use.are("show ...") || strings.HasPrefix(use.operands[0].prefix, "HEAD")
})

var gitSymbolicRef = unless("it sets a reference", func(use usage) bool { return len(use.operands) == 1 && !spreading(use.operands) })
