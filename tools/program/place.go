// The location of a program, and what it needs to be started where little can be read.

package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
)

// locate returns the program's file: its absolute path, or a file on the daemon's PATH. An earlier
// call may have exported another PATH, with programs that the user has not named.
func (p *Program) locate() (string, error) {
	path, err := exec.LookPath(p.Command[0])
	if err != nil {
		if why, ok := errors.AsType[*exec.Error](err); ok {
			err = why.Err
		}
		return "", fmt.Errorf("%s cannot be started: %w", p.Command[0], err)
	}
	return filepath.Abs(path)
}

// missing returns, as a sentence, why the program cannot be started; empty: it can.
func (p *Program) missing() string {
	if _, err := p.locate(); err != nil {
		return fmt.Sprintf("Its program %v (named in %s).", err, p.Origin)
	}
	return ""
}

// possible checks that the program exists, and that a read-only one can be confined to reading.
func (p *Program) possible(env *tools.Env) error {
	if why := p.missing(); why != "" {
		return fault.Failedf("program_not_found", "%s Nothing was run. Ask the user to install or correct it.", why)
	}
	if !p.ReadOnly {
		return nil
	}
	confinement, err := env.Box.Runner.Confinement(env.Box.Ready().Policy)
	if err != nil {
		return fault.Failedf("sandbox_unavailable", "The program was not started: %v.", err)
	}
	if confinement.Tier == sandbox.None {
		return fault.Failedf("sandbox_unavailable", "%s is declared read-only, which cannot be enforced where processes are not confined. It was not started. Ask the user to remove \"readOnly\" from its entry in %s, or to switch the sandbox on.", p.Name, p.Origin)
	}
	return nil
}

// opened returns the policy with read access to the program's own files: itself, and what its
// arguments name by an absolute path. The user who names a program wants it started. Hidden files
// stay hidden.
func opened(policy sandbox.Policy, path string, args []string) sandbox.Policy {
	policy.Places = slices.Clone(policy.Places)
	for _, file := range append([]string{path}, args...) {
		if !filepath.IsAbs(file) {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil || !closed(policy, real) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
			policy.Places = append(policy.Places, sandbox.Place{Path: real, Access: sandbox.Read})
		}
	}
	return policy
}

// closed reports whether a process could not read the file although nothing hides it.
func closed(policy sandbox.Policy, real string) bool {
	inner := sandbox.Place{}
	for _, place := range policy.Places {
		if pathname.Within(place.Path, real) && len(place.Path) >= len(inner.Path) {
			inner = place
		}
	}
	switch {
	case policy.Tier == sandbox.None || policy.Tier == "":
		return false
	case inner.Path != "":
		return inner.Source != "" // something else is mounted there
	case policy.Tier == sandbox.Full:
		return pathname.Within("/tmp", real) || pathname.Within("/var/tmp", real) // the process has its own
	}
	return !slices.ContainsFunc(sandbox.SystemTrees, func(tree string) bool { return pathname.Within(tree, real) })
}
