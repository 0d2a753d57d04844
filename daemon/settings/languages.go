package settings

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// A LanguageServer is the server of a language, as the highest file sets it.
type LanguageServer struct {
	Language string
	// Command is the program and its arguments; nil: the usual ones. A program that was written with a slash is absolute, any
	// other is to be looked for in PATH.
	Command    []string
	Extensions []string // of its files, with the dot; nil: the usual ones
	Off        bool     // the language has no server
	Origin     permission.Origin
}

// languages are the language servers, by language.
var languages = entries[LanguageServer]{
	object: true,
	parse: func(r *reader, k *key, m member) (LanguageServer, bool) {
		server := LanguageServer{Language: m.key, Origin: r.origin(m.line)}
		e := r.entry(k.name + "." + m.key)
		switch {
		case m.key == "" || strings.ContainsAny(m.key, " \x00"):
			e.lacks(m.line, "has a name that is not a language's")
		case m.value.kind == boolean && m.value.word == "false":
			server.Off = true
		case m.value.kind != object:
			r.wrong(&m.value, e.name, "an object {...}, or false")
			e.void = true
		default:
			e.language(m, &server)
		}
		return server, !e.void
	},
	place: func(m *merger, k *key, s *source, server *LanguageServer) bool {
		why := ""
		if server.Command, why = m.command(s, server.Command); why != "" {
			m.warn(server.Origin, "%s.%s has no effect: of its program, %s.", k.name, shortened(server.Language), why)
		}
		return why == ""
	},
	identity: func(s *LanguageServer) string { return s.Language },
	sorted:   true,
	line: func(k *key, s *LanguageServer) Line {
		shown := s.Language + ": " + commandText(s.Command)
		if s.Off {
			shown = s.Language + ": none"
		}
		if len(s.Extensions) > 0 {
			shown += " for " + strings.Join(s.Extensions, " ")
		}
		return Line{k.name, shown, s.Origin}
	},
	field: func(s *Settings) *[]LanguageServer { return &s.LSP },
}

func (e *entry) language(m member, server *LanguageServer) {
	for _, m := range e.known(&m.value, []string{"command", "extensions"}) {
		if m.key == "command" {
			server.Command = e.command(m)
			continue
		}
		server.Extensions = e.words(m)
		if slices.ContainsFunc(server.Extensions, func(s string) bool { return len(s) < 2 || s[0] != '.' || strings.Contains(s, "/") }) {
			e.fail(&m.value, m.key, `a list of extensions such as ".go"`)
		}
	}
	if !e.void && server.Command == nil && server.Extensions == nil {
		e.lacks(m.line, `needs a "command"`)
	}
}

// command returns a command with the absolute path of its program. A program is not looked for in the working directory: what
// lies there is not what the file has named.
func (m *merger) command(s *source, words []string) (placed []string, why string) {
	if len(words) == 0 || !strings.Contains(words[0], "/") {
		return words, ""
	}
	program, why := m.placed(s, words[0])
	return slices.Concat([]string{program}, words[1:]), why
}

// commandText returns a program and its arguments in one line.
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
