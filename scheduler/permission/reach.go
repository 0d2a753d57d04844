// What a rule that lets a command run does not cover: the paths that the command names outside the places of the session,
// what the sandbox hides, and hosts. Each of them needs a rule that names it. Words of commands of which it is not known what
// they do with them count as paths too.

package permission

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
)

// reaches reports whether a part of a script names a path for which permission to run is not enough.
func (a *Access) reaches() bool {
	return a.Part != "" && !a.Unnamed && (a.Hidden != "" || !a.Inside && !a.Open || a.widens())
}

// widens reports whether more than the path has to become writable.
func (a *Access) widens() bool { return a.Opens != "" && !a.Fresh }

// Opens reports whether rules or the mode permit that the directory of an access becomes writable as a whole.
func (p Policy) Opens(a *Access) bool {
	if p.Mode == BypassPermissions {
		return true
	}
	dir := Access{Named: a.Opens, Real: a.Opens, Dir: true, Write: true, Hidden: a.Hidden, Part: a.Part}
	return p.Rules.first(AllowList, func(r *anchored) bool { return r.coversAccess(&dir) }) != nil
}

// OpensMention reports whether the command that mentions the path may write it: by a rule for the path, or if the call was asked
// about, because the question named it. A mode that does not ask opens nothing that only might be written.
func (p Policy) OpensMention(a *Access, asked bool) bool {
	if p.Mode == BypassPermissions {
		p.Mode = Default
	}
	read, _ := p.freeAccess(a)
	written := *a
	written.Write, written.Mentioned = true, false
	free, _ := p.freeAccess(&written)
	return free || asked && !read
}

// hides reports whether the sandbox hides the path from scripts.
func (a *Access) hides() bool { return a.Part != "" && a.Hidden != "" }

// ruleNaming returns a Bash rule that matches a command, or the wrapper around it, and has a word without a * for which
// named reports true; nil: there is none.
func (l *coverage) ruleNaming(by int, named func(r *anchored, word string) bool) *anchored {
	at := shell.Outermost(l.Commands, by)
	return l.policy.Rules.first(AllowList, func(r *anchored) bool {
		return l.texts[at].coveredBy(r) && slices.ContainsFunc(r.fixedWords(), func(word string) bool { return named(r, word) })
	})
}

// namedBy returns the Bash rule that has the word of the access in it, or a directory above, without a *; nil: there is
// none. The word does not name what a link leads to.
func (l *coverage) namedBy(a *Access) *anchored {
	if a.By == 0 || a.Real != a.Named {
		return nil
	}
	dirs := l.Commands[a.By-1].Places(l.Dir)
	return l.ruleNaming(a.By-1, func(r *anchored, word string) bool {
		return slices.ContainsFunc(located(shell.PathsIn(word), dirs), func(name string) bool {
			opens := !a.widens() || !r.pattern.wild() || pathname.Within(name, a.Opens) // an exact rule names all that its command does
			return opens && pathname.Within(name, a.Named) && a.within(name)
		})
	})
}

// within reports whether a name lies in what is hidden, if the access is to something that is.
func (a *Access) within(name string) bool {
	return a.Hidden == "" || pathname.Within(a.Hidden, name)
}

// namesHidden reports whether a path rule begins in what is hidden, so that it is about that and not about all around it.
func (r *anchored) namesHidden(a *Access) bool {
	return slices.ContainsFunc(r.places, func(p place) bool { return p.begin != "" && a.within(p.begin) && p.holds(a.Real, a.Dir) })
}

// Mentions returns an access for each path that a word of a command may name which is not known to read or write it. Where
// they lead, and which are there, is not looked up.
func Mentions(f *Facts) (found []Access) {
	mentioned, _ := mentionsOf(f)
	for _, m := range mentioned {
		named := func(a Access) bool { return a.Named == m.path }
		if m.path != "/" && !slices.ContainsFunc(found, named) && !slices.ContainsFunc(f.Accesses, named) {
			found = append(found, Access{Named: m.path, By: m.by, Part: m.command.Text, Mentioned: true, MayWrite: m.written})
		}
	}
	return found
}

// RunsAll reports whether the rule permits every command to run.
func (r *Rule) RunsAll() bool {
	return r.List == AllowList && r.tool == "Bash" && r.subject == wholeTool
}

// Opens reports whether the rule names paths or hosts.
func (r *Rule) Opens() bool { return r.subject&(paths|hosts) != 0 }

