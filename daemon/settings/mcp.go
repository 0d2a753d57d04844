package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/permission"
)

// An MCPServer is one MCP server, as its entry describes it. In Command, Args, Env, URL and Headers
// the variables have their values, which may be secrets: who shows an entry shows Written.
type MCPServer struct {
	Name      string
	Transport string // "stdio", "http" (streamable) or "sse"
	// Command is of stdio: absolute if it was written with a slash, else to be looked for in PATH.
	Command  string
	Args     []string
	Env      []string // NAME=value by name: all that it gets of any environment
	URL      string   // of http and sse
	Headers  map[string]string
	Timeout  time.Duration // of one call; 0: the entry has none
	CacheTTL time.Duration // how long results of its read-only tools may be kept; 0: not at all
	// IdleTimeout is how long it runs without a call; 0: the entry has none, negative: no limit.
	IdleTimeout time.Duration
	// AlwaysLoad: its tools are never deferred. Shared: one process serves all sessions.
	AlwaysLoad, Shared bool
	// Confined: it runs in the sandbox. One that a workspace or a session names always does.
	Confined bool
	// Workspace is the root whose file names it; empty: it is no workspace's.
	Workspace string
	// Approved: it may be started. Of a .mcp.json, and of the session's own settings, a server is not before it was
	// approved; see Store.ApproveServer.
	Approved bool
	// Approval is the name under which an answer about it is kept; empty: it needs none.
	Approval string
	// Digest is of the entry as it is written but for its layout: another one is another server.
	Digest  string
	Written Written
	Origin  permission.Origin

	shown string // the entry for a person, without the values of variables
}

const (
	// serversFile is where a workspace names MCP servers for all programs that know of them.
	serversFile = ".mcp.json"
	// maxServers is how many one file may name. Each is a process.
	maxServers = 100
	// shortestTimeout is the least that a call of a server may have. Less was probably meant in seconds.
	shortestTimeout = time.Second
)

// servers are the MCP servers: of those of one name the highest file's whole entry counts. One that is not approved takes no
// other's place.
func servers(field *[]MCPServer) entries[MCPServer] {
	return entries[MCPServer]{
		object: true, most: maxServers, what: "server", field: field,
		parse: readServer,
		place: func(m *merger, _ *key, s *source, server *MCPServer) (ok bool) {
			if s.place.servers && m.switchedOff(s, server.Name) {
				return false
			}
			command, ok := m.command(s, []string{server.Command}, server.Written.Command, fmt.Sprintf("the server %q", server.Name), server.Origin)
			server.Command = command[0]
			if ok {
				m.judge(s, server)
			}
			return ok
		},
		waits:    func(s *MCPServer) bool { return !s.Approved },
		sorted:   func(s *MCPServer) string { return s.Name },
		identity: func(s *MCPServer) string { return plainName(s.Name) },
		line:     func(k *key, s *MCPServer) Line { return Line{k.name, s.String(), s.Origin} },
	}
}

// serversOf reads the whole of a .mcp.json.
func (r *reader) serversOf(root *node) {
	for _, m := range r.members(root, "") {
		switch m.key {
		case keyServers:
			r.key(sections[""][keyServers], m)
		case "$schema":
		default:
			r.unknown(m, "", []string{keyServers})
		}
	}
}

