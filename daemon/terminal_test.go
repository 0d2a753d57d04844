// Interactive programs: real ones, in real terminals, driven as a model drives them.

package daemon_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// An interactiveProgram is one that a test drives.
type interactiveProgram struct {
	*conversation
	task string
	last string // the screen
	uses int
}

// interactive starts a command in a terminal.
func (c *conversation) interactive(command string) *interactiveProgram {
	c.t.Helper()
	input, _ := json.Marshal(map[string]any{"command": command, "pty": true})
	result := c.do(command, "Bash", string(input))
	p := &interactiveProgram{conversation: c, last: result.GetContent()[0].GetText()}
	if p.task = result.GetStructured().GetFields()["task_id"].GetStringValue(); p.task == "" {
		c.t.Fatalf("%s does not wait: %s", command, p.last)
	}
	return p
}

// types types, and waits until the text is on the screen.
func (p *interactiveProgram) types(chars, text string) {
	p.t.Helper()
	wait := 0 // as long as it takes
	if text == "" {
		wait = 500 // there is nothing to wait for
	}
	for {
		input, _ := json.Marshal(map[string]any{"bash_id": p.task, "chars": chars, "wait_ms": wait})
		p.uses++
		p.last = p.do(p.task+strings.Repeat("'", p.uses), "BashInput", string(input)).GetContent()[0].GetText()
		if strings.Contains(p.last, text) {
			return
		}
		if strings.Contains(p.last, "has ended") || p.uses > 30 {
			p.t.Fatalf("%q is not on the screen:\n%s", text, p.last)
		}
		chars = ""
	}
}

func needProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		ownspace.Lacks(t, "%s is not installed", name)
	}
}

func TestTerminalToItsEnd(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	result := c.do("a", "Bash", `{"command":"tty; stty size; exit 3","pty":true,"columns":90,"rows":20}`)
	text := result.GetContent()[0].GetText()
	if !strings.HasPrefix(text, "Exit code 3\n/dev/pts/") || !strings.HasSuffix(text, "\n20 90\n") {
		t.Errorf("%q", text)
	}
	if got := c.do("b", "Bash", `{"command":"cd /tmp; export SET=1","pty":true}`).GetContent()[0].GetText(); got != "(no output)" {
		t.Errorf("%q", got)
	}
	if got := c.do("c", "Bash", `{"command":"echo $PWD $SET"}`).GetContent()[0].GetText(); strings.TrimSpace(got) != "/tmp 1" {
		t.Errorf("directory and variable after it: %q", got)
	}
}

func TestTerminalPython(t *testing.T) {
	needProgram(t, "python3")
	c := serve(t).join("s", free())
	p := c.interactive("python3 -iq")
	p.types("x = 6 * 7\nprint('is', x)\n", "is 42")
	p.types("while True: pass\n\n", "")
	p.types("\x03", "KeyboardInterrupt")
	p.types("\x04", "has ended")
}

func TestTerminalVim(t *testing.T) {
	needProgram(t, "vim")
	h := serve(t)
	h.file("f", "first\nsecond\n")
	p := h.join("s", free()).interactive("vim -u NONE -N f")
	if !strings.Contains(p.last, "first\nsecond\n") {
		t.Errorf("screen:\n%s", p.last)
	}
	p.types("Gothird\x1b", "third")
	p.types(":wq\n", "has ended with exit code 0")
	if text, err := os.ReadFile(h.root + "/f"); err != nil || string(text) != "first\nsecond\nthird\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTerminalLess(t *testing.T) {
	needProgram(t, "less")
	c := serve(t).join("s", free())
	p := c.interactive("seq -f 'line %g' 1000 | less")
	if !strings.Contains(p.last, "line 1\n") || strings.Contains(p.last, "line 900\n") {
		t.Errorf("screen:\n%s", p.last)
	}
	p.types(" ", "line 58\n")
	p.types("G", "line 1000\n")
	p.types("q", "has ended with exit code 0")
}

// TestTerminalKeepsWhatPassed: lines that leave the screen are returned once, in order.
func TestTerminalKeepsWhatPassed(t *testing.T) {
	c := serve(t).join("s", free())
	p := c.interactive("seq 500; read x; echo got $x")
	if !strings.Contains(p.last, "\n1\n2\n3\n") || !strings.Contains(p.last, "\n499\n500\n") {
		t.Errorf("%s", p.last)
	}
	p.types("it\n", "got it")
	if strings.Contains(p.last, "\n2\n3\n") {
		t.Errorf("a line came twice:\n%s", p.last)
	}
}

