// Which git commands show the content of files that git keeps, and of which.

package shell

import (
	"slices"
	"strings"
)

// gitPatches are the flags with which git log and its like show changes, from
// diff-options.txt.
const gitPatches = "-p -u --patch -U --unified --patch-with-raw --patch-with-stat -c --cc --dd -m -W --function-context --word-diff --word-diff-regex" +
	" --color-words --binary --check --color-moved --diff-merges"

// gitSummaries are those with which git diff and its like show no lines, unless one
// of gitPatches is there too.
const gitSummaries = "-s --no-patch --stat --numstat --shortstat --dirstat --dirstat-by-file --summary --compact-summary --name-only --name-status --raw" +
	" --quiet"

// showsContent: it prints what is in files that git keeps.
func showsContent(sub string, use usage) bool {
	switch sub {
	case "grep":
		return !use.has("-l --files-with-matches --name-only -L --files-without-match -c --count -q --quiet")
	case "cat-file":
		return !use.has("-t -s -e --batch-check") || use.has("-p --batch")
	case "blame", "annotate":
		return true
	case "status":
		return use.has("-v --verbose")
	case "log", "reflog", "rev-list":
		return use.has(gitPatches)
	case "stash":
		if use.first == "list" {
			return use.has(gitPatches)
		}
	case "show", "diff", "diff-tree", "diff-index", "diff-files", "range-diff":
	default:
		return false
	}
	return !use.has(gitSummaries) || use.has(gitPatches)
}

// gitShows lists of which directories a command shows what git keeps there.
func (a *listing) gitShows(sub string, use usage) {
	if !showsContent(sub, use) {
		return
	}
	c := a.present()
	limits := use.operands[len(use.operands)-use.rest:]
	positive := func(w Word) bool { return w.path != "" && !strings.HasPrefix(w.prefix, ":") }
	inRevision := func(w Word) bool { // REVISION:PATH, which is listed as its path
		return w.Literal && strings.Contains(w.Text, ":") && !strings.HasSuffix(w.Text, ":") && !strings.HasPrefix(w.Text, ":/") && !strings.HasPrefix(w.Text, ":(")
	}
	switch {
	case sub == "blame" || sub == "annotate":
	case !a.elsewhere() && len(use.operands) > 0 && (sub == "show" || sub == "cat-file") && !slices.ContainsFunc(use.operands, func(w Word) bool { return !inRevision(w) }):
	case len(limits) > 0 && !patterned(usage{operands: limits}) && !slices.ContainsFunc(limits, func(w Word) bool { return !positive(w) }):
		for _, w := range limits {
			c.Tracked = append(c.Tracked, a.seen(w.paths()...)...)
		}
	default:
		for _, dir := range a.seen(".") {
			if dir != "." {
				dir += "/."
			}
			c.Tracked = append(c.Tracked, dir)
		}
	}
}
