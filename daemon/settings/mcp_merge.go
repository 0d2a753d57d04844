// Which MCP servers count, and which of them may be started. A .mcp.json is not among the files that trust is about: each of
// its servers is approved by itself, and so is each of a session's own settings. It does not know who is asked.

package settings

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// approvals is what one file says of the servers of .mcp.json files.
type approvals struct {
	all               *flag
	enabled, disabled []Entry // names of servers
}

const (
	keyEnableAll = "enableAllProjectMcpServers"
	keyEnabled   = "enabledMcpjsonServers"
	keyDisabled  = "disabledMcpjsonServers"
)

// approves reports whether the file's word can approve a server: what a workspace shares cannot approve what it brings along.
func (r *reader) approves(m member) bool {
	if r.place.level != workspace || strings.HasSuffix(r.place.file, ".local.json") {
		return true
	}
	if !m.value.isEmpty() && m.value.word != "false" {
		r.idle(m.line, m.key, "what a workspace shares does not approve its own servers")
	}
	return false
}

func (r *reader) enableAll(m member) {
	if r.approves(m) {
		r.facts.approvals.all = r.flag(&m.value, m.key)
	}
}

func (r *reader) enabledServers(m member) {
	if r.approves(m) {
		r.facts.approvals.enabled = r.entries(&m.value, m.key)
	}
}

func (r *reader) disabledServers(m member) {
	r.facts.approvals.disabled = r.entries(&m.value, m.key)
}

// servers merges the lists: of servers of one name the highest file's whole entry counts. One that nobody has approved takes
// no other's place.
func (m *merger) servers(v *view) {
	taken := map[string]*MCPServer{}
	for i := range m.sources {
		s := &m.sources[i]
		for _, said := range s.facts.servers {
			switch {
			case !s.trusted:
				m.lost(s, lostServers(s))
				continue
			case s.place.servers && m.switchedOff(s, said.Name):
				continue
			}
			server, why := m.placedServer(v, s, said)
			if why != "" {
				m.warn("%s: the server %q has no effect: of its program %q, %s.", said.Origin, said.Name, shortened(said.Written.Command[0]), why)
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
	m.approvalLines()
}

func lostServers(s *source) string {
	if s.place.servers {
		return "the servers of " + serversFile
	}
	return keyServers
}

// placedServer is the server as it is in the scope.
func (m *merger) placedServer(v *view, s *source, said MCPServer) (server *MCPServer, why string) {
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
		said.Approved = m.approved(v, s, &said)
	case s.place.level == workspace:
		said.Workspace, said.Confined = s.place.base, true
	case s.place.level == session:
		said.Confined, said.Approval = true, sessionApproval(said.Name)
		said.Approved = m.approvedForSession(v, &said)
	}
	return &said, ""
}

// sessionApproval is under which name an answer about a server of a session's own settings is kept: not under that of one in
// a .mcp.json, where it is another one.
func sessionApproval(name string) string { return SessionText + " " + name }

// approvedForSession reports that a session may start the server of its own settings: that an answer has approved this very
// entry in its first root, or that the administrator or the user has the same entry. A name alone approves nothing, since
// whoever sends the settings chooses what it stands for.
func (m *merger) approvedForSession(v *view, server *MCPServer) bool {
	for _, s := range m.sources {
		same := func(o MCPServer) bool { return o.Name == server.Name && o.Digest == server.Digest }
		if (s.place.level == managed || s.place.level == user) && slices.ContainsFunc(s.facts.servers, same) {
			return true
		}
	}
	if len(m.scope.Roots) == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(m.scope.Roots[0])
	return err == nil && v.book().Servers[real][server.Approval] == server.Digest
}

// displaced tells of a server that another file's has put out of force: rules about the one are then about the other.
func (m *merger) displaced(higher, lower *MCPServer) {
	if higher.Workspace != "" && higher.Workspace != lower.Workspace {
		m.warn("%s: the server %q has no effect: the one of %s stands in its place.", lower.Origin, shortened(lower.Name), higher.Origin)
	}
}

// rooted are the sources whose word on the servers of the root of s is heard: those of other roots are not.
func (m *merger) rooted(s *source) (heard []*source) {
	for i := range m.sources {
		if o := &m.sources[i]; o.place.level != workspace || o.root == s.root {
			heard = append(heard, o)
		}
	}
	return heard
}

// switchedOff takes any file's word for it, and anybody's.
func (m *merger) switchedOff(s *source, name string) bool {
	return slices.ContainsFunc(m.rooted(s), func(o *source) bool { return names(o.facts.approvals.disabled, name) })
}

func names(entries []Entry, name string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Path == name })
}

// approved reports that somebody has approved the server as it is now: by an answer, for this very entry; or by its name, as
// long as the file is what it was when the root was trusted.
func (m *merger) approved(v *view, s *source, server *MCPServer) bool {
	root := m.scope.Roots[s.root]
	real, err := filepath.EvalSymlinks(root)
	b := v.book()
	if err == nil && b.Servers[real][server.Approval] == server.Digest {
		return true
	}
	if !m.named(s, server.Name) {
		return false
	}
	if m.scope.Trusted || err == nil && v.asTrusted(b, s.root, real) {
		return true
	}
	m.warn("%s has changed since %s was trusted: %s and %s do not approve what it says now. Look at it, then run: toold trust %s", s.place.file, root, keyEnabled, keyEnableAll, quoted(root))
	return false
}

// named reports that settings approve the server by its name.
func (m *merger) named(s *source, name string) bool {
	heard := m.rooted(s)
	for _, o := range heard {
		if names(o.facts.approvals.enabled, name) {
			return true
		}
	}
	for _, o := range heard {
		if all := o.facts.approvals.all; all != nil {
			return all.on
		}
	}
	return false
}

// asTrusted reports that the .mcp.json of the scope's root of an index is what it was when the root was trusted.
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

// approvalLines notes what settings say of the servers of .mcp.json files.
func (m *merger) approvalLines() {
	for _, s := range m.sources {
		if all := s.facts.approvals.all; all != nil && s.trusted {
			m.flag(keyEnableAll, all)
		}
		for _, e := range s.facts.approvals.enabled {
			if s.trusted {
				m.out.flags = append(m.out.flags, Line{keyEnabled, e.Path, e.Origin})
			}
		}
	}
	for _, s := range m.sources {
		for _, e := range s.facts.approvals.disabled {
			m.out.flags = append(m.out.flags, Line{keyDisabled, e.Path, e.Origin})
		}
	}
}

// serverLines gives the servers, one a line.
func (s *Settings) serverLines() []Line {
	var out []Line
	for i := range s.MCPServers {
		server := &s.MCPServers[i]
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
		out = append(out, Line{keyServers, text, server.Origin})
	}
	return out
}
