package mcp

// What rules call a server. Also a build without MCP reads rules and settings.

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefix is what rules call a server, and what the names of its tools begin with, two underscores behind it.
func Prefix(server string) string { return "mcp__" + safe(server) }

// maxServer is the longest name of a server: what follows it in the name of a tool, a hash at least, has to have room.
const maxServer = 40

// unfit returns why a server cannot have a name, as rules have it; empty: it can. Two underscores end the server's part of a tool's
// name. Were they in it, a rule about one server could be about another's tool.
func unfit(server string) string {
	switch name := safe(server); {
	case name == "":
		return "it has no name"
	case len(name) > maxServer:
		return fmt.Sprintf("its name is longer than %d characters", maxServer)
	case strings.Contains(name, "__") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_"):
		return fmt.Sprintf("its name, %s in rules, begins or ends with an underscore or has two in a row, and so could not be told from the names of tools", name)
	}
	return ""
}

// safe puts an underscore in the place of each character that no name may have.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}
