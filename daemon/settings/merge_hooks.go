package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/hook"
)

// merge compiles the hooks that no file keeps from running.
func (hooks) merge(m *merger, k *key) {
	variables, limited := m.hookVariables()
	only, none := highest[bool](m, keyManagedHooks), highest[bool](m, keyNoHooks)
	var running []hook.Hook
	kept := 0
	for i := range m.sources {
		s := &m.sources[i]
		all, _ := s.values[k.name].([]hook.Hook)
		for _, h := range all {
			if s.place.level == session {
				m.out.SessionHooks = &h.Origin
			}
			switch {
			case !m.counts(s, k):
			case isOn(none) && (none.origin.Managed || !h.Origin.Managed), isOn(only) && !h.Origin.Managed:
				kept++ // those of the administrator are the administrator's to stop
			default:
				if limited && h.AllowedEnvVars != nil {
					h.AllowedEnvVars = slices.DeleteFunc(slices.Clone(h.AllowedEnvVars), func(v string) bool { return !slices.Contains(variables, v) })
				}
				running = append(running, h)
			}
		}
	}
	m.out.Hooks, _ = hook.Compile(running)
	for _, h := range running { // one by one, so that each error is about a known place
		_, wrong := hook.Compile([]hook.Hook{h})
		for _, err := range wrong {
			m.warnings = append(m.warnings, Warning{Code: Wrong, File: h.Origin.File, Line: h.Origin.Line, Text: err.Error()})
		}
	}
	if kept > 0 && isOn(only) {
		m.warn(only.origin, "%s: only hooks of managed files run, and %d of other files do not.", keyManagedHooks, kept)
	}
	m.out.lines = append(m.out.lines, hookLines(m.out.Hooks.All())...)
}

// hookURLs are the only addresses that HTTP hooks may be sent to.
func hookURLs(field *[]string) entries[Entry] {
	e := texts(nil, nil)
	e.done = func(_ *merger, all []Entry) {
		if all != nil {
			*field = append([]string{}, plain(all)...)
		}
	}
	return e
}

// hookVariables returns the only variables that hooks may send, if a file limits them.
func (m *merger) hookVariables() (variables []string, limited bool) {
	for _, s := range m.sources {
		all, ok := s.values[keyHookVariables].([]Entry)
		variables, limited = append(variables, plain(all)...), limited || ok
	}
	return variables, limited
}

// hookLines shows the hooks, those of one event together.
func hookLines(hooks []hook.Hook) (out []Line) {
	var events []string
	for _, h := range hooks {
		events = append(events, h.Event)
		out = append(out, Line{"hooks." + h.Event, hookText(&h), h.Origin})
	}
	first := func(l Line) int { return slices.Index(events, strings.TrimPrefix(l.Key, "hooks.")) }
	slices.SortStableFunc(out, func(a, b Line) int { return cmp.Compare(first(a), first(b)) })
	return out
}

// hookText returns in one line when a hook runs and what. Headers may hold secrets and are left out.
func hookText(h *hook.Hook) string {
	var b strings.Builder
	if h.Matcher != "" {
		fmt.Fprintf(&b, "%s: ", h.Matcher)
	}
	if h.If != "" {
		fmt.Fprintf(&b, "if %s: ", h.If)
	}
	if h.Broken != "" {
		b.WriteString("fails each time: " + h.Broken)
		return b.String()
	}
	b.WriteString(h.Command + h.URL)
	for _, arg := range h.Args {
		b.WriteString(" " + strconv.Quote(arg))
	}
	if h.Timeout != 0 {
		fmt.Fprintf(&b, ", at most %v", h.Timeout)
	}
	if h.Block {
		b.WriteString(", blocks if it fails")
	}
	return b.String()
}
