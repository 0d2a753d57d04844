// The names of servers in rules. A build without MCP reads rules and settings too.

package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefix returns the name of a server in rules. The names of its tools begin with it and two
// underscores.
func Prefix(server string) string { return "mcp__" + safe(server) }

// maxServer is the longest name of a server, so that a tool's name has room for at least a hash
// after it.
const maxServer = 40

// unfit returns why rules cannot use the name of a server; empty: they can. Two underscores end the
// server's part of a tool's name: if they were in it, a rule for one server could match another's
// tool.
func unfit(server string) string {
	switch name := safe(server); {
	case name == "":
		return "it has no name"
	case len(name) > maxServer:
		return fmt.Sprintf("its name is longer than %d characters", maxServer)
	case strings.Contains(name, "__") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_"):
		return fmt.Sprintf("its name, %s in rules, begins or ends with an underscore or has two in a row, so it could be confused with names of tools", name)
	}
	return ""
}

// safe replaces each character that a name must not have by an underscore.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}
