package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
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

// serverKeys are what an entry may have.
var serverKeys = map[string]func(*serverEntry, member){
	"type":       (*serverEntry).kind,
	"command":    func(s *serverEntry, m member) { s.out.Command = s.expanded(m.line, s.word(m)) },
	"args":       (*serverEntry).args,
	"env":        (*serverEntry).env,
	"url":        func(s *serverEntry, m member) { s.out.URL = s.expanded(m.line, s.word(m)) },
	"headers":    (*serverEntry).headers,
	"timeout":    (*serverEntry).timeout,
	"alwaysLoad": func(s *serverEntry, m member) { s.out.AlwaysLoad = s.truth(m) },
	"shared":     func(s *serverEntry, m member) { s.out.Shared = s.truth(m) },
	"cacheTtl":   func(s *serverEntry, m member) { s.out.CacheTTL = s.ttl(m) },
	"sandbox":    (*serverEntry).sandbox,
}

// A serverEntry is an MCP server while it is read.
type serverEntry struct {
	entry
	out     MCPServer
	written []string // NAME=value of env, as written
}

func readServers(r *reader, _ *key, m member) any {
	var out []MCPServer
	for i, m := range r.members(&m.value, keyServers+".") {
		if i == maxServers {
			r.warn(m.line, "%s names more than %d servers; the rest has no effect", keyServers, maxServers)
			break
		}
		s := serverEntry{entry: r.entry(keyServers + "." + m.key)}
		s.out.Name, s.out.Origin = m.key, r.origin(m.line)
		if s.read(m); !s.void {
			s.out.Digest = digest(&m.value)
			s.out.Written = s.entryWritten(&m.value)
			s.out.shown = s.describe()
			out = append(out, s.out)
		}
	}
	return out
}

// serversOf reads the whole of a .mcp.json.
func (r *reader) serversOf(root *node) {
	for _, m := range r.members(root, "") {
		switch m.key {
		case keyServers:
			r.facts.values[keyServers] = readServers(r, nil, m)
		case "$schema":
		default:
			r.unknown(m, "", []string{keyServers})
		}
	}
}

func (s *serverEntry) read(m member) {
	if !isServerName(m.key) {
		s.lacks(m.line, "has a name that rules cannot tell from others: at most 50 letters, digits, - and _, of which no two may stand side by side, and none at either end, are one; what is none of these counts as _")
		return
	}
	for _, m := range s.known(&m.value, slices.Sorted(maps.Keys(serverKeys))) {
		serverKeys[m.key](s, m)
	}
	if !s.void {
		s.complete(m.line)
	}
}

// complete works out how the server is reached.
func (s *serverEntry) complete(line int) {
	out := &s.out
	switch {
	case (out.Command == "") == (out.URL == ""):
		s.lacks(line, `needs either a "command" or a "url"`)
	case out.Command != "" && (out.Transport == "http" || out.Transport == "sse"):
		s.lacks(line, `has a "command", which its type does not have`)
	case out.URL != "" && out.Transport == "stdio":
		s.lacks(line, `has a "url", which its type does not have`)
	case out.URL != "" && !isServerURL(out.URL):
		s.lacks(line, `has a "url" that is no http or https address`)
	case out.Transport == "" && out.Command != "":
		out.Transport = "stdio"
	case out.Transport == "":
		out.Transport = "http"
	}
}

func isServerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func (s *serverEntry) kind(m member) {
	known := map[string]string{"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
	if s.out.Transport = known[m.value.word]; m.value.kind != text || s.out.Transport == "" {
		s.fail(&m.value, m.key, `"stdio", "http" or "sse"`)
	}
}

func (s *serverEntry) args(m member) {
	for _, arg := range s.words(m) {
		s.out.Args = append(s.out.Args, s.expanded(m.line, arg))
	}
}

func (s *serverEntry) env(m member) {
	for _, v := range s.pairs(m) {
		if v.key == "" || strings.ContainsAny(v.key, "=\x00") {
			s.lacks(v.line, "has an env with a name that is no variable's")
			return
		}
		s.written = append(s.written, v.key+"="+v.value.word)
		s.out.Env = append(s.out.Env, v.key+"="+s.expanded(v.line, v.value.word))
	}
	slices.Sort(s.out.Env)
}

func (s *serverEntry) headers(m member) {
	s.out.Headers = map[string]string{}
	for _, h := range s.pairs(m) {
		value := s.expanded(h.line, h.value.word)
		if h.key == "" || strings.ContainsAny(h.key+value, "\r\n\x00") || strings.ContainsAny(h.key, " :") {
			s.lacks(h.line, "has a header that cannot be sent")
			return
		}
		s.out.Headers[h.key] = value
	}
}

// pairs reads an object of texts.
func (s *serverEntry) pairs(m member) []member {
	if m.value.kind != object {
		s.fail(&m.value, m.key, "an object of texts")
		return nil
	}
	pairs := s.reader.members(&m.value, s.name+"."+m.key+".")
	for _, p := range pairs {
		if p.value.kind != text || strings.Contains(p.value.word, "\x00") {
			s.fail(&p.value, m.key+"."+shortened(p.key), "a text")
			return nil
		}
	}
	return pairs
}

// timeout is in milliseconds where it is a number, as the format has it elsewhere.
func (s *serverEntry) timeout(m member) {
	n := m.value
	d, ok := durationOf(&n)
	if n.kind == number {
		ms, err := strconv.ParseFloat(n.word, 64)
		d, ok = time.Duration(min(ms, 1e12)*float64(time.Millisecond)), err == nil
	}
	if !ok || d < shortestTimeout {
		s.reader.wrong(&n, s.name+"."+m.key, fmt.Sprintf(`a number of milliseconds of at least %d, or a text like "30s"`, shortestTimeout.Milliseconds()))
		return
	}
	s.out.Timeout = d
}

func (s *serverEntry) sandbox(m member) {
	if s.out.Confined = s.truth(m); m.value.kind != boolean {
		s.void = true // it might run where it was not to
	}
	if at := s.reader.place.level; (at == workspace || at == session) && m.value.word == "false" {
		s.reader.idle(m.line, s.name+".sandbox false", "what a "+levelNames[at]+" names runs in the sandbox")
	}
}

// describe returns in one line what the entry runs, as it is written. Headers may hold secrets and are left out; so are the
// values of variables, but for those of a workspace, which the user looks at before trusting it.
func (s *serverEntry) describe() string {
	var words []string
	for _, pair := range s.written {
		if name, _, _ := strings.Cut(pair, "="); s.reader.place.level != workspace {
			pair = name + "=..."
		}
		words = append(words, pair)
	}
	w := s.out.Written
	if w.URL != "" {
		words = append(words, w.URL)
	}
	for i, word := range w.Command {
		if i > 0 {
			word = strconv.Quote(word)
		}
		words = append(words, word)
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
