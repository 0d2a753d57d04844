// Simple commands as rules see them, and how texts are matched with *, which stands for any run of characters, blanks and line
// breaks too. The shell package finds what a command would do.

package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// inWord stands for a blank inside a word, where an allow rule must not take one word for two.
const inWord = "\x01"

// A text is the forms of one command that patterns are held against.
type text struct {
	command *shell.Command
	allowed []string // for allow rules; none: no allow rule matches
	denied  []string // for deny and ask rules
	exact   bool     // only an allow rule without * matches
	open    bool     // some words are not known before it runs
	mayRun  []string // words that may name programs that it runs
}

func textOf(c *shell.Command) text {
	t := text{command: c, mayRun: c.MayRunNames()}
	t.open = slices.ContainsFunc(c.Words, func(w shell.Word) bool { return !w.Literal })
	if c.IsTest() {
		return text{command: c, denied: []string{c.Name}}
	}
	t.denied = deniedForms(c.Words)
	if c.Subcommand != nil {
		t.denied = append(t.denied, deniedForms(c.Subcommand)...)
	}
	source := c.Source()
	if source != "" && !slices.Contains(t.denied, source) {
		t.denied = append(t.denied, source)
	}
	if !c.Literal || strings.ContainsAny(c.Name, " \t\n") || len(c.Assigns) > 0 || c.ForkBomb {
		return t
	}
	t.exact = c.RunsItsOwnWay()
	t.allowed = []string{strictForm(c.Words)}
	if c.Subcommand != nil && c.SubcommandSafe {
		t.allowed = append(t.allowed, strictForm(c.Subcommand))
	}
	if source != "" && source != t.allowed[0] {
		t.allowed = append(t.allowed, source)
	}
	return t
}

// textsOf returns the texts of words, where one is not known unknown.
func textsOf(words []shell.Word) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = unknown
		if w.Literal {
			texts[i] = w.Text
		}
	}
	return texts
}

// deniedForms joins the words; a program that is named by its path goes by its name too.
func deniedForms(words []shell.Word) []string {
	texts := textsOf(words)
	forms := []string{strings.Join(texts, " ")}
	if len(texts) > 0 && strings.Contains(texts[0], "/") {
		texts[0] = path.Base(texts[0])
		forms = append(forms, strings.Join(texts, " "))
	}
	return forms
}

var withoutBlanks = strings.NewReplacer(" ", inWord, "\t", inWord, "\n", inWord)

func strictForm(words []shell.Word) string {
	texts := textsOf(words)
	for i := range texts {
		texts[i] = withoutBlanks.Replace(texts[i])
	}
	return strings.Join(texts, " ")
}

func (t *text) allowedBy(r *Rule) bool {
	return !(t.exact && r.pattern.wild()) && r.pattern.matchesAny(t.allowed)
}

// coveredBy reports whether the rule is about commands and allows this one.
func (t *text) coveredBy(r *anchored) bool { return r.subject&commands != 0 && t.allowedBy(&r.Rule) }

// fixedWords returns the words of a Bash rule that have no * in them, without the quotes around them.
func (r *Rule) fixedWords() (words []string) {
	for _, word := range strings.Fields(strings.TrimSuffix(r.specifier, ":*")) {
		word = strings.ReplaceAll(word, `\*`, "\x02")
		if !strings.Contains(word, "*") {
			words = append(words, strings.Trim(strings.ReplaceAll(word, "\x02", "*"), `"'`))
		}
	}
	return words
}

// The doubts about whether a rule meets a command.
const (
	unknownWords = "what its words will be is not known before it runs"
	mayBeRun     = "it names that program, and what it does with its words is not known"
)

// deniedBy reports whether a deny or ask rule fires, or why it may: doubt is empty if it does not. A pattern that begins
// with * is not taken to mean a command that only reads.
func (t *text) deniedBy(r *Rule) (fires bool, doubt string) {
	switch {
	case r.pattern.matchesAny(t.denied):
		return true, ""
	case r.pattern.namedAmong(t.mayRun):
		return false, mayBeRun
	case !t.open || t.command.ReadOnly && r.pattern.parts[0] == "":
	case slices.ContainsFunc(t.denied, r.pattern.mayMatch):
		return false, unknownWords
	}
	return false, ""
}

// unknown stands in a text for what is not known before it runs. Only * matches it.
const unknown = "\x00"

// A pattern is literal parts with a * between each two.
type pattern struct {
	parts []string
	// stem is what stands before a " *" at the end. It matches too, so that "ls *" matches "ls". nil: there is no such end.
	stem []string
}

// newPattern reads a pattern; \* is a star itself.
func newPattern(text string) pattern {
	if !strings.Contains(text, `\*`) {
		return pattern{parts: strings.Split(text, "*")}
	}
	const star = "\x02"
	p := pattern{parts: strings.Split(strings.ReplaceAll(text, `\*`, star), "*")}
	for i, part := range p.parts {
		p.parts[i] = strings.ReplaceAll(part, star, "*")
	}
	return p
}

// newCommandPattern reads the specifier of a Bash rule: runs of blanks count as one, and ":*" at the end is " *".
func newCommandPattern(text string) pattern {
	text = strings.Join(strings.Fields(text), " ")
	if start, ok := strings.CutSuffix(text, ":*"); ok {
		text = start + " *"
	}
	p := newPattern(text)
	if stem, ok := strings.CutSuffix(text, " *"); ok {
		p.stem = newPattern(stem).parts
	}
	return p
}

func (p pattern) wild() bool { return len(p.parts) > 1 }

// matches reports whether the whole text fits.
func (p pattern) matches(text string) bool {
	return fits(p.parts, text) || p.stem != nil && fits(p.stem, text)
}

// matchesAny reports whether one of the texts fits.
func (p pattern) matchesAny(texts []string) bool { return slices.ContainsFunc(texts, p.matches) }

// Like reports whether the whole text fits a pattern with *.
func Like(pattern, text string) bool { return fits(strings.Split(pattern, "*"), text) }

func fits(parts []string, text string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// namedAmong reports whether the words hold those that the pattern begins with, in that order: the program, and what
// must follow it, others in between.
func (p pattern) namedAmong(words []string) bool {
	head := strings.Fields(p.parts[0])
	if len(head) == 0 || len(words) == 0 {
		return false
	}
	open := p.wild() && !strings.HasSuffix(p.parts[0], " ") // the last of them goes on
	for _, word := range words {
		if word == head[0] || open && len(head) == 1 && strings.HasPrefix(word, head[0]) {
			if head = head[1:]; len(head) == 0 {
				return true
			}
		}
	}
	return false
}

// mayMatch reports whether a text with an unknown in it could turn out to match. It looks only at what comes before the first
// unknown and behind the last, so it errs towards true.
func (p pattern) mayMatch(text string) bool {
	known, _, found := strings.Cut(text, unknown)
	if !found {
		return false
	}
	behind, end := text[strings.LastIndex(text, unknown)+len(unknown):], p.parts[len(p.parts)-1]
	if !strings.HasSuffix(behind, end) && !strings.HasSuffix(end, behind) {
		return false
	}
	first := strings.TrimSuffix(p.parts[0], " ")
	if len(known) < len(first) {
		return strings.HasPrefix(first, known)
	}
	return p.wild() && strings.HasPrefix(known, first)
}
