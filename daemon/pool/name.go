// How clients and settings name tools, one by one or all of a server.

package pool

import (
	"regexp"
	"strings"
)

// mcpPrefix is what the names of MCP servers' tools begin with.
const mcpPrefix = "mcp__"

// A name has what model APIs take. Two underscores end the name of a server, so that it has none at
// its ends and no two side by side within it.
var (
	toolName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	serverName = regexp.MustCompile(`^mcp__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)
)

// IsName reports whether a text is allowed as the name of a tool or a server: the full name of a
// tool, mcp__server, or mcp__server__* for the same. Other patterns are not allowed.
func IsName(text string) bool {
	if !strings.HasPrefix(text, mcpPrefix) {
		return toolName.MatchString(text)
	}
	if _, whole := server(text); whole {
		return true
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, mcpPrefix), "__")
	return rest != "" && toolName.MatchString(text) && serverName.MatchString(mcpPrefix+name)
}

// Names reports whether a text of that kind names the tool.
func Names(text, name string) bool {
	of, whole := server(text)
	return text == name || whole && strings.HasPrefix(name, of+"__")
}

// server returns the server, as in the names of its tools, of which a text names all.
func server(text string) (name string, whole bool) {
	name = strings.TrimSuffix(text, "__*")
	return name, serverName.MatchString(name)
}
