// Many files' words on the sandbox to one. What a workspace says is only what makes it stricter, see sandbox_facts.go, and
// counts whether the workspace is trusted or not: the rest of it is confined, not believed.

package settings

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/pathname"
)

func (m *merger) sandbox() {
	for i := range toggles {
		m.toggle(&toggles[i])
	}
	m.excluded()
	only := m.highest(func(f *facts) *flag { return f.sandbox.flags[keyDomainsOnly] })
	m.sandboxLine(keyDomainsOnly, only)
	if only != nil && only.on {
		m.out.Sandbox.ManagedDomainsOnly = &only.origin
	}
	for i := range rolls {
		if l := &rolls[i]; l.sort == pathSort {
			m.sandboxPaths(l)
		} else {
			m.sandboxNames(l)
		}
	}
	m.heldByManaged()
	for i := range processBounds {
		m.processLimit(&processBounds[i])
	}
}

// toggle takes the highest file's outside workspaces, and then the word of any workspace, which is the stricter one.
func (m *merger) toggle(t *toggle) {
	at := func(f *facts) *flag { return f.sandbox.flags[t.key] }
	said := m.highest(at)
	for _, s := range m.sources {
		if f := at(s.facts); f != nil && s.place.level == workspace && (said == nil || said.on != t.strict) {
			said = f
		}
	}
	m.sandboxLine(t.key, said)
	if said != nil && said.on == t.marks {
		*t.field(&m.out.Sandbox) = &said.origin
	}
}

func (m *merger) sandboxLine(key string, said *flag) {
	if said != nil {
		m.out.Sandbox.lines = append(m.out.Sandbox.lines, Line{key, strconv.FormatBool(said.on), said.origin})
	}
}

func (m *merger) excluded() {
	seen := map[string]bool{}
	for _, s := range m.sources {
		for _, rule := range s.facts.sandbox.excluded {
			if !seen[rule.Text] {
				seen[rule.Text] = true
				m.out.Sandbox.Excluded = append(m.out.Sandbox.Excluded, rule)
			}
		}
	}
}

// sandboxPaths merges a list of paths, the highest file's first.
func (m *merger) sandboxPaths(l *roll) {
	to, seen := l.paths(&m.out.Sandbox), map[string]bool{}
	for i := range m.sources {
		s := &m.sources[i]
		for _, e := range s.facts.sandbox.rolls[l.key] {
			path, why := m.placed(s, e.Path)
			if why != "" {
				m.warn("%s: %s: the path %q has no effect: %s.", e.Origin, l.key, shortened(e.Path), why)
			} else if !seen[path] {
				seen[path] = true
				*to = append(*to, Entry{path, e.Origin})
			}
		}
	}
}

// placed resolves a path of the sandbox as written. Other than elsewhere, a relative one is so to where its file is: to the
// root of a workspace's and of the session's, else to the file's folder.
func (m *merger) placed(s *source, path string) (absolute, why string) {
	if path == "~" || strings.HasPrefix(path, "~/") || filepath.IsAbs(path) {
		return m.absolute(s, path)
	}
	if s.place.base == "" {
		return "", "it is relative, and there is no root that it could be relative to"
	}
	return filepath.Join(s.place.base, path), ""
}

func (m *merger) sandboxNames(l *roll) {
	to, seen, dropped := l.names(&m.out.Sandbox), map[string]bool{}, 0
	only := m.out.Sandbox.ManagedDomainsOnly
	for i := range m.sources {
		for _, e := range m.sources[i].facts.sandbox.rolls[l.key] {
			switch {
			case l.key == keyDomains && only != nil && !e.Origin.Managed:
				dropped++
			case !seen[e.Path]:
				seen[e.Path] = true
				*to = append(*to, Name{e.Path, e.Origin})
			}
		}
	}
	if dropped > 0 {
		m.warn("%s lets the allowed domains of managed files alone count: %d of other files have no effect.", only, dropped)
	}
}

// heldByManaged takes out what would open to reading what the administrator denies.
func (m *merger) heldByManaged() {
	out := &m.out.Sandbox
	denied := slices.DeleteFunc(slices.Concat(out.DenyRead, out.CredentialFiles), func(e Entry) bool { return !e.Origin.Managed })
	out.AllowRead = slices.DeleteFunc(out.AllowRead, func(e Entry) bool {
		at := slices.IndexFunc(denied, func(d Entry) bool { return !e.Origin.Managed && pathname.Within(d.Path, e.Path) })
		if at >= 0 {
			m.warn("%s: %s: the path %q has no effect: %s denies it.", e.Origin, keyAllowRead, shortened(e.Path), denied[at].Origin)
		}
		return at >= 0
	})
}

// processLimit takes the highest file's outside workspaces, and beside it the lowest of workspaces.
func (m *merger) processLimit(b *processBound) {
	var base, ceiling *processLimit
	for _, s := range m.sources {
		said := s.facts.sandbox.limits[b.key]
		switch {
		case said == nil:
		case s.place.level == workspace && (ceiling == nil || said.value < ceiling.value):
			ceiling = said
		case s.place.level != workspace && base == nil:
			base = said
		}
	}
	in := base
	if base != nil {
		b.of(&m.out.Sandbox.Limits).set(base.value)
		m.tooHigh(b.key, base)
	}
	if ceiling != nil && (base == nil || ceiling.value < base.value) {
		b.of(&m.out.Sandbox.Ceilings).set(ceiling.value)
		in = ceiling
	}
	if in != nil {
		m.out.Sandbox.lines = append(m.out.Sandbox.lines, Line{b.key, in.text, in.origin})
	}
}

// tooHigh reports the limits of workspaces that are above the one in force.
func (m *merger) tooHigh(key string, base *processLimit) {
	for _, s := range m.sources {
		if said := s.facts.sandbox.limits[key]; said != nil && s.place.level == workspace && said.value > base.value {
			m.warn("%s: %s %s has no effect: a workspace can only make it smaller, and %s is in force.", said.origin, key, said.text, base.text)
		}
	}
}

// sandboxLines gives what files say of the sandbox.
func (s *Settings) sandboxLines() []Line {
	out := slices.Clone(s.Sandbox.lines)
	for _, r := range s.Sandbox.Excluded {
		out = append(out, Line{keyExcluded, strings.TrimSuffix(strings.TrimPrefix(r.Text, "Bash("), ")"), r.Origin})
	}
	for _, l := range rolls {
		if l.sort == pathSort {
			for _, e := range *l.paths(&s.Sandbox) {
				out = append(out, Line{l.key, e.Path, e.Origin})
			}
			continue
		}
		for _, n := range *l.names(&s.Sandbox) {
			out = append(out, Line{l.key, n.Name, n.Origin})
		}
	}
	return out
}
