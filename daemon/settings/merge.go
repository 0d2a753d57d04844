// Many files to one result: which beats which, and what a workspace may say. It reads no file but to resolve a root's
// path, and keeps nothing.

package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// A source is what one file says and how far it counts.
type source struct {
	*facts
	place   place
	root    int  // of level workspace
	trusted bool // more than its deny and ask rules count
}

// A merger builds one Settings.
type merger struct {
	scope   Scope
	home    string
	trusts  []Trust  // of each root
	sources []source // the highest first
	out     *Settings
	loss    [][]string // of each root that is not trusted: what of it does not count, in words
}

// merge makes the settings of a scope from what its files say.
func merge(scope Scope, v view, home string) *Settings {
	m := merger{scope: scope, home: home, out: &Settings{Limits: Default(), Preset: Full, DeferAbove: defaultDeferAbove, DiagnosticsAfterEdit: true, sums: map[string]map[string]string{}, imports: v.imports}, loss: make([][]string, len(scope.Roots))}
	for i, root := range scope.Roots {
		m.out.sums[root] = v.sums(i)
		if sum := v.serversSum(i); sum != "" {
			m.out.sums[root][serversFile] = sum
		}
	}
	m.trusts = trusts(scope, &v)
	m.gather(&v)
	m.rules()
	m.bypass()
	m.mode()
	m.directories()
	m.hooks()
	m.sandbox()
	m.env()
	m.limits()
	m.flags()
	m.journal()
	m.redactions()
	m.webSearch()
	m.servers(&v)
	m.languages()
	m.programs()
	m.rates()
	m.untrusted()
	m.arrange(&v)
	return m.out
}

func (m *merger) warn(format string, values ...any) {
	m.out.Warnings = append(m.out.Warnings, fmt.Sprintf(format, values...))
}

// gather takes the files that say something, with their warnings.
func (m *merger) gather(v *view) {
	if v.extra != nil {
		known := slices.ContainsFunc(v.layers, func(l layer) bool { return l.place.base == v.extra.File && l.reading.good != nil })
		m.broken(v.extra, known, managed)
	}
	for _, l := range v.layers {
		if l.silent && !v.asked {
			m.unread(&l)
		}
		if l.silent || v.isUsers(&l) {
			continue
		}
		if l.reading.err != nil {
			m.broken(l.reading.err, l.reading.good != nil, l.place.level)
		} else if l.reading.good != nil {
			m.out.Warnings = append(m.out.Warnings, l.reading.good.warnings...)
		}
		if l.reading.good != nil {
			trusted := l.place.level != workspace || m.trusts[l.root].Trusted
			m.sources = append(m.sources, source{l.reading.good, l.place, l.root, trusted})
		}
	}
	if v.trust != nil && v.trust.err != nil && len(m.scope.Roots) > 0 && !m.scope.Trusted {
		m.warn("%v. No workspace is trusted until that is mended.", v.trust.err)
	}
}

// unread tells of a file of Claude Code's with rules that would keep something from being done, as long as nobody has said
// whether such files count.
func (m *merger) unread(l *layer) {
	if l.reading.good != nil && slices.ContainsFunc(l.reading.good.rules, func(r permission.Rule) bool { return r.List != permission.AllowList }) {
		m.warn("%s: its deny and ask rules do not count, since Claude Code's settings are not read here. With %q true in the user's settings they are; false says that they are not wanted.", l.place.file, keyImport)
	}
}

func (m *merger) broken(err *FileError, kept bool, of level) {
	if kept {
		m.warn("%v. What it said before stays in force until that is mended.", err)
		return
	}
	m.warn("%v. Nothing of it is in force until that is mended.", err)
	if of != workspace {
		m.out.Broken = append(m.out.Broken, err)
	}
}

// isUsers reports that the file of a workspace is at the same time one of the user's, as in a root that is the home
// directory. It counts as the user's.
func (v *view) isUsers(l *layer) bool {
	return l.place.level == workspace && slices.ContainsFunc(v.layers, func(o layer) bool {
		return o.place.level == user && o.stamp.same(l.stamp)
	})
}

