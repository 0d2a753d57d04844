package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// Turns on one terminal and directory share a session: what one has read, the next may edit. What a turn chose for itself
// is not the next one's.
func TestTerminalSession(t *testing.T) {
	environ, ws := home(t)
	file := filepath.Join(ws, "a.txt")
	put(t, file, "hello\n")
	x := onShell(t, environ, ws, `
toold call Read file_path=a.txt >read.txt
toold call Edit file_path=a.txt old_string=hello new_string=goodbye --mode acceptEdits >edit.txt; echo edited $?
toold call Write file_path=b.txt content=x
echo asked $?
cd /; toold call Edit file_path=`+file+` old_string=goodbye new_string=no --root `+ws+` --root /usr --mode acceptEdits; echo elsewhere $?
`)
	x.expect(`edited 0`)
	x.expect(`Run it\?`)
	x.typed("n\n")
	x.expect(`asked 1`)
	x.expect(`not_read|has not been read`)
	x.expect(`elsewhere 1`)
	x.ends(cli.ExitOK)
	if got := content(t, file); got != "goodbye\n" {
		t.Errorf("the file holds %q", got)
	}
}

// A turn that meets another one in its terminal's session takes a session of its own, and displaces no client.
func TestTerminalSessionInUse(t *testing.T) {
	environ, ws := home(t)
	x := onShell(t, environ, ws, `
toold call --mode bypassPermissions Bash command='touch there; until test -e go; do sleep 0.02; done' & first=$!
until test -e there; do :; done
toold call --mode bypassPermissions Bash command='touch go'; echo second $?
wait $first; echo first $?
`)
	x.expect("the session of this terminal is in use")
	x.expect("second 0")
	x.expect("first 0")
	x.ends(cli.ExitOK)
}

// onShell runs a script in a shell that leads the session of a terminal of its own.
func onShell(t *testing.T, environ []string, dir, script string) *console {
	t.Helper()
	x, theirs := newTerminal(t, environ, dir)
	shell := shellPath(t)
	x.cmd.Path, x.cmd.Args = shell, []string{"bash", "-c", script}
	x.cmd.Stdout = theirs
	x.start(theirs)
	return x
}

func shellPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
