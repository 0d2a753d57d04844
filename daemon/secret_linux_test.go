// Hidden lines: a program of the system asks for a password on its terminal, and a user answers. The secret is looked for in
// everything that the daemon writes and sends.

package daemon_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protojson"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// askingProgram asks for a hidden line on /dev/tty and prints it, in one piece and in two.
const askingProgram = `package main

import ("fmt"; "os"; "os/exec")

func main() {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil { fmt.Println(err); os.Exit(1) }
	stty := func(mode string) { c := exec.Command("stty", mode); c.Stdin = tty; if err := c.Run(); err != nil { fmt.Println(err); os.Exit(2) } }
	stty("-echo")
	fmt.Fprint(tty, "Password: ")
	var line string
	fmt.Fscanln(tty, &line)
	stty("echo")
	fmt.Fprintf(tty, "\nit has %d bytes: %s\n", len(line), line)
	fmt.Fprint(tty, line[:len(line)/2]); _ = exec.Command("sleep", "0.2").Run(); fmt.Fprintln(tty, line[len(line)/2:])
}`

// installAsking builds the program outside every place that a session can write.
func installAsking(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(me.HomeDir, "asking") // a session may write the places for temporary files
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(askingProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "asking")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

const hiddenLine = "Xq7correct-horse-9battery"

// secretQuestion waits for the question about a hidden line that is put when the call has ended: a command that asks goes
// on as a background task.
func (c *conversation) secretQuestion() *tooldv1.Question {
	c.t.Helper()
	for {
		if q := c.until("").GetQuestion(); q.GetSecret() != nil && q.GetToolUseId() == "" {
			return q
		}
	}
}

// resultOf returns the result of a call, which may have come already.
func (c *conversation) resultOf(id string) *tooldv1.ToolResult {
	c.t.Helper()
	for _, e := range c.events {
		if r := e.GetToolResult(); r.GetToolUseId() == id {
			return r
		}
	}
	return c.until(id + " ").GetToolResult()
}

func TestSecretReachesTheTerminalOnly(t *testing.T) {
	program := installAsking(t)
	h := prepare(t)
	log, err := zap.Config{Level: zap.NewAtomicLevelAt(zap.DebugLevel), Encoding: "json", OutputPaths: []string{h.settings + ".log"}}.Build()
	if err != nil {
		t.Fatal(err)
	}
	config := h.config()
	config.Log = log
	h.begin(config)
	c := h.join("s", free())
	input, _ := json.Marshal(map[string]any{"command": program, "pty": true})
	c.use("ask", "Bash", string(input))
	c.endTurn()
	q := c.secretQuestion()
	if q.GetSecret().GetProgram() != program {
		t.Errorf("the question names %q", q.GetSecret().GetProgram())
	}
	answer := func(secret string) {
		c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{
			QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: tooldv1.Decision_DECISION_ALLOW, Secret: secret,
		}}})
	}
	answer("")
	for c.until("").GetNotice().GetCode() != "secret_needed" {
	}
	result := c.resultOf("ask")
	answer(hiddenLine)
	task := result.GetStructured().GetFields()["task_id"].GetStringValue()
	p := &interactiveProgram{conversation: c, task: task, last: result.GetContent()[0].GetText()}
	if task != "" {
		p.types("", "has ended")
	}
	if !strings.Contains(p.last, "it has 25 bytes: [redacted]\n[redacted]\n") {
		t.Errorf("screen:\n%s", p.last)
	}
	for _, e := range append(h.records("s"), c.events...) {
		if text, _ := protojson.Marshal(e); bytes.Contains(text, []byte(hiddenLine)) {
			t.Errorf("sent, or in the journal: %s", text)
		}
	}
	h.stop()
	wantNowhere(t, filepath.Dir(h.state), hiddenLine) // with the log
}

// wantNowhere looks for a text in all files of a folder.
func wantNowhere(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSecretIsNotAskedForByTheWorkspace: the prompt of a program that the session could have written is shown, and no more.
func TestSecretIsNotAskedForByTheWorkspace(t *testing.T) {
	program := installAsking(t)
	h := serve(t)
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.root, "asking"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", free())
	p := c.interactive("./asking")
	if !strings.Contains(p.last, "Password:") || strings.Contains(p.last, "being asked") {
		t.Errorf("%s", p.last)
	}
	p.types("guess\n", "it has 5 bytes: guess")
}

// replies answers a question about a hidden line; an empty secret is a no.
func (c *conversation) replies(q *tooldv1.Question, secret string) {
	c.t.Helper()
	a := &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: tooldv1.Decision_DECISION_ALLOW, Secret: secret}
	if secret == "" {
		a.Decision = tooldv1.Decision_DECISION_DENY
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: a}})
}

// TestSecretTwice: a program that asks for a second hidden line, and prints nothing in between, gets that too.
func TestSecretTwice(t *testing.T) {
	c := serve(t).join("s", free())
	c.use("ask", "Bash", `{"command":"read -s a; read -s b; echo they have ${#a} and ${#b}","pty":true}`)
	c.endTurn()
	c.replies(c.secretQuestion(), "four")
	c.replies(c.secretQuestion(), "five5")
	result := c.resultOf("ask")
	p := &interactiveProgram{conversation: c, task: result.GetStructured().GetFields()["task_id"].GetStringValue(), last: result.GetContent()[0].GetText()}
	if p.task != "" {
		p.types("", "they have 4 and 5")
	} else if !strings.Contains(p.last, "they have 4 and 5") {
		t.Error(p.last)
	}
}

// TestSecretDeclinedOnce: who gave no line is asked for the next one.
func TestSecretDeclinedOnce(t *testing.T) {
	c := serve(t).join("s", free())
	p := c.interactive("bash --norc -i")
	input, _ := json.Marshal(map[string]any{"bash_id": p.task, "chars": "read -s X\n"})
	c.use("first", "BashInput", string(input))
	c.replies(c.secretQuestion(), "")
	c.resultOf("first")
	p.types("", "read -s X\n\nbash-") // Ctrl-C has ended it
	input, _ = json.Marshal(map[string]any{"bash_id": p.task, "chars": "read -s Y; echo it has ${#Y}\n"})
	c.use("second", "BashInput", string(input))
	c.replies(c.secretQuestion(), "three")
	p.types("", "it has 5")
}

// TestSecretDeclined: a no types Ctrl-C.
func TestSecretDeclined(t *testing.T) {
	program := installAsking(t)
	c := serve(t).join("s", free())
	input, _ := json.Marshal(map[string]any{"command": program, "pty": true})
	c.use("ask", "Bash", string(input))
	c.endTurn()
	q := c.secretQuestion()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{
		QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: tooldv1.Decision_DECISION_DENY,
	}}})
	result := c.resultOf("ask")
	if task := result.GetStructured().GetFields()["task_id"].GetStringValue(); task != "" {
		(&interactiveProgram{conversation: c, task: task}).types("", "has ended by signal SIGINT")
	} else if text := result.GetContent()[0].GetText(); !strings.HasPrefix(text, "Ended by signal SIGINT") {
		t.Error(text)
	}
}
