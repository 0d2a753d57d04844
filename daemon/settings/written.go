package settings

import "strings"

// Written is an MCP server's entry for a person, and for records that are kept.
type Written struct {
	Command    []string // the program and its arguments
	URL        string   // without a user's name, a password and a query
	Variables  []string // names of those that it sets for the program
	Headers    []string // names
	References []string // names of the daemon's variables that it refers to, whose values it gets
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
