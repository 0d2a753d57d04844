package settings

import (
	"fmt"
	"path/filepath"
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
	book     *book
	roots    []root
	sources  []source // the highest first
	out      *Settings
	warnings []Warning
}

// A root is one of the scope's.
type root struct {
	path string
	real string            // links resolved; empty: it cannot be found
	sums map[string]string // see view.sums
	Trust
	loss []string // what of it does not count since it is not trusted, in words
}

// merge returns the settings of a scope, made of the contents of its files.
func merge(scope Scope, v view, home string) *Settings {
	m := &merger{scope: scope, home: home, book: v.book(), out: &Settings{Preset: Full, DiagnosticsAfterEdit: true, sums: map[string]map[string]string{}, imports: v.imports}}
	for i, path := range scope.Roots {
		real, _ := filepath.EvalSymlinks(path) // empty has no trust
		sums := v.sums(i)
		trust := m.book.trust(real, counting(v.imports), sums)
		if scope.Trusted {
			trust = Trust{Trusted: true}
		}
		m.out.sums[path] = sums
		m.roots = append(m.roots, root{path: path, real: real, sums: sums, Trust: trust})
	}
	m.gather(&v)
	bound := table(m.out)
	for i := range bound {
		bound[i].merge(m, &bound[i])
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
			trusted := l.place.level != workspace || m.roots[l.root].Trusted
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
	result := "Its earlier content stays in force"
	if !kept {
		result = "Nothing of it is in force"
		if of != workspace {
			m.out.Broken = append(m.out.Broken, err)
		}
	}
	m.warnings = append(m.warnings, Warning{Code: NotInForce, File: err.File, Line: err.Line, Text: fmt.Sprintf("%v. %s until that is fixed.", err, result)})
}

// isUsers reports whether the file of a workspace is one of the user's too, as in a root that is the home directory. It counts
// as the user's.
func (v *view) isUsers(l *layer) bool {
	return l.place.level == workspace && slices.ContainsFunc(v.layers, func(o layer) bool {
		return o.place.level == user && o.stamp.same(l.stamp)
	})
}

// counts reports whether the value of a key counts that a file sets. If not, what trusting the workspace would change is noted.
func (m *merger) counts(s *source, k *key) bool {
	if s.trusted || k.scope.untrusted {
		return true
	}
	what, of := k.label(), &m.roots[s.root]
	if s.place.servers {
		what = "the servers of " + serversFile
	}
	if !slices.Contains(of.loss, what) {
		of.loss = append(of.loss, what)
	}
	return false
}

// highest returns the highest file's value of a scalar, outside workspaces; nil: none has it.
func highest[T any](m *merger, name string) *value[T] {
	for _, s := range m.sources {
		if v, _ := s.values[name].(*value[T]); v != nil && s.place.level != workspace {
			return v
		}
	}
	return nil
}

// untrusted warns of each root that is not trusted, with what does not count for that reason, and what to do.
func (m *merger) untrusted() {
	for i := range m.roots {
		if r := &m.roots[i]; len(r.loss) > 0 {
			m.out.Untrusted = append(m.out.Untrusted, r.path)
			m.distrusted("%s %s, so part of its settings does not count (%s). Look at them, then run: toold trust %s", r.path, r.Trust.why(), joined(r.loss), quoted(r.path))
		}
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
