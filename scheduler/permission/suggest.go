package permission

// Rules that would settle the like of a call from now on. They generalise over what differs from call to call, and only
// for programs that are known not to run whatever they are given. What is not known is allowed as it stands or not at all.

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// maxSuggestions is part of the contract with clients.
const maxSuggestions = 5

// Suggest returns allow rules that together would have allowed the call, at most 5. None, when no rules could, or when they
// would allow too much.
func Suggest(f *Facts, v Verdict, a Anchors) (rules []string) {
	if !v.Free || slices.ContainsFunc(f.Commands, namesProtected) {
		return nil
	}
	add := func(rule string) {
		if rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for i := range f.Commands {
		if c := &f.Commands[i]; !c.ReadOnly && slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Part == c.Text && !g.reach }) {
			add(commandRule(c))
		}
	}
	for i := range f.Accesses {
		access := &f.Accesses[i]
		if !access.Write && f.writes(access.Real) {
			continue // leave to write is leave to read
		}
		about := slices.IndexFunc(v.Reasons, func(g Reason) bool { return g.About == access.where() })
		if about < 0 {
			continue
		}
		rule := a.pathRule(access)
		if access.hides() {
			rule = "" // of what is hidden a rule opens no more than was asked about
		}
		if add(rule); rule == "" {
			for _, exact := range v.Reasons[about].wants {
				if access.hides() || !isPassing(exact) {
					add(exact)
				}
			}
		}
	}
	for _, to := range read(f).hosts {
		if to.by == 0 || slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Part == to.host }) {
			add("WebFetch(domain:" + to.name + ")")
		}
	}
	if f.External != "" || f.Opaque && len(f.Commands) == 0 && len(f.Hosts) == 0 {
		add(f.Tool)
	}
	if len(rules) > maxSuggestions || !settle(rules, f, v, a) {
		return nil
	}
	return rules
}

// settle reports whether with the rules in force none of what the verdict rests on would be left.
func settle(texts []string, f *Facts, v Verdict, a Anchors) bool {
	var rules []Rule
	for _, text := range texts {
		rule, err := ParseRule(AllowList, text, Origin{})
		if err != nil {
			return false
		}
		rules = append(rules, rule)
	}
	c := read(f)
	missing, _ := uncovered(&c, Policy{Rules: Compile(rules, a)})
	return !slices.ContainsFunc(missing, func(m Reason) bool {
		return slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.same(m) })
	})
}

// namesProtected reports whether a command that may write has a word with a protected file in it, also behind a flag: whoever
// may do that always has leave for more than the rule says.
func namesProtected(c shell.Command) bool {
	return !c.ReadOnly && slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		_, value, _ := strings.Cut(w.Text, "=")
		flagged := strings.TrimLeft(w.Text, "-")
		flagged = flagged[min(1, len(flagged)):]
		return slices.ContainsFunc([]string{w.Text, value, flagged}, func(name string) bool { return protectedPath(path.Clean(name), 0) != "" })
	})
}

func commandRule(c *shell.Command) string {
	if !c.Literal || len(c.Assigns) > 0 || c.DenyOnly {
		return ""
	}
	words := c.Words
	if c.Subcommand != nil && c.SubcommandSafe {
		words = c.Subcommand
	}
	if specifier := generalised(words); specifier != "" {
		return "Bash(" + specifier + ")"
	}
	return ""
}

// generalised returns the words that say what a command is, and a star for what it is about. Empty: that would allow too
// much.
func generalised(words []shell.Word) string {
	for _, runner := range runners {
		if rest, ok := behind(words, strings.Fields(runner)); ok {
			if inner := generalised(rest); strings.HasSuffix(inner, " *") {
				return runner + " " + inner
			}
			return ""
		}
	}
	name := words[0].Text
	own, known := programs[strings.TrimPrefix(name, "./node_modules/.bin/")]
	switch {
	case known && own.bare:
		return name + " *"
	case known:
		return own.generalised(words)
	case isScript(name):
		return name + " *"
	case strings.Contains(name, "/"), slices.Contains(tooMuch, unversioned.ReplaceAllString(name, "")):
		return ""
	}
	return exactly(words)
}

// behind returns the words after those that name a runner.
func behind(words []shell.Word, runner []string) (rest []shell.Word, ok bool) {
	if len(words) <= len(runner) {
		return nil, false
	}
	for i, text := range runner {
		if words[i].Text != text {
			return nil, false
		}
	}
	return words[len(runner):], words[len(runner)].Literal
}

