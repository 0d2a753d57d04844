// One function for each key of a settings file but hooks. What a value comes to beside those of other files is not known
// here.

package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

func (r *reader) permissions(m member) {
	for _, m := range r.members(&m.value, "permissions.") {
		if read, known := permissionKeys[m.key]; known {
			read(r, m)
		} else {
			r.unknown(m, "permissions.", permissionNames)
		}
	}
}

// lists are the lists of rules by their names in settings files.
var lists = map[string]permission.List{
	permission.DenyList.String():  permission.DenyList,
	permission.AskList.String():   permission.AskList,
	permission.AllowList.String(): permission.AllowList,
}

func (r *reader) rules(m member) {
	for _, t := range r.texts(&m.value, "permissions."+m.key) {
		if len(t.word) > maxRuleBytes {
			r.wrong(&t, "an entry of permissions."+m.key, fmt.Sprintf("at most %d bytes long", maxRuleBytes))
			continue
		}
		rule, err := permission.ParseRule(lists[m.key], t.word, r.origin(t.line))
		if err != nil {
			r.report(err.Error())
			continue
		}
		r.facts.rules = append(r.facts.rules, rule)
	}
	if lists[m.key] == permission.AllowList {
		r.runsOnly()
	}
}

// runsOnly warns of rules that permit commands to run and may have been meant to open paths and hosts too: each rule for all
// commands, unless the file has rules that open something, and each rule with a * in a path outside.
func (r *reader) runsOnly() {
	opens := slices.ContainsFunc(r.facts.rules, func(rule permission.Rule) bool { return rule.List == permission.AllowList && rule.Opens() })
	for i := range r.facts.rules {
		rule := &r.facts.rules[i]
		if rule.RunsAll() && !opens {
			r.warn(rule.Origin.Line, "the rule %q permits commands to run, and no longer what they name outside the roots: add Read(...), Edit(...) or WebFetch(domain:...) for paths and hosts that they may reach", rule.Text)
		}
		if dir := rule.OutsidePattern(r.place.base); dir != "" {
			r.warn(rule.Origin.Line, "the rule %q permits a command to run, and no longer to reach paths outside the roots that its * stands for: add Read(%s/**) or Edit(%s/**)", rule.Text, dir, dir)
		}
	}
}

func (r *reader) mode(m member) {
	mode, known := modeNamed(m.value.word)
	if m.value.kind != text || !known {
		r.wrong(&m.value, keyMode, "default, acceptEdits, plan, dontAsk or bypassPermissions")
		return
	}
	r.facts.mode = &Mode{mode, r.origin(m.value.line)}
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

func (r *reader) bypass(m member) {
	if m.value.word != "disable" || m.value.kind != text {
		r.wrong(&m.value, keyBypass, `"disable"`)
		return
	}
	origin := r.origin(m.value.line)
	r.facts.bypass = &origin
}

func (r *reader) env(m member) {
	for _, m := range r.members(&m.value, "env.") {
		switch {
		case m.value.kind != text:
			r.wrong(&m.value, "env."+shortened(m.key), "a text")
		case m.key == "" || strings.ContainsAny(m.key, "=\x00"):
			r.warn(m.line, "%q is no name for an environment variable; it has no effect", shortened(m.key))
		case strings.Contains(m.value.word, "\x00"):
			r.warn(m.value.line, "env.%s holds a NUL character, which no environment variable can; it has no effect", shortened(m.key))
		default:
			r.facts.env = append(r.facts.env, Variable{m.key, m.value.word, r.origin(m.line)})
		}
	}
}

func (r *reader) limits(m member) {
	for _, m := range r.members(&m.value, "limits.") {
		name := "limits." + m.key
		if name == keyRate {
			r.rate(m)
			continue
		}
		b := boundNamed(m.key)
		if b == nil {
			names := []string{strings.TrimPrefix(keyRate, "limits.")}
			for _, b := range bounds {
				names = append(names, b.name)
			}
			r.unknown(m, "limits.", names)
			continue
		}
		if m.key != outputBytes && (r.place.level == workspace || r.place.level == session) {
			r.idle(m.line, name, "it is the whole daemon's, which a "+levelNames[r.place.level]+" does not set")
			continue
		}
		value, expected := b.read(&m.value)
		if expected != "" {
			r.wrong(&m.value, name, expected)
			continue
		}
		r.facts.limits = append(r.facts.limits, limit{m.key, value, r.origin(m.value.line)})
	}
}

var levelNames = [...]string{managed: "managed file", session: "session", workspace: "workspace", user: "user's file"}

func (r *reader) importClaude(m member) {
	if r.place.level != managed && r.place.level != user || r.place.claude {
		r.idle(m.line, m.key, "it counts in the user's toold file and in a managed file alone")
		return
	}
	r.facts.claude = r.flag(&m.value, m.key)
}

// outside reports whether a setting of all hooks counts in this file. A workspace could loosen other people's with it.
func (r *reader) outside(m member) bool {
	if r.place.level == workspace {
		r.idle(m.line, m.key, "a workspace decides nothing about the hooks of others")
		return false
	}
	return true
}

func (r *reader) noHooks(m member) {
	if r.outside(m) {
		r.facts.noHooks = r.flag(&m.value, m.key)
	}
}

func (r *reader) hookURLs(m member) {
	if r.outside(m) {
		r.facts.urls = r.entries(&m.value, m.key)
	}
}

func (r *reader) hookVariables(m member) {
	if r.outside(m) {
		r.facts.hookVariables = r.entries(&m.value, m.key)
	}
}
