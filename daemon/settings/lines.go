// The merged result for a person to look at. It does not know whether it becomes text or JSON in the end.

package settings

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// A Line is one value that is in force because a file says so.
type Line struct {
	Key    string // as a path into a settings file, such as permissions.allow
	Value  string
	Origin permission.Origin
}

// Lines gives every value that files set and that counts, grouped by key, the highest first within a list.
func (s *Settings) Lines() []Line {
	var out []Line
	if s.Mode != nil {
		out = append(out, Line{keyMode, s.Mode.Mode.String(), s.Mode.Origin})
	}
	if s.BypassDisabled != nil {
		out = append(out, Line{"permissions." + keyBypass, "disable", *s.BypassDisabled})
	}
	for list := permission.DenyList; list <= permission.AllowList; list++ {
		for _, r := range s.Rules {
			if r.List == list {
				out = append(out, Line{"permissions." + list.String(), r.Text, r.Origin})
			}
		}
	}
	for _, e := range s.AdditionalDirectories {
		out = append(out, Line{keyDirectories, e.Path, e.Origin})
	}
	for _, e := range s.PublicDirectories {
		out = append(out, Line{keyPublic, e.Path, e.Origin})
	}
	out = append(out, s.hookLines()...)
	out = append(out, s.sandboxLines()...)
	out = append(out, s.serverLines()...)
	out = append(out, s.languageLines()...)
	out = append(out, s.programLines()...)
	for _, v := range s.Env {
		out = append(out, Line{"env." + v.Name, v.Value, v.Origin})
	}
	for _, l := range s.limits {
		out = append(out, Line{"limits." + l.name, l.String(), l.origin})
	}
	for _, r := range s.Rates {
		out = append(out, Line{keyRate, r.Subject + " " + r.text, r.Origin})
	}
	return append(out, s.flags...)
}

// hookLines gives the hooks, those of one event together.
func (s *Settings) hookLines() []Line {
	var out []Line
	seen := map[string]bool{}
	hooks := s.Hooks.All()
	for _, first := range hooks {
		if seen[first.Event] {
			continue
		}
		seen[first.Event] = true
		for i := range hooks {
			if h := &hooks[i]; h.Event == first.Event {
				out = append(out, Line{"hooks." + h.Event, hookText(h), h.Origin})
			}
		}
	}
	for _, e := range s.urls {
		out = append(out, Line{keyHookURLs, e.Path, e.Origin})
	}
	return out
}

// hookText says in one line when a hook runs and what. Headers may hold secrets and are left out.
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

// Print writes the lines and the warnings as text: a heading for each key, a value a line, and where it stands. Control
// and bidirectional characters are made visible.
func (s *Settings) Print(w io.Writer) error {
	var b strings.Builder
	heading := ""
	for _, l := range s.Lines() {
		key, value := l.Key, visible(l.Value)
		if name, ok := strings.CutPrefix(key, "env."); ok {
			key, value = "env", visible(name)+"="+value
		}
		if name, ok := strings.CutPrefix(key, "limits."); ok {
			key, value = "limits", name+" "+value
		}
		if key != heading {
			heading = key
			fmt.Fprintf(&b, "%s\n", visible(key))
		}
		fmt.Fprintf(&b, "  %-40s  %s\n", value, visible(l.Origin.String()))
	}
	if b.Len() == 0 {
		b.WriteString("No file sets anything.\n")
	}
	if len(s.Warnings) > 0 {
		b.WriteString("warnings\n")
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "  %s\n", visible(warning))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// visible writes what a terminal would act upon as an escape sequence.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// flags notes the scalars that files set and that have no other place in the result.
func (m *merger) flags() {
	for _, f := range []struct {
		key   string
		which func(*facts) *flag
	}{
		{keyNoHooks, func(f *facts) *flag { return f.noHooks }},
		{keyManagedHooks, func(f *facts) *flag { return f.managedHooks }},
		{keyManagedRules, func(f *facts) *flag { return f.managedRules }},
		{keyImport, func(f *facts) *flag { return f.claude }},
	} {
		if set := m.highest(f.which); set != nil {
			m.out.flags = append(m.out.flags, Line{f.key, strconv.FormatBool(set.on), set.origin})
		}
	}
	for _, s := range m.sources {
		for _, e := range s.facts.hookVariables {
			m.out.flags = append(m.out.flags, Line{keyHookVariables, e.Path, e.Origin})
		}
	}
}
