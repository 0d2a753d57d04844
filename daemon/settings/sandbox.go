package settings

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

// Sandbox is how processes are confined, as files set it. The zero value is the default: confined, by all that the machine
// has. A field that is an origin is the place that switches it on; nil: it is off.
type Sandbox struct {
	// Disabled: nothing is confined (enabled false).
	Disabled *permission.Origin
	// Optional: where the machine has no means to confine, processes run unconfined instead of not at all (required false,
	// or failIfUnavailable false).
	Optional *permission.Origin
	// AutoAllow: a Bash call that is confined by all means is allowed where nothing but the lack of an allow rule would
	// have it asked about (autoAllowBashIfSandboxed true).
	AutoAllow *permission.Origin
	// NoEscape: dangerouslyDisableSandbox is denied (allowUnsandboxedCommands false).
	NoEscape *permission.Origin
	// Excluded are Bash rules for commands that run unconfined. Each is of the list allow and has its text as Bash(...).
	Excluded []permission.Rule

	// AllowWrite and DenyWrite are what may be written beside the roots, and what may not be. A denial beats whatever
	// allows.
	AllowWrite, DenyWrite []Entry
	// DenyRead and AllowRead are what may not be read, and what may be in spite of that: of two that hold a path the
	// longer one decides, of two equal ones the denial. None of another file opens what the administrator denies.
	DenyRead, AllowRead []Entry

	// AllowedDomains and DeniedDomains are hosts in lower case and without a final dot: "*" is all, "*.x" any depth below
	// x, and another * stays within a label, as in a WebFetch rule. A denial beats whatever allows.
	AllowedDomains, DeniedDomains []Entry
	// ManagedDomainsOnly: no allow rule but the administrator's opens a domain. Of AllowedDomains the others are taken out.
	ManagedDomainsOnly *permission.Origin
	// SharedTmp: calls have the machine's directories for temporary files, and none of their session's own.
	SharedTmp *permission.Origin
	// AllUnixSockets: every Unix socket may be connected to. UnixSockets are those that may be without it.
	AllUnixSockets *permission.Origin
	UnixSockets    []Entry

	// ForwardPorts is whether ports on which background tasks listen are opened for the user's browser.
	ForwardPorts Forwarding

	// CredentialFiles may not be read, like DenyRead. CredentialVars are names of variables that are withheld, and KeepVars
	// those that are not, though they look like a credential's; both may begin and end with *.
	CredentialFiles          []Entry
	CredentialVars, KeepVars []Entry

	// Limits are those that files outside of workspaces set, Ceilings those of workspaces. See Within.
	Limits, Ceilings ProcessLimits
}

// ProcessLimits bound what the processes of one call may take. 0: no file sets it.
type ProcessLimits struct {
	Processes int64 // at once
	Memory    int64 // bytes
	FileSize  int64 // bytes of the largest file that may be written
	OpenFiles int64 // of one process
}

// Within returns the limits in force where standard are those without settings: a workspace's count only where they are
// lower than what would be in force without it.
func (s *Sandbox) Within(standard ProcessLimits) ProcessLimits {
	out := standard
	for i, to := range out.all() {
		*to = cmp.Or(*s.Limits.all()[i], *to)
		if ceiling := *s.Ceilings.all()[i]; ceiling > 0 && (ceiling < *to || *to == 0) {
			*to = ceiling
		}
	}
	return out
}

func (l *ProcessLimits) all() []*int64 {
	return []*int64{&l.Processes, &l.Memory, &l.FileSize, &l.OpenFiles}
}

// Filter is what the environment of every child is filtered by.
func (s *Sandbox) Filter() sandbox.Filter {
	return sandbox.Filter{Withhold: plain(s.CredentialVars), Keep: plain(s.KeepVars)}
}

func plain(entries []Entry) (texts []string) {
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return texts
}

const onlyStricter = "a workspace can only make the sandbox stricter"

// A boundary is true or false, and one of the two is stricter. The highest file's counts, but the stricter one of any
// workspace beats it, trusted or not: the rest of a workspace is confined, not believed.
type boundary struct {
	strict    bool    // the stricter value
	sets      bool    // the value whose place the field is set to
	notLooser []level // whose files can set only the stricter one, beside those of workspaces
	field     **permission.Origin
}

func (b boundary) read(r *reader, k *key, m member) any {
	on, ok := r.flag(&m.value, k.name)
	if !ok {
		return nil
	}
	if at := r.place.level; on != b.strict && (at == workspace || slices.Contains(b.notLooser, at)) {
		why := onlyStricter
		if at != workspace {
			why = "only the user's or the administrator's file can set it"
		}
		r.idle(m.line, fmt.Sprintf("%s %t", k.name, on), why)
		return nil
	}
	return &value[bool]{on, r.origin(m.value.line)}
}

func (b boundary) merge(m *merger, k *key) {
	_, counts := tightened(m, k, strconv.FormatBool, func(on, than bool) bool { return on != than && on == b.strict })
	if counts != nil && counts.is == b.sets {
		*b.field = &counts.origin
	}
}

