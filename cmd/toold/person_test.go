package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// hangGuard ends a test that waits for something that never comes. Nothing is measured by it.
const hangGuard = 3 * time.Minute

// A console is a program of ours on a terminal of its own.
type console struct {
	t      *testing.T
	pty    *os.File
	cmd    *exec.Cmd
	screen strings.Builder // everything that was written to the terminal
	seen   int             // what expect has gone past
	stdout strings.Builder
}

// home makes a place for a daemon of this test alone, which is ended with the test.
func home(t *testing.T) (environ []string, workspace string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "toold-test-") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	environ = append(os.Environ(), "TERM=xterm", "GORACE="+raceAtExit, "TMPDIR="+dir+"/tmp", "XDG_RUNTIME_DIR="+dir+"/run",
		"XDG_STATE_HOME="+dir+"/state", "XDG_CONFIG_HOME="+dir+"/config")
	for _, name := range []string{"tmp", "run", "ws"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if out, err := self(t, context.Background(), environ, dir, "stop", "--now").CombinedOutput(); err != nil {
			t.Errorf("stopping the daemon: %v\n%s", err, out)
		}
		if left := processesOf(dir); len(left) > 0 {
			t.Errorf("still running:\n%s", strings.Join(left, "\n"))
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return environ, filepath.Join(dir, "ws")
}

// self is this very program as toold.
func self(t *testing.T, ctx context.Context, environ []string, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("toold") // testscript.Main has put it on PATH
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = environ, dir
	return cmd
}

// onTerminal starts toold with everything but its output on a terminal.
func onTerminal(t *testing.T, environ []string, dir string, args ...string) *console {
	t.Helper()
	x, theirs := newTerminal(t, environ, dir, args...)
	x.cmd.Stdout = &x.stdout
	x.start(theirs)
	return x
}

// onlyTerminal starts toold with its output on the terminal too.
func onlyTerminal(t *testing.T, environ []string, dir string, args ...string) *console {
	t.Helper()
	x, theirs := newTerminal(t, environ, dir, args...)
	x.cmd.Stdout = theirs
	x.start(theirs)
	return x
}

// hangsUp ends what runs apart on the terminal.
func (x *console) hangsUp() {
	x.t.Helper()
	x.typed("\x03")
	var buffer [4096]byte
	for {
		n, err := x.pty.Read(buffer[:])
		x.screen.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	_ = x.cmd.Wait()
}

// newTerminal returns a terminal with a program that is not started yet, and the program's end of it.
func newTerminal(t *testing.T, environ []string, dir string, args ...string) (x *console, theirs *os.File) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	t.Cleanup(cancel)
	x = &console{t: t, cmd: self(t, ctx, environ, dir, args...)}
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	x.pty = ours
	x.cmd.Stdin, x.cmd.Stderr = theirs, theirs
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	t.Cleanup(func() { _ = ours.Close() })
	return x, theirs
}

func (x *console) start(theirs *os.File) {
	x.t.Helper()
	if err := x.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	_ = theirs.Close()
}

// expect reads until pattern is on the terminal, behind what was expected before.
func (x *console) expect(pattern string) {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	var buffer [4096]byte
	for {
		if at := re.FindStringIndex(x.screen.String()[x.seen:]); at != nil {
			x.seen += at[1]
			return
		}
		n, err := x.pty.Read(buffer[:])
		x.screen.Write(buffer[:n])
		if err != nil && n == 0 {
			_ = x.cmd.Wait()
			x.t.Fatalf("%q never came (%v, %v); the terminal shows:\n%s\nstdout:\n%s", pattern, err, x.cmd.ProcessState, x.screen.String(), x.stdout.String())
		}
	}
}

func (x *console) typed(text string) {
	x.t.Helper()
	if _, err := x.pty.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the program and checks its exit code.
func (x *console) ends(code int) {
	x.t.Helper()
	var buffer [4096]byte
	for { // the terminal must be read, or the program could not write
		n, err := x.pty.Read(buffer[:])
		x.screen.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	_ = x.cmd.Wait()
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d; the terminal shows:\n%s\nstdout:\n%s", got, code, x.screen.String(), x.stdout.String())
	}
}

func writeCall(t *testing.T, path, content string) string {
	t.Helper()
	input, err := json.Marshal(map[string]string{"file_path": path, "content": content})
	if err != nil {
		t.Fatal(err)
	}
	return string(input)
}

// A dialogue is a person in front of a call that would write new.txt.
type dialogue struct {
	environ  []string
	ws, file string
	call     []string
}

func (d dialogue) content(t *testing.T) string {
	t.Helper()
	return content(t, d.file)
}

func TestQuestions(t *testing.T) {
	environ, ws := home(t)
	d := dialogue{environ: environ, ws: ws, file: filepath.Join(ws, "new.txt")}
	d.call = []string{"call", "Write", writeCall(t, d.file, "as the model wrote\n")}
	t.Run("no, with a reason for the model", d.saysNo)
	t.Run("edit", d.edits)
	t.Run("an editor that leaves no JSON", d.editsBadly)
	t.Run("an interrupt withdraws the question", d.interrupts)
	t.Run("yes", d.saysYes)
}

func (d dialogue) saysNo(t *testing.T) {
	x := onTerminal(t, d.environ, d.ws, d.call...)
	x.expect(`\? Write`)
	x.expect(`"content": "as the model wrote`)
	x.expect(`Run it\?`)
	x.typed("what\n")
	x.expect("also tells the model why")
	x.expect(`Run it\?`)
	x.typed("a\n")
	x.expect(`Edit\(`)
	x.expect("Which, and where")
	x.typed("2 u\n")
	x.expect("There is no rule 2 here")
	x.expect("Which, and where")
	x.typed("\n")
	x.expect(`Run it\?`)
	x.typed("n use another file\n")
	x.ends(cli.ExitFailed)
	if !strings.Contains(x.stdout.String(), "use another file") {
		t.Errorf("the model is not told why: %s", x.stdout.String())
	}
	if got := d.content(t); got != "" {
		t.Errorf("the file was written: %q", got)
	}
}

func (d dialogue) edits(t *testing.T) {
	editor := filepath.Join(d.ws, "editor.sh")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i 's/model/person/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, append(d.environ, "EDITOR="+editor), d.ws, d.call...)
	x.expect(`Run it\?`)
	x.typed("e\n")
	x.ends(cli.ExitOK)
	if got := d.content(t); got != "as the person wrote\n" {
		t.Errorf("the file holds %q", got)
	}
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
}

func (d dialogue) editsBadly(t *testing.T) {
	x := onTerminal(t, append(d.environ, "EDITOR=cp /dev/null"), d.ws, d.call...)
	x.expect(`Run it\?`)
	x.typed("e\n")
	x.expect("not a JSON object")
	x.expect(`Run it\?`)
	x.typed("\x04") // end of input
	x.ends(cli.ExitFailed)
}

func (d dialogue) interrupts(t *testing.T) {
	x := onTerminal(t, d.environ, d.ws, d.call...)
	x.expect(`Run it\?`)
	x.typed("\x03")
	x.ends(cli.ExitFailed)
	if !strings.Contains(x.screen.String(), "cancelled") {
		t.Errorf("it is not said that the call was cancelled:\n%s", x.screen.String())
	}
}

func (d dialogue) saysYes(t *testing.T) {
	x := onTerminal(t, d.environ, d.ws, d.call...)
	x.expect(`Run it\?`)
	x.typed("yes\n")
	x.ends(cli.ExitOK)
	if got := d.content(t); got != "as the model wrote\n" {
		t.Errorf("the file holds %q", got)
	}
}

// A second terminal can watch a session and answer what the first cannot.
func TestAttachAnswers(t *testing.T) {
	environ, ws := home(t)
	put(t, filepath.Join(ws, ".toold", "settings.json"), "{}")
	file := filepath.Join(ws, "new.txt")
	first := onTerminal(t, environ, ws, "call", "Write", writeCall(t, file, "x\n"), "--session", "shared")
	first.expect(`Run it\?`)
	second := apart(t, environ, ws, "attach", "shared")
	second.expect(`Run it\?`)
	second.typed("e\n")
	second.expect("only known to the client that sent it")
	second.expect(`Run it\?`)
	second.typed("a 1 project\n")
	second.expect("The answer was not taken: .*toold trust")
	second.expect(`Run it\?`)
	second.typed("y\n")
	first.ends(cli.ExitOK)
	if first.cmd.ProcessState.Success() && !strings.Contains(first.screen.String(), "The question is withdrawn (answered: allowed).") {
		t.Errorf("the first terminal is not told that its question was answered:\n%s", first.screen.String())
	}
	second.hangsUp() // which stops no call
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// A yes for always is asked for once: the rule that was picked settles what is like it, in the session or everywhere.
func TestAlways(t *testing.T) {
	environ, ws := home(t)
	write := func(name string) []string {
		return []string{"call", "Write", writeCall(t, filepath.Join(ws, name), "x\n"), "--session", "always"}
	}
	x := onTerminal(t, environ, ws, write("a.txt")...)
	x.expect(`Run it\?`)
	x.typed("a\n")
	x.expect(`Edit\([^\r\n]*reading and changing`)
	x.expect("Which, and where")
	x.typed("1\n")
	x.ends(cli.ExitOK)
	x = onTerminal(t, environ, ws, write("b.txt")...)
	x.ends(cli.ExitOK)
	if strings.Contains(x.screen.String(), "Run it?") {
		t.Errorf("what the kept rule allows is asked about again:\n%s", x.screen.String())
	}

	put(t, filepath.Join(ws, ".toold", "settings.json"), "{}")
	x = onTerminal(t, environ, ws, "call", "Bash", `{"command":"date > c.txt"}`)
	x.expect(`Run it\?`)
	x.typed("a 1 local\n")
	x.expect("The answer was not taken: .*toold trust")
	x.expect(`Run it\?`)
	x.typed("a 1\n")
	x.expect("This session ends with the turn")
	x.expect("Which, and where")
	x.typed("?\n")
	x.expect(`l +for this project(?s:.*)u +for you(?s:.*)s +for the rest of this turn alone`)
	x.typed("1 u\n")
	x.ends(cli.ExitOK)
	if strings.Contains(x.screen.String(), "notice:") {
		t.Errorf("what was told with the question is told again at the end:\n%s", x.screen.String())
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(ws), "config", "toold", "settings.json"))
	if err != nil || !strings.Contains(string(text), "Edit(/"+ws+"/*.txt)") {
		t.Errorf("the user's settings hold %q (%v)", text, err)
	}
}

// What asks in spite of every rule offers none to keep, with the reason.
func TestNothingToKeep(t *testing.T) {
	environ, ws := home(t)
	settings := filepath.Join(ws, ".toold", "settings.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(`{"permissions":{"ask":["Bash(touch *)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, environ, ws, "call", "Bash", `{"command":"touch a"}`)
	x.expect(`The rule Bash\(touch \*\) in [^ ]*/\.toold/settings\.json:1 asks`)
	x.expect(`Run it\?`)
	x.typed("a\n")
	x.expect(`the ask rule Bash\(touch \*\) in [^ ]*/\.toold/settings\.json:1 is about this call, and no other rule passes it`)
	x.expect(`Run it\?`)
	x.typed("y\n")
	x.ends(cli.ExitOK)
}