// TestTerminalIsKilled: KillShell ends an interactive shell with what it has started, and so does the end of the daemon.
func TestTerminalIsKilled(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	p := c.interactive("bash --norc -i")
	p.types("sleep 1000 & echo started\n", "started")
	if text := c.do("k", "KillShell", `{"shell_id":"`+p.task+`"}`).GetContent()[0].GetText(); !strings.Contains(text, "has ended") {
		t.Error(text)
	}
	c.interactive("bash --norc -i ")
	h.stop()
}

// TestTerminalNeverWaitsForItsProgram: a program that asks the terminal for its place and reads no answer is shown and ends all the same.
func TestTerminalNeverWaitsForItsProgram(t *testing.T) {
	c := serve(t).join("s", free())
	text := c.do("a", "Bash", `{"command":"stty -echo; for i in {1..5000}; do printf '\\033[6n'; done; echo shown","pty":true}`).GetContent()[0].GetText()
	if !strings.Contains(text, "shown") {
		t.Errorf("%q", text)
	}
}

// TestTerminalIsJudgedAsAnything: what is typed is not known when a command with a terminal starts, so no rule about commands allows it,
// and typing is asked about by itself.
func TestTerminalIsJudgedAsAnything(t *testing.T) {
	h := prepare(t)
	h.rules(`"allow": ["Bash(cat *)", "Bash(echo *)"]`)
	h.start()
	c := h.join("s", &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK.Enum()})
	for id, want := range map[string]tooldv1.Outcome{
		`{"command":"echo hi"}`:            tooldv1.Outcome_OUTCOME_OK,
		`{"command":"echo hi","pty":true}`: tooldv1.Outcome_OUTCOME_DENIED,
		`{"command":"cat f","pty":true}`:   tooldv1.Outcome_OUTCOME_DENIED,
		`{"command":"git log","pty":true}`: tooldv1.Outcome_OUTCOME_DENIED,
		`{"command":"bash -i","pty":true}`: tooldv1.Outcome_OUTCOME_DENIED,
		`{"command":"true","pty":true}`:    tooldv1.Outcome_OUTCOME_DENIED,
		`{"command":"true","pty":false}`:   tooldv1.Outcome_OUTCOME_OK,
	} {
		if got := c.do(id, "Bash", id).GetOutcome(); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for rules, want := range map[string]string{
		`"allow": ["Bash"]`:              "OUTCOME_DENIED",
		`"allow": ["Bash", "BashInput"]`: "OUTCOME_OK",
	} {
		h := prepare(t)
		h.rules(rules)
		h.start()
		p := h.join("s", &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK.Enum()}).interactive("bash --norc -i")
		input, _ := json.Marshal(map[string]any{"bash_id": p.task, "chars": "touch made\n"})
		result := p.do("typed", "BashInput", string(input))
		if got := result.GetOutcome().String(); got != want {
			t.Errorf("%s: %s, want %s: %s", rules, got, want, result.GetError().GetMessage())
		}
		if _, err := os.Stat(h.root + "/made"); (err == nil) != (want == "OUTCOME_OK") {
			t.Errorf("%s: the file: %v", rules, err)
		}
	}
}

// TestTerminalBesideDeny: a command that could be typed whatever the rules say is not allowed by a rule where one denies commands.
func TestTerminalBesideDeny(t *testing.T) {
	h := prepare(t)
	h.rules(`"allow": ["Bash", "BashInput"], "deny": ["Bash(touch *)"]`)
	h.start()
	c := h.join("s", &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK.Enum()})
	if got := c.do("a", "Bash", `{"command":"bash --norc -i","pty":true}`).GetOutcome(); got != tooldv1.Outcome_OUTCOME_DENIED {
		t.Error(got)
	}
}

// rules writes the settings file of a daemon that has not started.
func (h *house) rules(rules string) {
	h.t.Helper()
	if err := os.WriteFile(h.settings, []byte(`{"permissions": {`+rules+`}}`), 0o600); err != nil {
		h.t.Fatal(err)
	}
}
