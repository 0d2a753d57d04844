// How processes are confined, as far as settings say: the values, and the keys that they stand under. How a file's text
// becomes a value is sandbox_facts.go's, which of several files counts is sandbox_merge.go's. What a kernel can do with any
// of it is not known here.

package settings

import (
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/sandbox"
)

// Sandbox is how processes are confined, as settings say. The zero value is the default: confined, by all that the machine
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
	AllowedDomains, DeniedDomains []Name
	// ManagedDomainsOnly: no allow rule but the administrator's opens a domain. Of AllowedDomains the others are taken out.
	ManagedDomainsOnly *permission.Origin
	// SharedTmp: calls have the machine's directories for temporary files, and none of their session's own.
	SharedTmp *permission.Origin
	// AllUnixSockets: every Unix socket may be connected to. UnixSockets are those that may be without it.
	AllUnixSockets *permission.Origin
	UnixSockets    []Entry

	// CredentialFiles may not be read, like DenyRead. CredentialVars are names of variables that are withheld, and KeepVars
	// those that are not, though they look like a credential's; both may begin and end with *.
	CredentialFiles          []Entry
	CredentialVars, KeepVars []Name

	// Limits are those that files outside of workspaces set, Ceilings those of workspaces. See Within.
	Limits, Ceilings ProcessLimits

	lines []Line // the scalars that files set
}

// A Name is one entry of a list of names: a domain, or a variable.
type Name struct {
	Name   string
	Origin permission.Origin
}

// ProcessLimits bound what the processes of one call may take. 0: no file says anything.
type ProcessLimits struct {
	Processes int   // at once
	Memory    int64 // bytes
	FileSize  int64 // bytes of the largest file that may be written
	OpenFiles int   // of one process
}

// Within gives the limits in force where standard are those without settings: a workspace's count only where they are
// lower than what would be in force without it.
func (s *Sandbox) Within(standard ProcessLimits) ProcessLimits {
	out := standard
	for _, b := range processBounds {
		to := b.of(&out)
		if set := b.of(&s.Limits).get(); set > 0 {
			to.set(set)
		}
		if ceiling := b.of(&s.Ceilings).get(); ceiling > 0 && (ceiling < to.get() || to.get() == 0) {
			to.set(ceiling)
		}
	}
	return out
}

// Filter is what the environment of every child is filtered by.
func (s *Sandbox) Filter() sandbox.Filter {
	return sandbox.Filter{Withhold: plain(s.CredentialVars), Keep: plain(s.KeepVars)}
}

func plain(names []Name) []string {
	var out []string
	for _, n := range names {
		out = append(out, n.Name)
	}
	return out
}

// A processBound is how one of ProcessLimits is written and where it goes.
type processBound struct {
	key  string
	unit int64 // how much 1 is
	of   func(*ProcessLimits) amount
}

// An amount is a field of ProcessLimits; one of the two is nil.
type amount struct {
	count *int
	bytes *int64
}

func (a amount) get() int64 {
	if a.count != nil {
		return int64(*a.count)
	}
	return *a.bytes
}

func (a amount) set(n int64) {
	if a.count != nil {
		*a.count = int(n)
		return
	}
	*a.bytes = n
}

var processBounds = []processBound{
	{"sandbox.limits.processes", 1, func(l *ProcessLimits) amount { return amount{count: &l.Processes} }},
	{"sandbox.limits.memoryMB", 1 << 20, func(l *ProcessLimits) amount { return amount{bytes: &l.Memory} }},
	{"sandbox.limits.fileSizeMB", 1 << 20, func(l *ProcessLimits) amount { return amount{bytes: &l.FileSize} }},
	{"sandbox.limits.openFiles", 1, func(l *ProcessLimits) amount { return amount{count: &l.OpenFiles} }},
}

// A toggle is a key that is true or false. A workspace may only say the stricter of the two.
type toggle struct {
	key    string
	strict bool
	marks  bool // the value that the field is for
	field  func(*Sandbox) **permission.Origin
}

