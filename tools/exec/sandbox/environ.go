// The environment of a child: the last filter before a process starts.

package sandbox

import (
	"slices"
	"strings"
)

// dangerous are the names and, with a final *, the prefixes of names of variables that make a
// program run or load other code. No child ever gets them.
var dangerous = []string{
	"BASH_FUNC_*", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "LD_*", "GIT_DIR", "GIT_CONFIG*",
	"GIT_EXTERNAL_DIFF", "PROMPT_COMMAND", "LESSOPEN", "RIPGREP_CONFIG_PATH",
}

// secretPlaces are variables that lead to a credential, or to an agent that holds some.
var secretPlaces = []string{
	"AWS_*", "DBUS_*", "DOCKER_HOST", "DOCKER_AUTH_CONFIG", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
	"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_*", "DATABASE_URL", "NETRC",
}

// secretEndings are the endings of credentials' names. The ending must be the whole name or follow
// an underscore.
var secretEndings = []string{
	"TOKEN", "SECRET", "KEY", "APIKEY", "CREDENTIAL", "CREDENTIALS", "PASS", "PASSPHRASE", "PAT", "COOKIE", "DSN",
}

// A Filter holds a caller's additions to the built-in list of names. The zero value adds nothing. A
// name may begin and end with *, which stands for any text.
type Filter struct {
	Withhold []string // names that children never see; case does not matter
	Keep     []string // names that children see although they look like a credential's; Withhold and Unsafe override them
}

// Environ returns the environment of a child for base, a list of NAME=value. Variables that
// Withheld reports are left out. Each name appears once, and the last value wins. set is not
// filtered and replaces variables of the same names.
func (f Filter) Environ(base []string, set ...string) []string {
	seen, list := make(map[string]bool, len(base)+len(set)), make([]string, 0, len(base)+len(set))
	for i, entry := range slices.Backward(slices.Concat(base, set)) {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || seen[name] || strings.IndexByte(entry, 0) >= 0 {
			continue
		}
		seen[name] = true
		if name != MarkerName && (i >= len(base) || !f.Withheld(name)) {
			list = append(list, entry)
		}
	}
	slices.Reverse(list)
	return list
}

// Withheld reports whether children never see a variable of that name: it looks like a credential
// and is not in Keep, it is in Withhold, or it would change what a program runs.
func (f Filter) Withheld(name string) bool {
	capitals := strings.ToUpper(name)
	return Unsafe(name) || f.withholds(capitals) || (credential(capitals) || matches(secretPlaces, capitals)) && !matches(f.Keep, name)
}

// Secrets returns the values that must not be shown: those of variables whose names are a
// credential's own, or that the filter withholds. It omits paths and values that are too short, or
// too much like a word. A password "postgres" would otherwise remove that word from every text.
func (f Filter) Secrets(environ []string) []string {
	const least, word = 8, 16
	var values []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		capitals := strings.ToUpper(name)
		named := credential(capitals) || capitals == "DATABASE_URL" || capitals == "DOCKER_AUTH_CONFIG" || f.withholds(capitals)
		if named && !Unsafe(name) && len(value) >= least && value[0] != '/' && (len(value) >= word || strings.ContainsAny(value, "0123456789")) {
			values = append(values, value)
		}
	}
	return values
}

func (f Filter) withholds(capitals string) bool {
	return slices.ContainsFunc(f.Withhold, func(p string) bool { return fits(strings.ToUpper(p), capitals) })
}

// Environ is Environ of the zero Filter.
func Environ(base []string, set ...string) []string { return Filter{}.Environ(base, set...) }

// Unsafe reports whether a variable of that name would change what a program runs. No filter lets
// it through.
func Unsafe(name string) bool { return matches(dangerous, name) }

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
}

// fits reports whether a name matches a pattern.
func fits(pattern, name string) bool {
	ending, openStart := strings.CutPrefix(pattern, "*")
	middle, openEnd := strings.CutSuffix(ending, "*")
	switch {
	case openStart && openEnd:
		return strings.Contains(name, middle)
	case openStart:
		return strings.HasSuffix(name, ending)
	case openEnd:
		return strings.HasPrefix(name, middle)
	}
	return name == pattern
}

// credential reports whether a name, in capitals, is a credential's.
func credential(name string) bool {
	if strings.Contains(name, "PASSWORD") || strings.Contains(name, "PASSWD") {
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
