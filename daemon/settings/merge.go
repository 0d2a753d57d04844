package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// A source is the content of one file and how far it counts.
type source struct {
	*facts
	place   place
	root    int  // of level workspace
	trusted bool // more than its deny and ask rules count
}

// A merger builds one Settings.
type merger struct {
	scope    Scope
	home     string
	view     *view
	trusts   []Trust  // of each root
	sources  []source // the highest first
	out      *Settings
	loss     [][]string // of each root that is not trusted: what of it does not count, in words
	warnings []Warning
}

// merge returns the settings of a scope, made of the contents of its files.
func merge(scope Scope, v view, home string) *Settings {
	m := &merger{scope: scope, view: &v, home: home, out: &Settings{Limits: Default(), Preset: Full, DeferAbove: defaultDeferAbove, DiagnosticsAfterEdit: true, sums: map[string]map[string]string{}, imports: v.imports}, loss: make([][]string, len(scope.Roots))}
	for i, root := range scope.Roots {
		m.out.sums[root] = v.sums(i)
		if sum := v.serversSum(i); sum != "" {
			m.out.sums[root][serversFile] = sum
		}
	}
	m.trusts = trusts(scope, &v)
	m.gather(&v)
	for i := range keys {
		if k := &keys[i]; k.alias == "" {
			k.merge(m, k)
		}
	}
	m.untrusted()
	m.arrange(&v)
	return m.out
}

// warn adds a warning about a place.
func (m *merger) warn(at permission.Origin, format string, values ...any) {
	m.warnings = append(m.warnings, warningAt(at, format, values...))
}

// distrusted adds a warning that a workspace is not trusted.
func (m *merger) distrusted(format string, values ...any) {
	m.warnings = append(m.warnings, Warning{Code: Untrusted, Text: fmt.Sprintf(format, values...)})
}

func (m *merger) line(key, value string, origin permission.Origin) {
	m.out.lines = append(m.out.lines, Line{key, value, origin})
}

// gather collects the files that count, and their warnings.
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
			m.warnings = append(m.warnings, l.reading.good.warnings...)
		}
		if l.reading.good != nil {
			trusted := l.place.level != workspace || m.trusts[l.root].Trusted
			m.sources = append(m.sources, source{l.reading.good, l.place, l.root, trusted})
		}
	}
	if v.trust != nil && v.trust.err != nil && len(m.scope.Roots) > 0 && !m.scope.Trusted {
		m.distrusted("%v. No workspace is trusted until that is fixed.", v.trust.err)
	}
}

// unread warns of a file of Claude Code's with rules that would deny something, as long as no file sets whether such files
// count.
func (m *merger) unread(l *layer) {
	if l.reading.good == nil {
		return
	}
	for _, list := range []permission.List{permission.DenyList, permission.AskList} {
		if rules, _ := l.reading.good.values["permissions."+list.String()].([]permission.Rule); len(rules) > 0 {
			m.warn(permission.Origin{File: l.place.file}, "its deny and ask rules do not count, since Claude Code's settings are not imported. Set %q in the user's settings: true imports them, false ends this warning.", keyImport)
			return
		}
	}
}

func (m *merger) broken(err *FileError, kept bool, of level) {
	result := "Nothing of it is in force"
	if kept {
		result = "Its earlier content stays in force"
	}
	m.warnings = append(m.warnings, Warning{Code: NotInForce, File: err.File, Line: err.Line, Text: fmt.Sprintf("%v. %s until that is fixed.", err, result)})
	if kept {
		return
	}
	if of != workspace {
		m.out.Broken = append(m.out.Broken, err)
	}
}

// isUsers reports whether the file of a workspace is one of the user's too, as in a root that is the home directory. It counts
// as the user's.
func (v *view) isUsers(l *layer) bool {
	return l.place.level == workspace && slices.ContainsFunc(v.layers, func(o layer) bool {
		return o.place.level == user && o.stamp.same(l.stamp)
	})
}

// lost notes what would count if the root of s were trusted.
func (m *merger) lost(s *source, what string) {
	if !slices.Contains(m.loss[s.root], what) {
		m.loss[s.root] = append(m.loss[s.root], what)
	}
}

// counts reports whether the value of a key counts that a file sets. If not, what trusting the workspace would change is noted.
func (m *merger) counts(s *source, k *key) bool {
	if s.trusted || k.scope.untrusted {
		return true
	}
	m.lost(s, cmp.Or(k.label, k.name))
	return false
}

// highest returns the highest file's value of a boolean, outside workspaces; nil: none has it.
func (m *merger) highest(name string) *value[bool] {
	for _, s := range m.sources {
		if v := s.flag(name); v != nil && s.place.level != workspace {
			return v
		}
	}
	return nil
}

// untrusted warns of each root that is not trusted, with what does not count for that reason, and what to do.
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
		m.distrusted("%s %s, so part of its settings does not count (%s). Look at them, then run: toold trust %s", root, why, joined(m.loss[i]), quoted(root))
	}
}

// joined lists words as a sentence does.
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// quoted returns a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%", r))
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
