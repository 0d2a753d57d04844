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
func languages(field *[]LanguageServer) entries[LanguageServer] {
	name := func(s *LanguageServer) string { return s.Language }
	return entries[LanguageServer]{
		object: true, identity: name, sorted: name, field: field,
		parse: readLanguage,
		place: func(m *merger, k *key, s *source, server *LanguageServer) (ok bool) {
			server.Command, ok = m.command(s, server.Command, server.Command, k.name+"."+shortened(server.Language), server.Origin)
			return ok
		},
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
	}
}

func readLanguage(r *reader, k *key, m member) (LanguageServer, bool) {
	server := LanguageServer{Language: m.key, Origin: r.origin(m.line)}
	e := r.entry(k.name + "." + m.key)
	switch {
	case m.key == "" || strings.ContainsAny(m.key, " \x00"):
		e.lacks(m.line, "has a name that is not a language's")
		return server, false
	case m.value.kind == boolean && m.value.word == "false":
		server.Off = true
		return server, true
	case m.value.kind != object:
		r.wrong(&m.value, e.name, "an object {...}, or false")
		return server, false
	}
	e.fields(&m.value, map[string]func(member){
		"command": func(m member) { server.Command = e.command(m) },
		"extensions": func(m member) {
			server.Extensions = e.words(m)
			if slices.ContainsFunc(server.Extensions, func(s string) bool { return len(s) < 2 || s[0] != '.' || strings.Contains(s, "/") }) {
				e.fail(&m.value, m.key, `a list of extensions such as ".go"`)
			}
		},
	})
	if !e.void && server.Command == nil && server.Extensions == nil {
		e.lacks(m.line, `needs a "command"`)
	}
	return server, !e.void
}

// command returns a command with the absolute path of its program. It warns, and ok is false, if what has no effect for want
// of one; written is the command as it is shown. A program is not looked for in the working directory: what lies there is not
// what the file has named.
func (m *merger) command(s *source, words, written []string, what string, at permission.Origin) (placed []string, ok bool) {
	if len(words) == 0 || !strings.Contains(words[0], "/") {
		return words, true
	}
	program, why := m.placed(s, words[0])
	if why != "" {
		m.warn(at, "%s has no effect: of its program %q, %s.", what, shortened(written[0]), why)
	}
	return slices.Concat([]string{program}, words[1:]), why == ""
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
