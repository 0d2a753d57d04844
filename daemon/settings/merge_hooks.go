// Which hooks run, and where they may go. What a hook does, and which of several are the same, is package hook's to say.

package settings

import (
	"slices"

	"github.com/toold/toold/scheduler/hook"
)

func (m *merger) hooks() {
	m.hookURLs()
	variables := m.hookVariables()
	var running []hook.Hook
	kept := 0
	for i := range m.sources {
		s := &m.sources[i]
		for _, h := range s.facts.hooks {
			if s.place.level == session {
				m.out.SessionHooks = &h.Origin
			}
			if !s.trusted {
				m.lost(s, "hooks")
				continue
			}
			if !m.runs(&h) {
				kept++
				continue
			}
			if variables != nil && h.AllowedEnvVars != nil {
				h.AllowedEnvVars = common(h.AllowedEnvVars, variables)
			}
			running = append(running, h)
		}
	}
	var wrong []error
	m.out.Hooks, wrong = hook.Compile(running)
	for _, err := range wrong {
		m.warn("%v", err)
	}
	if only := m.managedHooks(); kept > 0 && only != nil && only.on {
		m.warn("%s lets hooks of managed files alone run: %d of other files do not.", only.origin, kept)
	}
}

func (m *merger) managedHooks() *flag {
	return m.highest(func(f *facts) *flag { return f.managedHooks })
}

func (m *merger) noHooks() *flag {
	return m.highest(func(f *facts) *flag { return f.noHooks })
}

// runs reports that no file keeps the hook from running. The administrator's are the administrator's to stop.
func (m *merger) runs(h *hook.Hook) bool {
	if none := m.noHooks(); none != nil && none.on && (none.origin.Managed || !h.Origin.Managed) {
		return false
	}
	only := m.managedHooks()
	return h.Origin.Managed || only == nil || !only.on
}

// hookURLs merges the list of addresses. A list without entries is one: nothing may be gone to.
func (m *merger) hookURLs() {
	for _, s := range m.sources {
		if s.urls == nil {
			continue
		}
		if m.out.AllowedHTTPHookURLs == nil {
			m.out.AllowedHTTPHookURLs = []string{}
		}
		for _, e := range s.urls {
			if !slices.Contains(m.out.AllowedHTTPHookURLs, e.Path) {
				m.out.AllowedHTTPHookURLs = append(m.out.AllowedHTTPHookURLs, e.Path)
				m.out.urls = append(m.out.urls, e)
			}
		}
	}
}

// hookVariables gives the only variables that hooks may send; nil: no file names any.
func (m *merger) hookVariables() []string {
	var names []string
	for _, s := range m.sources {
		if s.facts.hookVariables == nil {
			continue
		}
		if names == nil {
			names = []string{}
		}
		for _, e := range s.facts.hookVariables {
			names = append(names, e.Path)
		}
	}
	return names
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
