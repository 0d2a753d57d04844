// What one shell leaves to the next. It does not know what of it the session may keep: see dir.go.

package bash

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/tools/sandbox"
)

// What a shell leaves to the next one: its working directory and what it exports.
//
// bash reads a prelude from BASH_ENV before the command, which stays as it is, with its own line numbers and without
// anything of ours in its variables. The prelude sets an EXIT trap that writes the state to a descriptor with a number
// that nobody uses; a command that ends without that trap (exec, a signal, a trap of its own) changes nothing.
const (
	preludeName = "BASH_ENV=/dev/fd/"
	// stateDescriptor is where the report goes; it comes in as 3, and the prelude as the one after it.
	stateDescriptor = "198"
	// reportMark begins a report, after whatever else has been written to the descriptor.
	reportMark = "\x00toold state\x00"
	// maxReport is more than any environment that the kernel would start a program with. A command may write to the
	// descriptor what it likes, so there is a bound.
	maxReport = 4 << 20
	// maxPrelude is less than a pipe holds, in bytes.
	maxPrelude = 60 << 10
)

const reporting = `trap '{ unset -f builtin; builtin set +vxefu; } 2>/dev/null
{ builtin printf "\0toold state\0"; builtin pwd -P 2>/dev/null; builtin printf "\0"
builtin declare -px; builtin printf "\0end\0"; } 2>/dev/null >&` + stateDescriptor + `' EXIT
exec ` + stateDescriptor + `>&3 3>&- 4<&-
`

// prelude has the shell report, if it is to, and keeps to the files that the verdict was about: programs are command words with
// where they lead.
func prelude(reports bool, programs map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("unset BASH_ENV\n")
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(&b, "hash -p %s -- %s\n", quoted(programs[name]), quoted(name))
	}
	if reports {
		b.WriteString(reporting)
	} else {
		b.WriteString("exec 3<&-\n")
	}
	return b.Bytes()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// openPrelude returns a pipe that holds the text and ends after it. It is at most maxPrelude long.
func openPrelude(text []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// A state is what a shell had when it ended.
type state struct {
	dir     string // empty when it had none any more
	exports map[string]string
}

// parseReport reads the last report in text. ok is false when there is none that is whole.
func parseReport(text string) (s state, ok bool) {
	_, text, ok = cutLast(text, reportMark)
	if !ok {
		return state{}, false
	}
	s.dir, text, ok = strings.Cut(text, "\x00")
	if !ok {
		return state{}, false
	}
	s.dir = strings.TrimSuffix(s.dir, "\n")
	if text, ok = strings.CutSuffix(text, "\x00end\x00"); !ok {
		return state{}, false
	}
	if s.exports, ok = parseDeclarations(text); !ok {
		return state{}, false
	}
	return s, true
}

func cutLast(text, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(text, sep)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(sep):], true
}

// shellsOwn are variables that say what one shell is, and are nothing to pass on.
var shellsOwn = map[string]bool{"_": true, "SHLVL": true, "PWD": true, "OLDPWD": true}

func notHandedOn(name string) bool { return shellsOwn[name] || sandbox.Own(name) }

// after is the session's environment once a shell that was given part of it has ended with these exports: what the
// shell has changed, added or removed is so for the session, and what the shell never saw stays. A variable that no
// child would be given is not taken over, but named.
func (s state) after(session, given []string, withholds func(name string) bool) (environ map[string]string, withheld []string) {
	environ, before := asMap(session), asMap(given)
	for name, value := range s.exports {
		if old, had := before[name]; notHandedOn(name) || had && old == value {
			continue
		}
		if withholds(name) {
			withheld = append(withheld, name)
			continue
		}
		environ[name] = value
	}
	maps.DeleteFunc(environ, func(name, _ string) bool {
		_, had := before[name]
		_, has := s.exports[name]
		return had && !has && !notHandedOn(name) && isName(name)
	})
	return environ, withheld
}

func asMap(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			m[name] = value
		}
	}
	return m
}

// isName reports that bash can have a variable of that name. Others it passes on unseen.
func isName(name string) bool {
	for i, c := range []byte(name) {
		if letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