// lost notes what of an untrusted root would count if the root were trusted.
func (m *merger) lost(s *source, what string) {
	if !slices.Contains(m.loss[s.root], what) {
		m.loss[s.root] = append(m.loss[s.root], what)
	}
}

// rules merges the lists. Where the administrator's allow rules alone count, what others deny or ask still does.
func (m *merger) rules() {
	only := m.highest(func(f *facts) *flag { return f.managedRules })
	seen := map[string]bool{}
	dropped := 0
	for i := range m.sources {
		s := &m.sources[i]
		for _, rule := range s.rules {
			switch key := ruleKey(rule); {
			case rule.List == permission.AllowList && !s.trusted:
				m.lost(s, "allow rules")
			case rule.List == permission.AllowList && only != nil && only.on && !rule.Origin.Managed:
				dropped++
			case !seen[key]:
				seen[key] = true
				m.out.Rules = append(m.out.Rules, rule)
			}
		}
	}
	if dropped > 0 {
		m.warn("%s lets allow rules of managed files alone count: %d of other files have no effect.", only.origin, dropped)
	}
}

// ruleKey is the same for rules that say the same. A path behind one slash means another place in each file.
func ruleKey(r permission.Rule) string {
	key := r.List.String() + " " + r.Text
	if strings.Contains(r.Text, "(/") && !strings.Contains(r.Text, "(//") {
		key += " " + r.Origin.Base
	}
	return key
}

// highest gives the highest file's flag outside workspaces; nil: none has it.
func (m *merger) highest(which func(*facts) *flag) *flag {
	for _, s := range m.sources {
		if f := which(s.facts); f != nil && s.place.level != workspace {
			return f
		}
	}
	return nil
}

// bypass takes any file's word for it: it makes things stricter.
func (m *merger) bypass() {
	for i := range m.sources {
		switch s := &m.sources[i]; {
		case s.facts.bypass == nil || m.out.BypassDisabled != nil:
		case !s.trusted:
			m.lost(s, keyBypass)
		default:
			m.out.BypassDisabled = s.facts.bypass
		}
	}
}

// looseness orders the modes by how much they let pass unasked. Plan and DontAsk each deny what the other lets pass.
var looseness = [...]int{
	permission.Default: 1, permission.AcceptEdits: 2, permission.Plan: 0, permission.DontAsk: 0, permission.BypassPermissions: 3,
}

// mode takes the highest file's; then a root's, by its highest file, if that is stricter.
func (m *merger) mode() {
	for _, s := range m.sources {
		if s.mode != nil && s.place.level != workspace && m.out.Mode == nil {
			m.out.Mode = s.mode
		}
	}
	base := permission.Default
	if m.out.Mode != nil {
		base = m.out.Mode.Mode
	}
	strictest := base
	for root := range m.scope.Roots {
		s := m.voice(root, func(f *facts) bool { return f.mode != nil })
		if s == nil {
			continue
		}
		said := s.mode.Mode
		switch {
		case looseness[said] > looseness[base]:
			m.warn("%s: %s %q has no effect: a workspace can only make the mode stricter, and %s is in force.", s.mode.Origin, keyMode, said, base)
		case looseness[said] >= looseness[strictest]:
		case !s.trusted:
			m.lost(s, "defaultMode")
		default:
			m.out.Mode, strictest = s.mode, said
		}
	}
}

// voice gives the highest file of a root that says something; nil: none does.
func (m *merger) voice(root int, says func(*facts) bool) *source {
	for i := range m.sources {
		if s := &m.sources[i]; s.place.level == workspace && s.root == root && says(s.facts) {
			return s
		}
	}
	return nil
}

