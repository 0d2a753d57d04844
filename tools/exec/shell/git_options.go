// The options of git in front of its subcommand, as rules see them: what is
// left without them, and whether they can be left out. Source: git(1) of 2.47.

package shell

import (
	"slices"
	"strings"
)

// gitHarmless are the options that neither name a directory, a setting or a
// program, nor start the pager.
const gitHarmless = " -P --no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs" +
	" --glob-pathspecs --noglob-pathspecs --icase-pathspecs "

// gitValues are the options whose value is a word of its own. --exec-path and
// --list-cmds have theirs attached.
const gitValues = " -C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source "

// noteSubcommand notes which subcommand of git the command runs.
func (c *Command) noteSubcommand() { c.Subcommand, c.SubcommandSafe = subcommand(c.Words) }

// subcommand returns the words without the options between git and its
// subcommand; nil when there are none. An option that is not known counts as
// one without a value.
func subcommand(words []Word) (rest []Word, safe bool) {
	safe = true
	at := 1
	for ; at < len(words); at++ {
		w := words[at]
		if w.Literal && !w.dashed() {
			break
		}
		switch {
		case w.in(gitHarmless):
		case w.is("-C") && at+1 < len(words):
			at++
			safe = safe && below(words[at])
		case w.in(gitValues):
			at++
			safe = false
		default:
			safe = false
		}
	}
	if at == 1 || at >= len(words) {
		return nil, false
	}
	return append([]Word{words[0]}, words[at:]...), safe
}

// below: the word is a literal path that does not lead out of the directory
// that it is relative to, links apart.
func below(w Word) bool {
	return w.Literal && relative(w.path) && !slices.Contains(strings.Split(w.Text, "/"), "..")
}
