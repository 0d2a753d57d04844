package settings

import (
	"slices"
	"strings"
)

// Written is an MCP server's entry for a person, and for records that are kept.
type Written struct {
	Command    []string // the program and its arguments
	URL        string   // without a user's name, a password and a query
	Variables  []string // names of those that it sets for the program
	Headers    []string // names
	References []string // names of the daemon's variables that it refers to, whose values it gets
}

// entryWritten returns the entry as it is written.
func (s *serverEntry) entryWritten(n *node) Written {
	var w Written
	if at := n.last("command"); at != nil {
		w.Command = append(w.Command, at.value.word)
	}
	if at := n.last("args"); at != nil {
		for _, arg := range at.value.items {
			w.Command = append(w.Command, arg.word)
		}
	}
	if at := n.last("url"); at != nil {
		w.URL = withoutSecrets(at.value.word)
	}
	w.Variables, w.Headers = pairNames(n.last("env")), pairNames(n.last("headers"))
	if s.reader.place.level != session { // there they are no references
		for _, key := range []string{"command", "args", "url", "env", "headers"} {
			if at := n.last(key); at != nil {
				w.References = append(w.References, references(&at.value)...)
			}
		}
		slices.Sort(w.References)
		w.References = slices.Compact(w.References)
	}
	return w
}

// pairNames returns the names of an object's members in order, each once.
func pairNames(m *member) (names []string) {
	if m == nil {
		return nil
	}
	for _, pair := range m.value.members {
		names = append(names, pair.key)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// references returns the names of the variables that a value refers to, wherever in it.
func references(n *node) (names []string) {
	if n.kind == text {
		for _, found := range reference.FindAllStringSubmatch(n.word, -1) {
			names = append(names, found[1])
		}
	}
	for i := range n.items {
		names = append(names, references(&n.items[i])...)
	}
	for i := range n.members {
		names = append(names, references(&n.members[i].value)...)
	}
	return names
}

// withoutSecrets returns an address without what may be one: the user's name and password, and the query.
func withoutSecrets(address string) string {
	address, query, _ := strings.Cut(address, "?")
	if query != "" {
		address += "?..."
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		if _, after, secret := strings.Cut(host, "@"); secret {
			return scheme + "://...@" + after + "/" + path
		}
	}
	return address
}
