package settings

import (
	"slices"

	"github.com/toold/toold/scheduler/permission"
)

// judge works out how the server runs in the scope, and whether it is approved.
func (m *merger) judge(s *source, server *MCPServer) {
	server.Approved = true
	if s.place.level == workspace {
		server.Workspace, server.Confined = s.place.base, true
	}
	switch {
	case s.place.servers:
		server.Approval = server.Name
		server.Approved = m.approved(s, server)
	case s.place.level == session:
		server.Confined, server.Approval = true, sessionApproval(server.Name)
		server.Approved = m.approvedForSession(server)
	}
}

// sessionApproval is under which name an answer about a server of a session's own settings is kept: not under that of one in
// a .mcp.json, where it is another one.
func sessionApproval(name string) string { return SessionText + " " + name }

// approvedForSession reports whether a session may start the server of its own settings: that an answer has approved this very
// entry in its first root, or that the administrator or the user has the same entry. Its name approves nothing, since
// the client chooses which entry has the name.
func (m *merger) approvedForSession(server *MCPServer) bool {
	for _, s := range m.sources {
		named, _ := s.values[keyServers].([]MCPServer)
		same := func(o MCPServer) bool { return o.Name == server.Name && o.Digest == server.Digest }
		if (s.place.level == managed || s.place.level == user) && slices.ContainsFunc(named, same) {
			return true
		}
	}
	return len(m.roots) > 0 && m.book.Servers[m.roots[0].real][server.Approval] == server.Digest
}

// rooted returns the sources that decide on the servers of the root of s: all but those of other roots.
func (m *merger) rooted(s *source) (heard []*source) {
	for i := range m.sources {
		if o := &m.sources[i]; o.place.level != workspace || o.root == s.root {
			heard = append(heard, o)
		}
	}
	return heard
}

// switchedOff reports whether any file leaves the server out, trusted or not.
func (m *merger) switchedOff(s *source, name string) bool {
	return slices.ContainsFunc(m.rooted(s), func(o *source) bool { return o.lists(keyDisabled, name) })
}

// lists reports whether the file has the name in the list of a key.
func (f *facts) lists(key, name string) bool {
	all, _ := f.values[key].([]Entry)
	return slices.ContainsFunc(all, func(e Entry) bool { return e.Text == name })
}

// approved reports whether the server is approved as it is now: by an answer, for this very entry; or by its name, as
// long as the file is what it was when the root was trusted.
func (m *merger) approved(s *source, server *MCPServer) bool {
	root := &m.roots[s.root]
	sum := root.sums[serversFile]
	switch {
	case m.book.Servers[root.real][server.Approval] == server.Digest:
		return true
	case !m.named(s, server.Name):
		return false
	case m.scope.Trusted || sum != "" && sum != unusable && m.book.Roots[root.real].Files[serversFile] == sum:
		return true
	}
	changed := warningAt(permission.Origin{File: s.place.file}, "it has changed since %s was trusted: %s and %s do not approve its servers any more. Look at it, then run: toold trust %s", root.path, keyEnabled, keyEnableAll, quoted(root.path))
	changed.Code = Untrusted
	m.warnings = append(m.warnings, changed)
	return false
}

// named reports whether settings approve the server by its name.
func (m *merger) named(s *source, name string) bool {
	heard := m.rooted(s)
	if slices.ContainsFunc(heard, func(o *source) bool { return o.lists(keyEnabled, name) }) {
		return true
	}
	all := slices.IndexFunc(heard, func(o *source) bool { return o.flag(keyEnableAll) != nil })
	return all >= 0 && heard[all].flag(keyEnableAll).is
}

// String shows the server to a person, without the values of variables.
func (s *MCPServer) String() string {
	text := s.Name + ": " + s.shown
	if s.Confined && s.Transport == "stdio" {
		text += ", in the sandbox"
	}
	if s.Shared {
		text += ", shared"
	}
	if !s.Approved {
		text += ", not approved"
	}
	return text
}
