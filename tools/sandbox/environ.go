// What of an environment a child may see. This is the last filter before a process starts; it does not know where the
// variables came from.

package sandbox

import (
	"slices"
	"strings"
)

// dangerous are the names and, with a final *, the beginnings of names that make a program run or load what nobody
// asked for. No child ever gets them.
var dangerous = []string{
	"BASH_FUNC_*", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "LD_*", "GIT_DIR", "GIT_CONFIG*",
	"GIT_EXTERNAL_DIFF", "PROMPT_COMMAND", "LESSOPEN", "RIPGREP_CONFIG_PATH",
}

// secretPlaces are names that lead to a credential, or to an agent that holds some.
var secretPlaces = []string{
	"AWS_*", "DBUS_*", "DOCKER_HOST", "DOCKER_AUTH_CONFIG", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
	"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_*", "DATABASE_URL", "NETRC",
}

// secretEndings are how names of credentials end; the part must be the whole name or follow an underscore.
var secretEndings = []string{
	"TOKEN", "SECRET", "KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS", "PASS", "PASSPHRASE", "PAT", "COOKIE", "DSN",
}

// Environ is what a child gets of base, which is a list of NAME=value: without what Withheld names, each name once (the
// last wins), and with set, which is not filtered, in place of what base says of the same names.
func Environ(base []string, set ...string) []string {
	fixed := func(string) bool { return false }
	e := environment{seen: make(map[string]bool, len(base)+len(set)), list: make([]string, 0, len(base)+len(set))}
	e.add(set, fixed)
	e.add(base, Withheld)
	slices.Reverse(e.list)
	return e.list
}

// An environment is put together from its end, so that the first entry of a name is the one that counts.
type environment struct {
	seen map[string]bool
	list []string
}

func (e *environment) add(entries []string, withheld func(name string) bool) {
	for _, entry := range slices.Backward(entries) {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || e.seen[name] || strings.IndexByte(entry, 0) >= 0 {
			continue
		}
		e.seen[name] = true
		if name != MarkerName && !withheld(name) {
			e.list = append(e.list, entry)
		}
	}
}

// Withheld reports that children never see a variable of that name: it looks like a credential, or it would change
// what a program runs.
func Withheld(name string) bool {
	return matches(dangerous, name) || secret(strings.ToUpper(name))
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if beginning, open := strings.CutSuffix(p, "*"); name == p || open && strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// secret judges a name in capitals.
func secret(name string) bool {
	if strings.Contains(name, "PASSWORD") || strings.Contains(name, "PASSWD") || matches(secretPlaces, name) {
		return true
	}
	for _, ending := range secretEndings {
		rest, ok := strings.CutSuffix(name, ending)
		if ok && (rest == "" || rest[len(rest)-1] == '_') {
			return true
		}
	}
	return false
}
