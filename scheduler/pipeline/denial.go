// What the sandbox has kept a call from, in words and as data, each with the narrowest setting that would let it.

package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/text/ellipsis"
)

// A Confined is how a call's processes were confined, and what that has kept them from.
type Confined struct {
	Tier       sandbox.Tier // empty: the call starts no process
	NotCovered []string
	Denials    []SandboxDenial
}

// A SandboxDenial is something that the sandbox did not let be done.
type SandboxDenial struct {
	sandbox.Denial
	Allow string // settings that would let it, as JSON; empty: none would
}

// denials puts what was denied together, with what would let it.
func denials(all []sandbox.Denial) (list []SandboxDenial) {
	for _, d := range all {
		same := func(o SandboxDenial) bool {
			return o.Operation == d.Operation && o.Target == d.Target && o.MovedTo == d.MovedTo
		}
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i].Count += d.Count
			continue
		}
		list = append(list, SandboxDenial{d, allowing(d)})
	}
	return list
}

// allowing is the narrowest setting that would have let it.
func allowing(d sandbox.Denial) string {
	switch {
	case d.Operation == sandbox.Writing:
		return allow(writable(d))
	case toUnix(d), d.Target == "unix":
		return setting("network", "allowAllUnixSockets", true)
	case asksForName(d), d.Operation == sandbox.Connecting && shown(d.Target) != d.Target:
		return ""
	case d.Operation == sandbox.Connecting:
		host, _, err := net.SplitHostPort(d.Target)
		if err != nil {
			host = d.Target
		}
		return setting("network", "allowedDomains", []string{host})
	}
	return ""
}

// writable is the place that would have to be: what is not there yet can be made only in a folder that is. A setting for
// the folder is not offered where the whole system lives by it.
func writable(d sandbox.Denial) string {
	if d.MovedTo != "" {
		return d.Target
	}
	return cmp.Or(openable(d.Target), d.Target)
}

func allow(path string) string { return setting("filesystem", "allowWrite", []string{path}) }

func setting(section, key string, value any) string {
	text, err := json.Marshal(map[string]any{"sandbox": map[string]any{section: map[string]any{key: value}}})
	if err != nil {
		panic("BUG: a setting that is not JSON")
	}
	return string(text)
}

// shown is what a process has named, so that it cannot pass for words of the daemon's.
func shown(name string) string {
	name = ellipsis.Runes(name, 300)
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// words returns the text for a model. file is the user's settings file; empty: none.
func (d SandboxDenial) words(file string) string {
	var b strings.Builder
	target := shown(d.Target)
	switch {
	case d.Stays:
		fmt.Fprintf(&b, "It left %s, which can make other programs run something, and which the sandbox could not take away. Look at it and remove it before git is used there.", target)
	case d.Keys != nil:
		fmt.Fprintf(&b, "The sandbox took settings that make git run programs out of %s: %s. The others stay%s", target, shownKeys(d.Keys), d.broughtBack())
	case d.PutBack:
		fmt.Fprintf(&b, "The sandbox undid a change of %s, which could make other programs run something%s", target, d.broughtBack())
	case d.MovedTo != "":
		fmt.Fprintf(&b, "The sandbox took away %s, which is a protected path that did not exist before%s", target, d.broughtBack())
	case d.Operation == sandbox.Writing:
		fmt.Fprintf(&b, "The sandbox did not let it write %s.", target)
	case asksForName(d.Denial):
		fmt.Fprintf(&b, "The sandbox did not let it ask %s for the address of a host. Programs reach allowed hosts only through the proxy in HTTP_PROXY and HTTPS_PROXY, which also looks them up.", target)
	case toUnix(d.Denial):
		fmt.Fprintf(&b, "The sandbox did not let it connect to the Unix socket %s, on which no process of this session listens.", target)
	case d.Answer == sandbox.NotPermitted:
		fmt.Fprintf(&b, "It wanted to connect to %s. The user was asked and did not permit it.", target)
	case d.Answer == sandbox.Unanswered:
		fmt.Fprintf(&b, "It wanted to connect to %s. The user was asked and did not answer in time. Send it again when the user is there.", target)
	case d.Operation == sandbox.Connecting:
		fmt.Fprintf(&b, "The sandbox did not let it connect to %s.", target)
		if _, _, err := net.SplitHostPort(d.Target); err == nil {
			b.WriteString(" Allowed hosts are reached only through the proxy in HTTP_PROXY and HTTPS_PROXY.")
		}
	default:
		fmt.Fprintf(&b, "The sandbox did not let it make a socket of the family %s.", target)
	}
	if d.Allow != "" && d.Answer != sandbox.NotPermitted {
		fmt.Fprintf(&b, " The user can allow it by adding %s to %s", d.Allow, cmp.Or(file, "the settings"))
	}
	if _, err := os.Lstat(d.Target); d.Operation == sandbox.Writing && d.Allow == allow(d.Target) && os.IsNotExist(err) && d.MovedTo == "" {
		b.WriteString(", which counts once it is there; let the user make it.")
	}
	return b.String()
}

// shownKeys returns names of settings, which a process has chosen.
func shownKeys(keys []string) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = shown(key)
	}
	return ellipsis.Runes(strings.Join(names, ", "), 300)
}

// AsideText returns what a process has left at protected paths, as a text for clients: a sentence for each. file is the user's
// settings file; empty: none.
func AsideText(exit sandbox.Exit, file string) string {
	var said []string
	for _, d := range exit.Aside() {
		said = append(said, SandboxDenial{d, allowing(d)}.words(file))
	}
	return strings.Join(said, " ")
}

// broughtBack ends a sentence with where that is now which was moved aside, and with the command that brings it back.
func (d SandboxDenial) broughtBack() string {
	aside := "; what was made there is now " + shown(d.MovedTo)
	if d.Keys != nil {
		aside = "; the file as it was left is now " + shown(d.MovedTo)
	}
	if shown(d.MovedTo) != d.MovedTo || shown(d.Target) != d.Target {
		return aside + "."
	}
	return fmt.Sprintf("%s, and `mv -T %s %s` brings it back.", aside, quoted(d.MovedTo), quoted(d.Target))
}

// quoted returns a path as one word of a shell.
func quoted(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,"
	if !strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// tried reports whether it is something that libraries try by themselves and do without: a socket, or to ask for the address of a
// host. It is of interest only when something went wrong.
func (d SandboxDenial) tried() bool {
	return d.Operation == sandbox.Socketing || toUnix(d.Denial) || asksForName(d.Denial)
}

// toUnix reports whether it was a connection to a Unix socket, whose target is a path.
func toUnix(d sandbox.Denial) bool {
	return d.Operation == sandbox.Connecting && filepath.IsAbs(d.Target)
}

// kept reports whether a program was about to store its own data in the user's home, such as
// ~/.config/go/telemetry: a model is notified only if something went wrong. Protected paths do not
// count.
func (d SandboxDenial) kept() bool {
	home, err := os.UserHomeDir()
	return err == nil && d.Operation == sandbox.Writing && d.MovedTo == "" && !d.Stays && strings.HasPrefix(d.Target, home+"/.") &&
		!slices.ContainsFunc(permission.ProtectedIn(home), func(path string) bool { return pathname.Within(path, d.Target) })
}

// asksForName reports whether it was to ask a name server.
func asksForName(d sandbox.Denial) bool {
	_, port, err := net.SplitHostPort(d.Target)
	return d.Operation == sandbox.Connecting && err == nil && port == "53"
}