func (m *merger) directories() {
	seen := map[string]bool{}
	public := map[string]bool{}
	for i := range m.sources {
		s := &m.sources[i]
		if !s.trusted {
			if len(s.facts.directories) > 0 {
				m.lost(s, "additionalDirectories")
			}
			if len(s.public) > 0 {
				m.lost(s, "publicDirectories")
			}
			continue
		}
		m.out.AdditionalDirectories = m.paths(m.out.AdditionalDirectories, s, s.facts.directories, seen)
		if s.public != nil && m.out.PublicDirectories == nil {
			m.out.PublicDirectories = []Entry{}
		}
		m.out.PublicDirectories = m.paths(m.out.PublicDirectories, s, s.public, public)
	}
}

// paths adds a file's entries to those of higher ones.
func (m *merger) paths(to []Entry, s *source, entries []Entry, seen map[string]bool) []Entry {
	for _, e := range entries {
		path, why := m.absolute(s, e.Path)
		if why != "" {
			m.warn("%s: the directory %q has no effect: %s.", e.Origin, shortened(e.Path), why)
		} else if !seen[path] {
			seen[path] = true
			to = append(to, Entry{path, e.Origin})
		}
	}
	return to
}

// absolute resolves a path as written: what is relative is so to the file's root, else to the scope's first.
func (m *merger) absolute(s *source, path string) (absolute, why string) {
	rest, home := strings.CutPrefix(path, "~/")
	switch {
	case path == "" || strings.Contains(path, "\x00"):
		return "", "it is no path"
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
	return "", "it is relative, and there is no root that it could be relative to"
}

func (m *merger) env() {
	seen, filter := map[string]bool{}, m.out.Sandbox.Filter()
	for i := range m.sources {
		s := &m.sources[i]
		for _, v := range s.facts.env {
			switch {
			case !s.trusted:
				m.lost(s, "env")
			case !seen[v.Name]:
				seen[v.Name] = true
				m.out.Env = append(m.out.Env, v)
				if filter.Withheld(v.Name) {
					m.warn("%s: env.%s is kept from commands and hooks, since its name looks like a credential or would change what programs run; only headers of HTTP hooks can hold it", v.Origin, shortened(v.Name))
				}
			}
		}
	}
	slices.SortFunc(m.out.Env, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
}

// limits takes the highest file's of each; then a root's output_bytes, by its highest file, if that is smaller.
func (m *merger) limits() {
	for _, b := range bounds {
		for _, s := range m.sources {
			if l := s.limit(b.name); l != nil && s.place.level != workspace {
				m.limit(*l)
				break
			}
		}
	}
	base := m.out.Limits.OutputBytes
	for root := range m.scope.Roots {
		s := m.voice(root, func(f *facts) bool { return f.limit(outputBytes) != nil })
		if s == nil {
			continue
		}
		switch l := s.limit(outputBytes); {
		case l.value > base:
			m.warn("%s: limits.%s %s has no effect: a workspace can only make it smaller, and %d is in force.", l.origin, l.name, l, base)
		case l.value >= m.out.Limits.OutputBytes:
		case !s.trusted:
			m.lost(s, "limits."+outputBytes)
		default:
			m.limit(*l)
		}
	}
}

func (m *merger) limit(l limit) {
	boundNamed(l.name).set(&m.out.Limits, l.value)
	m.out.limits = slices.DeleteFunc(m.out.limits, func(o limit) bool { return o.name == l.name })
	m.out.limits = append(m.out.limits, l)
}

func (f *facts) limit(name string) *limit {
	for i := range f.limits {
		if f.limits[i].name == name {
			return &f.limits[i]
		}
	}
	return nil
}

// untrusted says, of each root that is not trusted, what does not count for that, and what to do.
func (m *merger) untrusted() {
	for i, root := range m.scope.Roots {
		if len(m.loss[i]) == 0 {
			continue
		}
		m.out.Untrusted = append(m.out.Untrusted, root)
		why := "is not trusted"
		if changed := m.trusts[i].Changed; len(changed) > 0 {
			why = "has changed since it was trusted (" + joined(changed) + ")"
		}
		m.warn("%s %s: what its settings files say of %s does not count. Look at them, then run: toold trust %s", root, why, joined(m.loss[i]), quoted(root))
	}
}

// joined lists words as a sentence does.
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// quoted gives a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%", r))
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