const (
	keyRequired    = "sandbox.required"
	keyUnavailable = "sandbox.failIfUnavailable" // Claude Code's word for the same
	keyExcluded    = "sandbox.excludedCommands"
	keySharedTmp   = "sandbox.sharedTmp" // the user's or the administrator's to say
	keyDomainsOnly = "sandbox.network.allowManagedDomainsOnly"
	keyLocal       = "sandbox.network.allowLocalBinding" // always so: a call has a loopback of its own
)

var toggles = []toggle{
	{"sandbox.enabled", true, false, func(s *Sandbox) **permission.Origin { return &s.Disabled }},
	{keyRequired, true, false, func(s *Sandbox) **permission.Origin { return &s.Optional }},
	{"sandbox.autoAllowBashIfSandboxed", false, true, func(s *Sandbox) **permission.Origin { return &s.AutoAllow }},
	{"sandbox.allowUnsandboxedCommands", false, false, func(s *Sandbox) **permission.Origin { return &s.NoEscape }},
	{keySharedTmp, false, true, func(s *Sandbox) **permission.Origin { return &s.SharedTmp }},
	{"sandbox.network.allowAllUnixSockets", false, true, func(s *Sandbox) **permission.Origin { return &s.AllUnixSockets }},
}

// A roll is a key with a list of paths, or of names, that all files add to. A workspace may not add to one that loosens.
type roll struct {
	key    string
	loose  bool
	sort   sort
	paths  func(*Sandbox) *[]Entry
	names  func(*Sandbox) *[]Name
	member string // of an entry that is written as an object; empty: none is
}

// A sort is what the entries of a roll are.
type sort uint8

const (
	pathSort sort = iota
	domainSort
	variableSort
)

const keyAllowRead, keyDomains = "sandbox.filesystem.allowRead", "sandbox.network.allowedDomains"

var rolls = []roll{
	{key: "sandbox.filesystem.allowWrite", loose: true, paths: func(s *Sandbox) *[]Entry { return &s.AllowWrite }},
	{key: "sandbox.filesystem.denyWrite", paths: func(s *Sandbox) *[]Entry { return &s.DenyWrite }},
	{key: "sandbox.filesystem.denyRead", paths: func(s *Sandbox) *[]Entry { return &s.DenyRead }},
	{key: "sandbox.credentials.files", paths: func(s *Sandbox) *[]Entry { return &s.CredentialFiles }, member: "path"},
	{key: keyAllowRead, loose: true, paths: func(s *Sandbox) *[]Entry { return &s.AllowRead }},
	{key: keyDomains, loose: true, sort: domainSort, names: func(s *Sandbox) *[]Name { return &s.AllowedDomains }},
	{key: "sandbox.network.deniedDomains", sort: domainSort, names: func(s *Sandbox) *[]Name { return &s.DeniedDomains }},
	{key: "sandbox.network.allowUnixSockets", loose: true, paths: func(s *Sandbox) *[]Entry { return &s.UnixSockets }},
	{key: "sandbox.credentials.envVars", sort: variableSort, names: func(s *Sandbox) *[]Name { return &s.CredentialVars }, member: "name"},
	{key: "sandbox.environment.keep", loose: true, sort: variableSort, names: func(s *Sandbox) *[]Name { return &s.KeepVars }},
}

// otherSandbox are keys of Claude Code's sandbox, which is made of other parts.
var otherSandbox = strings.Fields(`
	sandbox.bwrapPath sandbox.enableWeakerNestedSandbox sandbox.enableWeakerNetworkIsolation sandbox.enabledPlatforms
	sandbox.filesystem.allowManagedReadPathsOnly sandbox.filesystem.disabled sandbox.ignoreViolations
	sandbox.network.allowMachLookup sandbox.network.httpProxyPort sandbox.network.socksProxyPort
	sandbox.network.strictAllowlist sandbox.ripgrep sandbox.socatPath`)

// sandboxKeys are all that mean something, with those of the objects that others stand in.
var sandboxKeys = func() []string {
	keys := []string{keyUnavailable, keyExcluded, keyDomainsOnly, keyLocal}
	for _, t := range toggles {
		keys = append(keys, t.key)
	}
	for _, l := range rolls {
		keys = append(keys, l.key)
	}
	for _, b := range processBounds {
		keys = append(keys, b.key)
	}
	return keys
}()
