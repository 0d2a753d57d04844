// Where a program lies, and what it needs to be started where little can be read. It does not know what the program does.

package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/pathname"
	"github.com/toold/toold/tools/sandbox"
)

// locate finds the program's file: where it is written, else in the daemon's PATH. An earlier call may have exported another
// one, and with it programs that nobody has named.
func (p *Program) locate() (string, error) {
	path, err := exec.LookPath(p.Command[0])
	if err != nil {
		var why *exec.Error
		if errors.As(err, &why) {
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

// possible reports whether the program is there, and whether one that only reads is held to that.
func (p *Program) possible(env *tools.Env) error {
	if why := p.missing(); why != "" {
		return fault.Failedf("program_not_found", "%s Nothing was run. Have the user install or correct it.", why)
	}
	if !p.ReadOnly {
		return nil
	}
	confinement, err := env.Box.Runner.Confinement(env.Box.Policy)
	if err != nil {
		return fault.Failedf("sandbox_unavailable", "The program was not started: %v.", err)
	}
	if confinement.Tier == sandbox.None {
		return fault.Failedf("sandbox_unavailable", "%s is said to change nothing, and nothing holds it to that where processes are not confined. It was not started. Have the user take \"readOnly\" out of its entry in %s, or switch the sandbox on.", p.Name, p.Origin)
	}
	return nil
}

// opened is the policy with the program's own files to be read: itself, and what its arguments name by an absolute path.
// Who names a program means it to be started. What is hidden stays so.
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

// closed reports whether a process could not read the file though nothing hides it.
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
		return inner.Source != "" // something else stands there
	case policy.Tier == sandbox.Full:
		return pathname.Within("/tmp", real) || pathname.Within("/var/tmp", real) // which it has for itself
	}
	return !slices.ContainsFunc(sandbox.SystemTrees, func(tree string) bool { return pathname.Within(tree, real) })
}