// OutsidePattern returns the directory, as path rules have it, in which a word of a Bash rule that permits names paths by a *,
// if it lies outside of base and of where programs look for files anyway; empty: there is none.
func (r *Rule) OutsidePattern(base string) string {
	if r.List != AllowList || r.subject&commands == 0 {
		return ""
	}
	for _, word := range strings.Fields(r.specifier) {
		at := strings.IndexByte(word, '*')
		end := strings.LastIndexByte(word[:max(at, 0)], '/')
		if end < 1 || word[0] != '/' {
			continue
		}
		dir := path.Clean(word[:end])
		if !pathname.WithinAny(ordinaryPlaces, dir) && (base == "" || !pathname.Within(base, dir)) {
			return "/" + dir
		}
	}
	return ""
}

// ordinaryPlaces are the system's public directories, as settings have them by default, and those for temporary files.
var ordinaryPlaces = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/dev", "/proc", "/tmp", "/var/tmp"}

// rulesFor returns the path rules that permit an access and nothing besides; none, if its name cannot be written as one.
func (a Anchors) rulesFor(access *Access) (rules []string) {
	tool, all := "Read", ""
	if access.Write {
		tool = "Edit"
	}
	if access.Dir {
		all = "/**"
	}
	names := []string{access.Real}
	if access.Named != access.Real {
		names = append(names, access.Named)
	}
	for _, name := range names {
		if name == "/" || strings.ContainsAny(name, "*?[]\\!#\n") || strings.HasSuffix(name, " ") {
			return nil
		}
		rules = append(rules, tool+"("+a.written(name)+all+")")
	}
	return rules
}

// written returns an absolute path as rules have it.
func (a Anchors) written(name string) string {
	for _, home := range a.forms(a.Home) {
		if rel, ok := below(home, name); ok && rel != "." {
			return "~/" + rel
		}
	}
	return "/" + name
}

// rulesFor returns the rules that permit an access, with what has to become writable for it.
func (r *Rules) rulesFor(a *Access) []string {
	around := cmp.Or(r, noRules).anchors
	rules := around.rulesFor(a)
	if !a.widens() {
		return rules
	}
	if a.Real == a.Named && pathname.Within(a.Opens, a.Named) {
		rules = nil // what is in the directory needs no other rule
	}
	return append(around.rulesFor(&Access{Named: a.Opens, Real: a.Opens, Dir: true, Write: true}), rules...)
}

// maxMentions bounds how many paths in words of a script are held against rules: with more, the call asks.
const maxMentions = 10_000

// A mention is a word that may be a path, of a command whose reads and writes are unknown.
type mention struct {
	by      int // 1 + the command's index
	command *shell.Command
	path    string
	written bool // the command may write it
}

// mentionsOf returns what the words of a call's commands mention, each path once, and whether there are more than are
// looked at.
func mentionsOf(f *Facts) (found []mention, more bool) {
	type key struct {
		path    string
		written bool
	}
	seen, looked := map[key]bool{}, 0
	for i := range f.Commands {
		command := &f.Commands[i]
		if !command.MayTouchMore() {
			continue
		}
		writes, dirs := command.MayWriteMore(), command.Places(f.Dir)
		for _, word := range command.Mentions() {
			names := append(located(word.Paths, dirs), f.Patterns[word.Word]...)
			if looked += 1 + len(names); looked > maxMentions {
				return found, true
			}
			for _, name := range names {
				k := key{name, writes && !word.Sets}
				if !seen[k] {
					seen[k] = true
					found = append(found, mention{i + 1, command, name, k.written})
				}
			}
		}
	}
	return found, false
}

// located returns the paths as seen from each of the directories, each once.
func located(paths, dirs []string) (found []string) {
	for _, name := range paths {
		for _, dir := range dirs {
			if full := shell.From(dir, name); !slices.Contains(found, full) {
				found = append(found, full)
			}
		}
	}
	return found
}

// maxNamed bounds how many protected files are named to the user: each of them asks.
const maxNamed = 16

// meddling returns the grounds to ask about commands whose writes are unknown and that have a word which names something
// protected.
func (c *call) meddling(guarded []guard) (found []Reason) {
	for _, m := range c.mentioned {
		inOther := func(g Reason) bool { return pathname.Within(g.About, m.path) }
		if !m.written || len(found) == maxNamed || slices.ContainsFunc(found, inOther) {
			continue
		}
		if what := meddles(m.path, 0, guarded); what != "" {
			found = append(found, Reason{Code: NamesProtected, About: m.path, Detail: what, Part: m.command.Text})
		}
	}
	return found
}
