package settings

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/toold/toold/scheduler/permission"
)

// servers merges the lists: of servers of one name the highest file's whole entry counts. One that is not approved takes
// no other's place.
func (m *merger) servers(k *key) {
	taken := map[string]*MCPServer{}
	for i := range m.sources {
		s := &m.sources[i]
		for _, said := range serversIn(s.facts) {
			switch {
			case !s.trusted:
				m.lost(s, lostServers(s))
				continue
			case s.place.servers && m.switchedOff(s, said.Name):
				continue
			}
			server, why := m.placedServer(s, said)
			if why != "" {
				m.warn(said.Origin, "the server %q has no effect: of its program %q, %s.", said.Name, shortened(said.Written.Command[0]), why)
				continue
			}
			higher := taken[plainName(server.Name)]
			if higher != nil {
				m.displaced(higher, server)
				continue
			}
			if server.Approved {
				taken[plainName(server.Name)] = server
			}
			m.out.MCPServers = append(m.out.MCPServers, *server)
		}
	}
	slices.SortStableFunc(m.out.MCPServers, func(a, b MCPServer) int { return cmp.Compare(a.Name, b.Name) })
	for i := range m.out.MCPServers {
		m.line(k.name, m.out.MCPServers[i].String(), m.out.MCPServers[i].Origin)
	}
}

func serversIn(f *facts) []MCPServer {
	servers, _ := f.values[keyServers].([]MCPServer)
	return servers
}

func lostServers(s *source) string {
	if s.place.servers {
		return "the servers of " + serversFile
	}
	return keyServers
}

// placedServer is the server as it is in the scope.
func (m *merger) placedServer(s *source, said MCPServer) (server *MCPServer, why string) {
	if said.Command != "" {
		command, why := m.command(s, []string{said.Command})
		if why != "" {
			return nil, why
		}
		said.Command = command[0]
	}
	said.Approved = true
	switch {
	case s.place.servers:
		said.Workspace, said.Confined, said.Approval = s.place.base, true, said.Name
		said.Approved = m.approved(s, &said)
	case s.place.level == workspace:
		said.Workspace, said.Confined = s.place.base, true
	case s.place.level == session:
		said.Confined, said.Approval = true, sessionApproval(said.Name)
		said.Approved = m.approvedForSession(&said)
	}
	return &said, ""
}

// sessionApproval is under which name an answer about a server of a session's own settings is kept: not under that of one in
// a .mcp.json, where it is another one.
func sessionApproval(name string) string { return SessionText + " " + name }

// approvedForSession reports whether a session may start the server of its own settings: that an answer has approved this very
// entry in its first root, or that the administrator or the user has the same entry. Its name approves nothing, since
// the client chooses which entry has the name.
func (m *merger) approvedForSession(server *MCPServer) bool {
	for _, s := range m.sources {
		same := func(o MCPServer) bool { return o.Name == server.Name && o.Digest == server.Digest }
		if (s.place.level == managed || s.place.level == user) && slices.ContainsFunc(serversIn(s.facts), same) {
			return true
		}
	}
	if len(m.scope.Roots) == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(m.scope.Roots[0])
	return err == nil && m.view.book().Servers[real][server.Approval] == server.Digest
}

// displaced warns of a server that has no effect because of another file's: rules about the one are then about the other.
func (m *merger) displaced(higher, lower *MCPServer) {
	if higher.Workspace != "" && higher.Workspace != lower.Workspace {
		m.warn(lower.Origin, "the server %q has no effect: the one of %s is used instead.", shortened(lower.Name), higher.Origin)
	}
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
	all, _ := f.values[key].([]Name)
	return slices.ContainsFunc(all, func(n Name) bool { return n.Name == name })
}

// approved reports whether the server is approved as it is now: by an answer, for this very entry; or by its name, as
// long as the file is what it was when the root was trusted.
func (m *merger) approved(s *source, server *MCPServer) bool {
	root := m.scope.Roots[s.root]
	real, err := filepath.EvalSymlinks(root)
	b := m.view.book()
	if err == nil && b.Servers[real][server.Approval] == server.Digest {
		return true
	}
	if !m.named(s, server.Name) {
		return false
	}
	if m.scope.Trusted || err == nil && m.view.asTrusted(b, s.root, real) {
		return true
	}
	changed := warningAt(permission.Origin{File: s.place.file}, "it has changed since %s was trusted: %s and %s do not approve its servers any more. Look at it, then run: toold trust %s", root, keyEnabled, keyEnableAll, quoted(root))
	changed.Code = Untrusted
	m.warnings = append(m.warnings, changed)
	return false
}

// named reports whether settings approve the server by its name.
func (m *merger) named(s *source, name string) bool {
	heard := m.rooted(s)
	for _, o := range heard {
		if o.lists(keyEnabled, name) {
			return true
		}
	}
	for _, o := range heard {
		if all := o.flag(keyEnableAll); all != nil {
			return all.is
		}
	}
	return false
}

// asTrusted reports whether the .mcp.json of the scope's root of an index is what it was when the root was trusted.
func (v *view) asTrusted(b book, root int, real string) bool {
	sum := v.serversSum(root)
	return sum != "" && sum != unusable && b.Roots[real].Files[serversFile] == sum
}

// book is the content of the trust file; of one that is not there, or cannot be used, an empty one.
func (v *view) book() book {
	if v.trust == nil || v.trust.err != nil || v.trust.good == nil {
		return book{}
	}
	return *v.trust.good
}

// serversSum is the hash of the .mcp.json of the scope's root of an index; empty: there is none.
func (v *view) serversSum(root int) string {
	for _, l := range v.layers {
		if l.place.servers && l.root == root {
			if l.reading.err != nil {
				return unusable
			}
			return l.reading.sum
		}
	}
	return ""
}

// String shows the server to a person, without the values of variables.
func (server *MCPServer) String() string {
	text := server.Name + ": " + server.shown
	if server.Confined && server.Transport == "stdio" {
		text += ", in the sandbox"
	}
	if server.Shared {
		text += ", shared"
	}
	if !server.Approved {
		text += ", not approved"
	}
	return text
}
