// Confinement on macOS: sandbox-exec applies the policy as a profile. Best effort, and untested.

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// confinementOf is what confines one process.
type confinementOf struct {
	watch []string // protected paths that did not exist when it was started
}

type hostCapabilities struct{}

const sandboxExec = "/usr/bin/sandbox-exec"

func (hostCapabilities) probe(Outlet, func(string, Denial)) {}
func (hostCapabilities) close()                             {}

var sandboxExecThere = sync.OnceValue(func() bool {
	_, err := os.Stat(sandboxExec)
	return err == nil
})

// Confinement returns how a process under p would be confined here. An *UnavailableError means that
// the process would not be started.
func (r *Runner) Confinement(p Policy) (Confinement, error) {
	switch {
	case p.Tier == "" || p.Tier == None:
		return Confinement{Tier: None}, nil
	case sandboxExecThere():
		return Confinement{Tier: Fast, NotCovered: []string{
			"The profile for sandbox-exec is untested.", "The network by domain is closed instead.", "Resource limits are not set.",
		}}, nil
	case p.Optional:
		return Confinement{Tier: None, NotCovered: []string{"It is not confined at all: there is no " + sandboxExec + "."}}, nil
	}
	return Confinement{}, &UnavailableError{[]string{"there is no " + sandboxExec}}
}

// spawn starts the main process under its policy.
func (p *Process) spawn(files []*os.File) error {
	c := p.command
	confinement, err := p.runner.Confinement(c.Policy)
	if err != nil {
		return err
	}
	if confinement.Tier != None {
		p.confine.watch = c.Policy.Absent
		c.Args = append([]string{"sandbox-exec", "-p", profile(c.Policy), c.Path}, c.Args[1:]...)
		c.Path = sandboxExec
	}
	return p.spawnFree(c.Path, c.Args, files)
}

// unconfine returns the denials.
func (p *Process) unconfine() []Denial { return p.made() }

// profile translates the policy to sandbox-exec's language, in which the last matching rule counts.
func profile(p Policy) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n")
	for _, place := range replaced(p.Places) { // later rules allow roots and named files there
		fmt.Fprintf(&b, "(deny file-read* (subpath %q) (subpath %q))\n", place.Path, "/private"+place.Path)
	}
	for _, place := range p.Places {
		path := place.elsewhere()
		switch place.Access {
		case Hidden:
			fmt.Fprintf(&b, "(deny file-read* file-write* (subpath %q))\n", path)
		case Read:
			fmt.Fprintf(&b, "(allow file-read* (subpath %q))\n(deny file-write* (subpath %[1]q))\n", path)
		case Write:
			fmt.Fprintf(&b, "(allow file-read* file-write* (subpath %q))\n", path)
		}
	}
	b.WriteString("(deny network*)\n")
	if p.UnixSockets {
		b.WriteString("(allow network* (remote unix-socket))\n")
	}
	return b.String()
}
