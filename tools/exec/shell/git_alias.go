// Aliases of git: what a command stands for that git itself has not. Source:
// git-config(1) of 2.47, "alias.*", and split_cmdline in git's alias.c.

package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// gitAlias judges a command of git by what it stands for. The configuration that it
// was taken from is that of the directory in which the script starts.
func (a *judge) gitAlias(name, alias string, rest []Word) (why, last string) {
	c := a.present()
	if c.Alias = name; a.elsewhere() {
		return a.gitRefused("which alias it is depends on the repository there")
	}
	if script, ok := strings.CutPrefix(alias, "!"); ok {
		if text, ok := withWords(script, rest); ok && a.looked {
			if a.aliasScript(name, text) {
				return "", ""
			}
			return a.gitRefused("the alias `" + name + "` runs a script")
		}
		a.deniedWords("git alias", append([]Word{{Text: script}}, rest...))
		return a.gitRefused("the alias `" + name + "` runs a script")
	}
	words, ok := splitAlias(alias)
	if !ok {
		return a.gitRefused("the alias `" + name + "` is not one that git understands")
	}
	args := append(words, rest...)
	aliases := a.aliases
	a.aliases = without(aliases, name) // what stands for itself is not followed
	why, last = a.gitCommand(args)
	if a.aliases = aliases; why != "" {
		a.denied("git alias", append([]Word{literalWord("git")}, args...))
		why = "it stands for `git " + alias + "`, and " + why
	}
	return why, last
}

// withWords is the script of an alias as sh gets it: its "$@" at the end has become
// the words. ok is false where they are not known.
func withWords(script string, rest []Word) (text string, ok bool) {
	for _, w := range rest {
		if !w.Literal || strings.ContainsAny(w.Text, "'\n") {
			return "", false
		}
		script += " '" + w.Text + "'"
	}
	return script, true
}

// aliasScript judges the script of an alias, which sh runs in the top directory of the
// repository: so the repository is all that it may name there.
func (a *judge) aliasScript(name, text string) (ok bool) {
	out, before, aliases, stdin := a.out, len(a.refusals), a.aliases, a.stdin
	a.beside(func() {
		a.variables, a.aliases = nil, without(aliases, name)
		a.scriptIn("git alias", text, syntax.LangBash)
		a.asPOSIX("git alias", text, a.out.Commands[len(out.Commands):], a.out.Redirects[len(out.Redirects):])
	})
	a.aliases, a.stdin = aliases, stdin
	elsewhere := len(a.out.Redirects) > len(out.Redirects)
	for _, c := range a.out.Commands[len(out.Commands):] {
		elsewhere = elsewhere || slices.ContainsFunc(c.Reads, func(p string) bool { return relative(p) && !(p == "." && base(c.Name) == "git") })
	}
	a.mute(before)
	return len(a.refusals) == before && !elsewhere
}

func without(aliases map[string]string, name string) map[string]string {
	rest := maps.Clone(aliases)
	delete(rest, name)
	return rest
}

// splitAlias takes an alias apart as git does: at white space that is not quoted, where
// a backslash keeps the next character.
func splitAlias(alias string) (words []Word, ok bool) {
	var b strings.Builder
	quote, begun := byte(0), false
	for i := 0; i < len(alias); i++ {
		switch c := alias[i]; {
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if begun {
				words = append(words, literalWord(b.String()))
				b.Reset()
			}
			begun = false
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			if i++; i == len(alias) {
				return nil, false
			}
			b.WriteByte(alias[i])
		default:
			b.WriteByte(c)
		}
		begun = true
	}
	if begun {
		words = append(words, literalWord(b.String()))
	}
	return words, quote == 0 && len(words) > 0
}
