// The state that one shell leaves to the next. dir.go decides which part of it the session keeps.

package bash

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/sandbox"
)

// A shell leaves its working directory and its exports to the next one.
//
// bash reads a prelude from BASH_ENV before the command. The command stays unchanged, with its own
// line numbers, and its variables hold nothing of the daemon's. The prelude sets an EXIT trap that
// writes the state to a descriptor with an unusual number, which is a file. A command that ends
// without that trap (exec, a signal, its own trap) changes nothing. A command that cannot change the
// state, as [shell.Leaves] finds, needs no trap.
const (
	preludeName = "BASH_ENV=/dev/fd/"
	// stateDescriptor receives the report. The shell inherits it as 3, and the prelude as the
	// descriptor after it.
	stateDescriptor = "198"
	// reportMark begins a report, after anything else that was written to the descriptor.
	reportMark = "\x00toold state\x00"
	// maxPrelude is less than the capacity of a pipe, in bytes.
	maxPrelude = 60 << 10
)

// reporting closes stderr instead of redirecting it to /dev/null, since nothing has to be opened then.
const reporting = `trap '{ unset -f builtin; builtin set +vxefu; } 2>&-
{ builtin printf "\0toold state\0"; builtin pwd -P; builtin printf "\0"
builtin declare -px; builtin printf "\0end\0"; } 2>&- >&` + stateDescriptor + `' EXIT
`

// prelude makes the shell report its state, if reports is set, and use the files of the verdict:
// programs maps command words to paths.
func prelude(reports bool, programs map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("unset BASH_ENV\n")
	remember(&b, programs)
	if reports {
		b.WriteString(reporting + "exec " + stateDescriptor + ">&3 3>&- 4<&-\n")
	} else {
		b.WriteString("exec 3<&-\n")
	}
	return b.Bytes()
}

// earlyPrelude is prelude for a shell that was started beforehand, with what such a shell cannot know:
// its script, and that its time begins now. Its last command leaves $_ as it is in a new shell of that
// environment.
func earlyPrelude(script string, environ []string, reports bool, programs map[string]string) string {
	var b bytes.Buffer
	b.WriteString("unset BASH_ENV\nSECONDS=0 BASH_EXECUTION_STRING=" + quoted(script) + "\n")
	remember(&b, programs)
	if reports {
		b.WriteString(reporting + "exec " + stateDescriptor + ">&4\n")
	}
	fmt.Fprintf(&b, "exec 3<&- 4>&-\n: %s\n", quoted(cmp.Or(asMap(environ)["_"], "bash")))
	return b.String()
}

// remember writes commands that make the shell find the programs.
func remember(b *bytes.Buffer, programs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(b, "hash -p %s -- %s\n", quoted(programs[name]), quoted(name))
	}
}

// tellsStart finds what may show that a shell was started before its script was known: the command
// line in /proc, which ends in NULs there, the age of the process, and what the prelude leaves in a
// list of all variables and in PIPESTATUS.
var tellsStart = regexp.MustCompile(`proc|declare|typeset|compgen|BASH_ARG|PIPESTATUS|times|\b(ps|pgrep|pkill|pidof|pstree|top|htop)\b|(^|[;&|(\s])set\s*($|[;&|>)\n])`)

// mayBeEarly reports whether a shell that was started beforehand may run the script.
func mayBeEarly(script string) bool { return !tellsStart.MatchString(script) }

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// openPrelude returns a pipe that holds the text and ends after it. The text must not be longer
// than maxPrelude.
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

// readReport returns what was written to a report.
func readReport(f *os.File) string {
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil || size <= 0 || size > sandbox.MaxReport {
		return ""
	}
	text := make([]byte, size)
	n, _ := f.ReadAt(text, 0) // what cannot be read is no report
	return string(text[:n])
}

// A state is the state of a shell at its end.
type state struct {
	dir     string // empty if it no longer existed
	exports map[string]string
}

// parseReport parses the last report in text. ok is false if there is no complete one.
func parseReport(text string) (s state, ok bool) {
	text = text[max(0, strings.LastIndex(text, reportMark)):]
	text, begins := strings.CutPrefix(text, reportMark)
	text, ends := strings.CutSuffix(text, "\x00end\x00")
	dir, text, has := strings.Cut(text, "\x00")
	if s.exports, ok = parseDeclarations(text); !begins || !ends || !has || !ok {
		return state{}, false
	}
	s.dir = strings.TrimSuffix(dir, "\n")
	return s, true
}

// shellsOwn are variables that describe one shell and are not passed on.
var shellsOwn = map[string]bool{"_": true, "SHLVL": true, "PWD": true, "OLDPWD": true}

func notHandedOn(name string) bool { return shellsOwn[name] || sandbox.Own(name) }

// after returns the session's environment after a shell that was given part of it has ended with
// these exports. What the shell has changed, added or removed changes in the session; variables
// that the shell never had stay. A variable that no child would get is not kept but returned by
// name.
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

// isName reports whether bash can have a variable of that name. It passes other names on unchanged.
func isName(name string) bool {
	for i, c := range []byte(name) {
		if letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
