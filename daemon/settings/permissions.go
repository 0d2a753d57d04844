package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// looseness orders the modes by how much runs without a question. Plan and DontAsk each deny what the other lets pass.
var looseness = [...]int{
	permission.Default: 1, permission.AcceptEdits: 2, permission.Plan: 0, permission.DontAsk: 0, permission.BypassPermissions: 3,
}

func modeOf(field **Mode) scalar[permission.Mode] {
	return scalar[permission.Mode]{
		parse: simple("default, acceptEdits, plan, dontAsk or bypassPermissions", func(n *node) (permission.Mode, bool) {
			mode, known := modeNamed(n.word)
			return mode, known && n.kind == text
		}),
		text:   permission.Mode.String,
		set:    func(v value[permission.Mode]) { *field = &Mode{v.is, v.origin} },
		get:    func() permission.Mode { return cmp.Or(*field, &Mode{Mode: permission.Default}).Mode },
		looser: func(a, b permission.Mode) bool { return looseness[a] > looseness[b] },
	}
}

func modeNamed(name string) (permission.Mode, bool) {
	if name == "manual" {
		return permission.Default, true
	}
	for mode := permission.Default; mode <= permission.BypassPermissions; mode++ {
		if mode.String() == name {
			return mode, true
		}
	}
	return permission.Default, false
}

// rules is a list of permission rules.
func rules(list permission.List, field *[]permission.Rule) entries[permission.Rule] {
	e := entries[permission.Rule]{
		expected: listOfTexts, field: field,
		parse:    ruleIn(list, func(word string) (string, string) { return word, "" }),
		identity: ruleKey,
		line:     func(k *key, r *permission.Rule) Line { return Line{k.name, r.Text, r.Origin} },
	}
	if list == permission.AllowList {
		e.managed, e.check = keyManagedRules, (*reader).runsOnly
	}
	return e
}

// ruleIn returns a function that parses the rules of a list. text returns the rule that an entry stands for, or what is
// expected in its place.
func ruleIn(list permission.List, text func(word string) (rule, expected string)) func(r *reader, k *key, m member) (permission.Rule, bool) {
	return func(r *reader, k *key, m member) (permission.Rule, bool) {
		var wrong error
		var written string
		rule, ok := each(func(word string, origin permission.Origin) (rule permission.Rule, expected string) {
			if len(word) > maxRuleBytes {
				return rule, fmt.Sprintf("at most %d bytes long", maxRuleBytes)
			}
			if word, expected = text(word); expected == "" {
				written = word
				rule, wrong = permission.ParseRule(list, word, origin)
			}
			return rule, expected
		})(r, k, m)
		if wrong != nil {
			tool, _, _ := strings.Cut(written, "(")
			r.add(Warning{Code: Wrong, File: r.place.file, Line: m.value.line, Tool: tool, Text: wrong.Error()})
		}
		return rule, ok && wrong == nil
	}
}

// ruleKey returns the same for rules that mean the same. A path behind one slash means another place in each file.
func ruleKey(r *permission.Rule) string {
	if strings.Contains(r.Text, "(/") && !strings.Contains(r.Text, "(//") {
		return r.Text + " " + r.Origin.Base
	}
	return r.Text
}

// runsOnly warns of rules that permit commands to run and may have been meant to open paths and hosts too: each rule for all
// commands, unless the file has rules that open something, and each rule with a * in a path outside.
func (r *reader) runsOnly(rules []permission.Rule) {
	opens := slices.ContainsFunc(rules, func(rule permission.Rule) bool { return rule.Opens() })
	for i := range rules {
		rule := &rules[i]
		if rule.RunsAll() && !opens {
			r.warn(rule.Origin.Line, "the rule %q permits commands to run, and no longer what they name outside the roots: add Read(...), Edit(...) or WebFetch(domain:...) for paths and hosts that they may reach", rule.Text)
		}
		if dir := rule.OutsidePattern(r.place.base); dir != "" {
			r.warn(rule.Origin.Line, "the rule %q permits a command to run, and no longer to reach paths outside the roots that its * stands for: add Read(%s/**) or Edit(%s/**)", rule.Text, dir, dir)
		}
	}
}

// directories is a list of directories. A relative one is below the file's workspace, else below the scope's first root.
func directories(field *[]Entry) entries[Entry] {
	return paths(nil, (*merger).absolute, field)
}

// absolute resolves a path of a file.
func (m *merger) absolute(s *source, path string) (absolute, why string) {
	rest, home := strings.CutPrefix(path, "~/")
	switch {
	case path == "" || strings.Contains(path, "\x00"):
		return "", "it is not a path"
	case path == "~" || home:
		if m.home == "" {
			return "", "the home directory is not known"
		}
		return filepath.Join(m.home, strings.TrimPrefix(rest, "~")), ""
	case filepath.IsAbs(path):
		return filepath.Clean(path), ""
	case s.place.level == workspace:
		return filepath.Join(s.place.base, path), ""
	case len(m.scope.Roots) > 0:
		return filepath.Join(m.scope.Roots[0], path), ""
	}
	return "", noBase
}

const noBase = "it is relative, and there is no root that it could be relative to"

// environment is the variables of calls and hooks.
func environment(field *[]Variable) entries[Variable] {
	return entries[Variable]{
		object: true,
		parse: func(r *reader, _ *key, m member) (Variable, bool) {
			name := "env." + shortened(m.key)
			switch {
			case m.value.kind != text:
				r.wrong(&m.value, name, "a text")
			case m.key == "" || strings.ContainsAny(m.key, "=\x00"):
				r.warn(m.line, "%q is not a name for an environment variable; it has no effect", shortened(m.key))
			case strings.Contains(m.value.word, "\x00"):
				r.warn(m.value.line, "%s holds a NUL character, which no environment variable can; it has no effect", name)
			default:
				return Variable{m.key, m.value.word, r.origin(m.line)}, true
			}
			return Variable{}, false
		},
		identity: func(v *Variable) string { return v.Name },
		sorted:   func(v *Variable) string { return v.Name },
		line:     func(_ *key, v *Variable) Line { return Line{"env." + v.Name, v.Value, v.Origin} },
		field:    field,
		done: func(m *merger, all []Variable) {
			filter := m.out.Sandbox.Filter()
			for _, v := range all {
				if filter.Withheld(v.Name) {
					m.warn(v.Origin, "env.%s is kept from commands and hooks, since its name looks like a credential or would change what programs run; only headers of HTTP hooks can hold it", shortened(v.Name))
				}
			}
		},
	}
}
