// The check whether bash itself rejects a command that the analysis could not parse. bash parses it
// and runs nothing.

package bash

import (
	"context"
	"io"
	"os/exec"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// A SyntaxError is the position of a syntax error, for programs.
type SyntaxError struct {
	Line   uint `json:"line"`   // from 1
	Column uint `json:"column"` // in bytes, from 1
}

// refusedExit is the exit code of bash -n for a syntax error (bash(1), EXIT STATUS).
const refusedExit = 2

// checkSyntax returns a fault syntax_error if neither the analysis nor bash can parse the command.
// A command that bash can parse is judged as usual.
func checkSyntax(ctx context.Context, env *tools.Env, in input) error {
	at, ok := in.analysis.SyntaxError()
	if !ok {
		return nil
	}
	path, err := exec.LookPath("bash")
	if err != nil {
		return nil // the command will not find it either
	}
	complaint := sandbox.Beginning{Most: maxComplaint}
	exit, err := query(ctx, env, sandbox.Command{
		Path: path, Args: []string{"bash", "--norc", "--noprofile", "-n", "-c", in.Command}, Dir: env.Dir,
		Env: env.Box.Environ(env.Environ), Stdout: io.Discard, Stderr: &complaint,
	})
	if err != nil || exit.Stopped || exit.Code != refusedExit {
		return nil //nolint:nilerr // the command is judged as usual
	}
	said, _, _ := strings.Cut(strings.ToValidUTF8(complaint.String(), "\uFFFD"), "\n")
	return fault.Invalidf("syntax_error", "The command is not valid bash: line %d, column %d: %s. Bash reports: %s. Nothing was run. Correct the command and send it again.",
		at.Line, at.Column, at.What, said).At("/command").With(SyntaxError{Line: at.Line, Column: at.Column})
}
