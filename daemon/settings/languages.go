// Which language servers there are, as far as settings say. Which there are without them, and how one is started, is not known
// here.

package settings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// A LanguageServer is what the highest file that speaks of a language says of its server.
type LanguageServer struct {
	Language string
	// Command is the program and its arguments; nil: the usual ones. A program that was written with a slash is absolute, any
	// other is to be looked for in PATH.
	Command    []string
	Extensions []string // of its files, with the dot; nil: the usual ones
	Off        bool     // the language has no server
	Origin     permission.Origin
}

const (
	keyLanguages   = "lsp"
	keyDiagnostics = "diagnosticsAfterEdit"
)

func (r *reader) languages(m member) {
	for _, m := range r.members(&m.value, keyLanguages+".") {
		said := LanguageServer{Language: m.key, Origin: r.origin(m.line)}
		e := r.entry(keyLanguages + "." + m.key)
		switch {
		case m.key == "" || strings.ContainsAny(m.key, " \x00"):
			e.lacks(m.line, "has a name that is no language's")
		case m.value.kind == boolean && m.value.word == "false":
			said.Off = true
		case m.value.kind != object:
			e.reader.wrong(&m.value, e.name, "an object {...}, or false")
			continue
		default:
			e.language(m, &said)
		}
		if !e.void {
			r.facts.languages = append(r.facts.languages, said)
		}
	}
}

func (e *entry) language(m member, said *LanguageServer) {
	for _, m := range e.known(&m.value, []string{"command", "extensions"}) {
		if m.key == "command" {
			said.Command = e.command(m)
			continue
		}
		said.Extensions = e.words(m)
		if slices.ContainsFunc(said.Extensions, func(s string) bool { return len(s) < 2 || s[0] != '.' || strings.Contains(s, "/") }) {
			e.fail(&m.value, m.key, `a list of extensions such as ".go"`)
		}
	}
	if !e.void && said.Command == nil && said.Extensions == nil {
		e.lacks(m.line, `needs a "command"`)
	}
}

func (r *reader) diagnostics(m member) { r.facts.diagnostics = r.flag(&m.value, m.key) }

// languages takes the highest file's whole word on each language.
func (m *merger) languages() {
	for i := range m.sources {
		s := &m.sources[i]
		if !s.trusted {
			if len(s.facts.languages) > 0 {
				m.lost(s, keyLanguages)
			}
			continue
		}
		for _, said := range s.facts.languages {
			if slices.ContainsFunc(m.out.LSP, func(l LanguageServer) bool { return l.Language == said.Language }) {
				continue
			}
			var why string
			if said.Command, why = m.command(s, said.Command); why != "" {
				m.warn("%s: %s.%s has no effect: of its program, %s.", said.Origin, keyLanguages, shortened(said.Language), why)
				continue
			}
			m.out.LSP = append(m.out.LSP, said)
		}
	}
	slices.SortFunc(m.out.LSP, func(a, b LanguageServer) int { return cmp.Compare(a.Language, b.Language) })
	if said := m.trusted(func(f *facts) *flag { return f.diagnostics }, keyDiagnostics); said != nil {
		m.out.DiagnosticsAfterEdit = said.on
		m.flag(keyDiagnostics, said)
	}
}

// command gives a command with its program at its place. It is not looked for in the working directory: what lies there is not
// what the file has named.
func (m *merger) command(s *source, words []string) (placed []string, why string) {
	if len(words) == 0 || !strings.Contains(words[0], "/") {
		return words, ""
	}
	program, why := m.placed(s, words[0])
	return slices.Concat([]string{program}, words[1:]), why
}

// trusted gives the highest flag that counts, a workspace's too if it is trusted; nil: there is none.
func (m *merger) trusted(which func(*facts) *flag, key string) *flag {
	for i := range m.sources {
		switch s := &m.sources[i]; {
		case which(s.facts) == nil:
		case !s.trusted:
			m.lost(s, key)
		default:
			return which(s.facts)
		}
	}
	return nil
}

func (m *merger) flag(key string, said *flag) {
	m.out.flags = append(m.out.flags, Line{key, strconv.FormatBool(said.on), said.origin})
}

// languageLines gives the language servers, one a line.
func (s *Settings) languageLines() []Line {
	var out []Line
	for _, l := range s.LSP {
		text := l.Language + ": " + commandText(l.Command)
		if l.Off {
			text = l.Language + ": none"
		}
		if len(l.Extensions) > 0 {
			text += " for " + strings.Join(l.Extensions, " ")
		}
		out = append(out, Line{keyLanguages, text, l.Origin})
	}
	return out
}

// commandText gives a program and its arguments in one line.
func commandText(command []string) string {
	if len(command) == 0 {
		return "the usual server"
	}
	words := []string{command[0]}
	for _, arg := range command[1:] {
		words = append(words, strconv.Quote(arg))
	}
	return strings.Join(words, " ")
}