func readServer(r *reader, k *key, m member) (MCPServer, bool) {
	s, e := MCPServer{Name: m.key, Origin: r.origin(m.line)}, r.entry(k.name+"."+m.key)
	if !isServerName(m.key) {
		e.lacks(m.line, "has a name that rules cannot tell from others: at most 50 letters, digits, - and _, of which no two may stand side by side, and none at either end, are one; what is none of these counts as _")
		return s, false
	}
	var command, args, env []string // as written
	e.fields(&m.value, map[string]func(member){
		"type": func(m member) {
			known := map[string]string{"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
			if s.Transport = known[m.value.word]; m.value.kind != text || s.Transport == "" {
				e.fail(&m.value, m.key, `"stdio", "http" or "sse"`)
			}
		},
		"command": func(m member) {
			command = []string{e.word(m)}
			s.Command = e.expanded(m.line, command[0])
		},
		"args": func(m member) {
			args = e.words(m)
			for _, arg := range args {
				s.Args = append(s.Args, e.expanded(m.line, arg))
			}
		},
		"env": func(m member) { env, s.Env = e.variables(m) },
		"url": func(m member) {
			s.Written.URL = withoutSecrets(e.word(m))
			s.URL = e.expanded(m.line, m.value.word)
		},
		"headers":     func(m member) { s.Headers = e.headers(m) },
		"timeout":     func(m member) { s.Timeout = e.timeout(m) },
		"idleTimeout": func(m member) { s.IdleTimeout = e.idleTimeout(m) },
		"alwaysLoad":  func(m member) { s.AlwaysLoad = e.truth(m) },
		"shared":      func(m member) { s.Shared = e.truth(m) },
		"cacheTtl":    func(m member) { s.CacheTTL = e.ttl(m) },
		"sandbox":     func(m member) { s.Confined = e.confined(m) },
	})
	if !e.void {
		s.complete(e, m.line)
	}
	s.Digest = digest(&m.value)
	s.Written.Command = append(command, args...)
	for _, pair := range s.Env {
		name, _, _ := strings.Cut(pair, "=")
		s.Written.Variables = append(s.Written.Variables, name)
	}
	s.Written.Headers = slices.Sorted(maps.Keys(s.Headers))
	slices.Sort(e.references)
	s.Written.References = slices.Compact(e.references)
	s.shown = s.describe(r.place.level, env)
	return s, !e.void
}

// complete works out how the server is reached.
func (s *MCPServer) complete(e *entry, line int) {
	u := webURL(s.URL)
	switch {
	case (s.Command == "") == (s.URL == ""):
		e.lacks(line, `needs either a "command" or a "url"`)
	case s.Command != "" && (s.Transport == "http" || s.Transport == "sse"):
		e.lacks(line, `has a "command", which its type does not have`)
	case s.URL != "" && s.Transport == "stdio":
		e.lacks(line, `has a "url", which its type does not have`)
	case s.URL != "" && (u == nil || u.Hostname() == ""):
		e.lacks(line, `has a "url" that is no http or https address`)
	case s.Transport == "" && s.Command != "":
		s.Transport = "stdio"
	case s.Transport == "":
		s.Transport = "http"
	}
}

// variables reads an environment: NAME=value as written, and by name with the values of the daemon's variables.
func (e *entry) variables(m member) (written, expanded []string) {
	for _, v := range e.pairs(m) {
		if v.key == "" || strings.ContainsAny(v.key, "=\x00") {
			e.lacks(v.line, "has an env with a name that is no variable's")
			break
		}
		written = append(written, v.key+"="+v.value.word)
		expanded = append(expanded, v.key+"="+e.expanded(v.line, v.value.word))
	}
	slices.Sort(expanded)
	return written, expanded
}

func (e *entry) headers(m member) map[string]string {
	headers := map[string]string{}
	for _, h := range e.pairs(m) {
		value := e.expanded(h.line, h.value.word)
		if h.key == "" || strings.ContainsAny(h.key+value, "\r\n\x00") || strings.ContainsAny(h.key, " :") {
			e.lacks(h.line, "has a header that cannot be sent")
			break
		}
		headers[h.key] = value
	}
	return headers
}

// pairs reads an object of texts.
func (e *entry) pairs(m member) []member {
	if m.value.kind != object {
		e.fail(&m.value, m.key, "an object of texts")
		return nil
	}
	pairs := e.reader.members(&m.value, e.name+"."+m.key+".")
	for _, p := range pairs {
		if p.value.kind != text || strings.Contains(p.value.word, "\x00") {
			e.fail(&p.value, m.key+"."+shortened(p.key), "a text")
			return nil
		}
	}
	return pairs
}

// timeout is in milliseconds where it is a number, as the format has it elsewhere.
func (e *entry) timeout(m member) time.Duration {
	d, ok := milliseconds(&m.value)
	if !ok || d < shortestTimeout {
		e.reader.wrong(&m.value, e.name+"."+m.key, fmt.Sprintf(`a number of milliseconds of at least %d, or a text like "30s"`, shortestTimeout.Milliseconds()))
		return 0
	}
	return d
}

// idleTimeout is a time like timeout, or 0 for no limit, which it returns as a negative time.
func (e *entry) idleTimeout(m member) time.Duration {
	d, ok := milliseconds(&m.value)
	switch {
	case ok && d == 0:
		return -1
	case !ok || d < shortestTimeout:
		e.reader.wrong(&m.value, e.name+"."+m.key, fmt.Sprintf(`0, a number of milliseconds of at least %d, or a text like "30m"`, shortestTimeout.Milliseconds()))
		return 0
	}
	return d
}

// milliseconds reads a time that is in milliseconds where it is a number.
func milliseconds(n *node) (d time.Duration, ok bool) {
	if n.kind != number {
		return durationOf(n)
	}
	ms, err := strconv.ParseFloat(n.word, 64)
	return time.Duration(min(ms, 1e12) * float64(time.Millisecond)), err == nil
}

// confined reads whether the server runs in the sandbox.
func (e *entry) confined(m member) bool {
	if m.value.kind != boolean {
		e.void = true // it might run where it was not to
	}
	if at := e.reader.place.level; (at == workspace || at == session) && m.value.word == "false" {
		e.reader.idle(m.line, e.name+".sandbox false", "what a "+levelNames[at]+" names runs in the sandbox")
	}
	return e.truth(m)
}

// describe returns in one line what the server's entry runs, as it is written. Headers may hold secrets and are left out; so are
// the values of env, but for those of a workspace, which the user looks at before trusting it.
func (s *MCPServer) describe(at level, env []string) string {
	var words []string
	for _, pair := range env {
		if name, _, _ := strings.Cut(pair, "="); at != workspace {
			pair = name + "=..."
		}
		words = append(words, pair)
	}
	if s.Written.URL != "" {
		words = append(words, s.Written.URL)
	}
	if len(s.Written.Command) > 0 {
		words = append(words, commandText(s.Written.Command))
	}
	return strings.Join(words, " ")
}

// plainName is a server's name as it is in the names of its tools. Two servers with the same one are the same to rules.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

// isServerName reports whether rules about mcp__NAME__... are only about this server: __ within the
// name, or _ at an end of it, would let the tools of one server look like another's.
func isServerName(name string) bool {
	plain := plainName(name)
	return plain != "" && len(plain) <= 50 && !strings.Contains(plain, "__") && strings.Trim(plain, "_") == plain
}

// digest returns the same for values that mean the same, whatever their layout.
func digest(n *node) string {
	return sum([]byte(asJSON(n.plain())))
}

// plain returns the value as encoding/json takes it: what counts of it, in which members are written by key.
func (n *node) plain() any {
	switch n.kind {
	case object:
		members := map[string]any{}
		for i := range n.members {
			members[n.members[i].key] = n.members[i].value.plain() // of several the last counts
		}
		return members
	case list:
		items := make([]any, len(n.items))
		for i := range n.items {
			items[i] = n.items[i].plain()
		}
		return items
	case text:
		return n.word
	}
	return json.RawMessage(n.word)
}

// asJSON writes a value as JSON, with < > & as people write them. Digests are made of it.
func asJSON(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic("BUG: a value that cannot be written as JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