// tightened returns the value of the highest file outside workspaces, and the one that counts: the strictest of workspaces beats
// it, trusted or not. nil: there is none.
func tightened[T any](m *merger, k *key, text func(T) string, stricter func(v, than T) bool) (base, counts *value[T]) {
	base = highest[T](m, k.name)
	counts = base
	for _, s := range m.sources {
		switch v, _ := s.values[k.name].(*value[T]); {
		case v == nil || s.place.level != workspace:
		case counts == nil || stricter(v.is, counts.is):
			counts = v
		case base != nil && stricter(base.is, v.is):
			m.warn(v.origin, "%s %s has no effect: a workspace can only make it stricter, and %s is in force.", k.name, text(v.is), text(base.is))
		}
	}
	if counts != nil {
		m.line(k.name, text(counts.is), counts.origin)
	}
	return base, counts
}

// A processLimit is a whole number of units. Beside the highest file's outside workspaces the lowest of workspaces counts,
// trusted or not.
type processLimit struct {
	unit           int64
	limit, ceiling *int64
}

func (processLimit) read(r *reader, k *key, m member) any {
	return integer(1, math.MaxInt32, new(int64), 0).read(r, k, m) // so that it is a number on every machine, in bytes too
}

func (p processLimit) merge(m *merger, k *key) {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	base, counts := tightened(m, k, text, func(n, than int64) bool { return n < than })
	if base != nil {
		*p.limit = base.is * p.unit
	}
	if counts != base {
		*p.ceiling = counts.is * p.unit
	}
}

// excludedCommands are rules for Bash, without Bash(...).
func excludedCommands(field *[]permission.Rule) entries[permission.Rule] {
	return entries[permission.Rule]{
		expected: listOfTexts, field: field,
		parse: ruleIn(permission.AllowList, func(word string) (string, string) {
			command := strings.TrimSpace(word)
			if bare, isRule := strings.CutPrefix(command, "Bash("); isRule && strings.HasSuffix(bare, ")") {
				return "", fmt.Sprintf("a command without Bash(...), such as %q", shortened(strings.TrimSuffix(bare, ")")))
			}
			if command == "" {
				return "", "a command, which may hold *"
			}
			return "Bash(" + command + ")", ""
		}),
		identity: func(r *permission.Rule) string { return r.Text },
		line: func(k *key, r *permission.Rule) Line {
			return Line{k.name, strings.TrimSuffix(strings.TrimPrefix(r.Text, "Bash("), ")"), r.Origin}
		},
	}
}

// confined is a list of paths of the sandbox.
func confined(field *[]Entry) entries[Entry] {
	return paths(parsePlace, (*merger).placed, field)
}

// opened is the list of paths of the sandbox that may be read. None but the administrator opens what the administrator denies.
func opened(b *Sandbox) entries[Entry] {
	e := confined(&b.AllowRead)
	place := e.place
	e.place = func(m *merger, k *key, s *source, e *Entry) bool {
		if !place(m, k, s, e) {
			return false
		}
		denied := slices.Concat(b.DenyRead, b.CredentialFiles)
		at := slices.IndexFunc(denied, func(d Entry) bool {
			return d.Origin.Managed && !e.Origin.Managed && pathname.Within(d.Text, e.Text)
		})
		if at >= 0 {
			m.warn(e.Origin, "%s: the path %q has no effect: %s denies it.", k.name, shortened(e.Text), denied[at].Origin)
		}
		return at < 0
	}
	return e
}

// placed resolves a path of the sandbox. A relative one is relative to where its file is: to the root of a workspace's and of
// the session's, else to the file's folder.
func (m *merger) placed(s *source, path string) (absolute, why string) {
	if path == "~" || strings.HasPrefix(path, "~/") || filepath.IsAbs(path) {
		return m.absolute(s, path)
	}
	if s.place.base == "" {
		return "", noBase
	}
	return filepath.Join(s.place.base, path), ""
}

// parsePlace returns the path that an entry stands for, or what is expected in its place.
func parsePlace(word string) (path, expected string) {
	path = strings.TrimSuffix(word, "/**")
	switch {
	case path == "" && word != "":
		return "/", ""
	case path == "" || strings.Contains(path, "\x00"):
		return "", "a path"
	case strings.Contains(path, "*"):
		return "", "a path without *, since what the kernel confines are places; Read(...) and Edit(...) rules know patterns"
	case path[0] == '$' || path[0] == '~' && path != "~" && path[1] != '/':
		return "", "an absolute path, one that begins with ~/, or a relative one: variables and names of users are not looked up"
	}
	return path, ""
}

func allowedDomains(field *[]Entry) entries[Entry] {
	e := texts(parseDomain, field)
	e.managed = keyDomainsOnly
	return e
}

func parseDomain(word string) (host, expected string) {
	host = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(word)), ".")
	if host == "" || strings.ContainsAny(host, "/:@ \t\n\x00") {
		return "", "a domain without scheme, port and path, such as example.com or *.example.com"
	}
	return host, ""
}

func parseCredential(word string) (name, expected string) {
	if middle := strings.TrimSuffix(strings.TrimPrefix(word, "*"), "*"); word == "" || strings.ContainsAny(middle, "*=\x00") {
		return "", "a name of an environment variable, with * at its beginning or its end at most"
	}
	return word, ""
}

func parseKept(word string) (name, expected string) {
	name, expected = parseCredential(word)
	if expected == "" && sandbox.Unsafe(name) {
		expected = "a variable that does not change what programs run"
	}
	return name, expected
}