func (p program) generalised(words []shell.Word) string {
	names := []string{words[0].Text}
	for _, word := range words[1:min(3, len(words))] {
		if !word.Literal {
			break
		}
		names = append(names, word.Text)
	}
	one, two := strings.Join(names[:min(2, len(names))], " "), strings.Join(names, " ")
	switch {
	case len(names) == 1:
		if p.targets && len(words) == 1 {
			return one
		}
	case listed(p.open, names[1]), p.targets && isName(names[1]):
		return one + " *"
	case len(names) == 3 && listed(p.open, names[1]+" "+names[2]), len(names) == 3 && listed(p.scripts, names[1]) && (isName(names[2]) || isOwnDir(names[2])):
		return two + " *"
	case listed(p.exact, names[1]):
		return exactly(words)
	}
	return ""
}

// listed reports whether a list that is separated by commas holds an entry.
func listed(list, entry string) bool {
	return slices.Contains(strings.Split(list, ", "), entry)
}

// exactly is the command as it stands, if there is nothing in it that another call would have otherwise, and no secret.
func exactly(words []shell.Word) string {
	if len(words) > 5 {
		return ""
	}
	texts := make([]string, len(words))
	for i, word := range words {
		if texts[i] = word.Text; !word.Literal || !isName(strings.TrimLeft(word.Text, "-")) || delicate.MatchString(word.Text) {
			return ""
		}
	}
	return strings.Join(texts, " ")
}

var (
	nameShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:.-]{0,30}$`)
	runs      = regexp.MustCompile(`[A-Za-z0-9]+`)
	digits    = regexp.MustCompile(`[0-9]`)
	fileShape = regexp.MustCompile(`\.[a-z]{1,6}$`)
	delicate  = regexp.MustCompile(`(?i)pass|token|secret|key|auth|login|cred|bearer|force|delete|destroy|drop|mirror|purge|flush|reset|clear|abort|discard|prune|expire|--hard|(?-i:^-[A-Za-z]*[fDBCM])`)
	// unversioned takes the version off the name of a language.
	unversioned = regexp.MustCompile(`[0-9.]+$`)
	scriptShape = regexp.MustCompile(`^(\./)?([A-Za-z0-9_-]+/)*[A-Za-z0-9_.-]+\.(sh|bash|py|rb|pl|js|mjs|ts|php)$`)
)

// isName reports whether a word names a subcommand, a target or a script, and no file, number or identifier.
func isName(text string) bool {
	return nameShape.MatchString(text) && !fileShape.MatchString(text) && !isPassing(text)
}

// isScript reports whether a program is a script of the workspace.
func isScript(name string) bool {
	return strings.Contains(name, "/") && scriptShape.MatchString(name) && !isPassing(name)
}

// isOwnDir reports whether a word is a directory of the workspace by name.
func isOwnDir(text string) bool {
	return text == "." || strings.HasPrefix(text, "./") && !strings.ContainsAny(text, "*()") && !strings.Contains(text, "..") && !isPassing(text)
}

// isPassing reports whether there is a part in a text, such as a hash or the number of an issue, that next time is another.
func isPassing(text string) bool {
	return slices.ContainsFunc(runs.FindAllString(text, -1), func(run string) bool {
		count := len(digits.FindAllString(run, -1))
		return count >= 3 || count >= 2 && len(run) >= 6 || len(run) > 24
	})
}

// temporary are directories whose contents nobody relies on.
var temporary = []string{"/tmp", "/var/tmp"}

// pathRule generalises to the directory. Outside the roots that directory must be worth a name of its own: not a child
// of /, not home.
func (a Anchors) pathRule(access *Access) string {
	tool := "Read"
	if access.Write {
		tool = "Edit"
	}
	dir := access.Real
	if !access.Dir {
		dir = path.Dir(dir)
	}
	if access.Real != access.Named || strings.ContainsAny(dir, `*?[]\()!`) || protectedPath(access.Real, 0) != "" {
		return ""
	}
	for _, root := range a.Roots {
		switch rel, ok := below(root, dir); {
		case ok && rel == "." && path.Ext(access.Real) == "":
			return ""
		case ok && rel == ".":
			return tool + "(./*" + path.Ext(access.Real) + ")"
		case ok && isPassing(rel):
			return ""
		case ok:
			return tool + "(./" + rel + "/**)"
		}
	}
	if access.Write || isPassing(dir) || slices.ContainsFunc(temporary, func(t string) bool { _, in := below(t, dir); return in }) {
		return ""
	}
	for _, home := range a.forms(a.Home) {
		switch rel, ok := below(home, dir); {
		case ok && strings.HasPrefix(rel, "."):
			return ""
		case ok:
			return tool + "(~/" + rel + "/**)"
		}
	}
	if strings.Count(dir, "/") < 2 {
		return ""
	}
	return tool + "(/" + dir + "/**)"
}
