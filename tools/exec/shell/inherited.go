// The variables that a shell has from its environment, if their values are known.

package shell

import (
	"maps"
	"slices"
	"strings"
)

// shellsOwn are the names that bash sets itself, or obeys, whatever its environment
// holds: bash(1) 5.2, "Shell Variables". HOME and PWD are followed by their own rules.
var shellsOwn = strings.Fields("_ BASH* COLUMNS COMP_* COMPREPLY COPROC DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD" +
	" HOME HOSTNAME HOSTTYPE IFS LINENO LINES MACHTYPE MAPFILE OLDPWD OPTARG OPTERR OPTIND OSTYPE PIPESTATUS PPID PS1 PS2 PS3 PS4 PWD" +
	" RANDOM READLINE_* REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM UID")

// exportedTo returns what is known of the variables of an environment that a script
// names. What is left out is not known: a value that the script itself may set to
// another one unseen, since its name counts as harmless, and one that names a device.
func exportedTo(script string, environ map[string]string) (known []*variable) {
	for _, name := range slices.Sorted(maps.Keys(environ)) { // the same order every time
		value := environ[name]
		w := literalWord(value)
		if value == "" || !strings.Contains(script, name) || len(value) > maxText || fits(shellsOwn, name) || listed(harmlessNames, name) || (&place{}).namesDevice(w) {
			continue
		}
		known = append(known, &variable{
			name: name, texts: []text{{prefix: value}}, values: []string{value}, solid: w.solid, single: unsplit(value), environ: true,
		})
	}
	return known
}

// inheritedVariables are those that a program which the shell starts in that scope has
// from it with the value that is known.
func (a *environment) inheritedVariables(s scope) (known []*variable) {
	if a.haunted || a.declared || len(s.assigns)+len(s.given) > 0 || s.cleared || s.denyOnly && !s.followed {
		return nil
	}
	for _, v := range a.variables {
		if v.environ && !v.lost && a.setter(v.name) == v {
			known = append(known, v)
		}
	}
	return known
}
