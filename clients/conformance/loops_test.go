package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLoops runs the agents' loops that the READMEs of the libraries show, as they stand there, against recorded streams of the
// models' APIs: a file is read and edited, and a command runs.
func TestLoops(t *testing.T) {
	for _, c := range []struct{ file, in string }{
		{"anthropic.js", "../typescript/README.md"},
		{"responses.js", "../typescript/README.md"},
		{"chat.js", "../typescript/README.md"},
		{"messages.py", "../python/README.md"},
		{"responses.py", "../python/README.md"},
		{"chat.py", "../python/README.md"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			code := shown(t, c.in, c.file)
			if lines := strings.Count(code, "\n"); lines >= 25 {
				t.Errorf("%d lines, want less than 25", lines)
			}
			runsTheTask(t, c.file, code)
		})
	}
}

// shown returns the program that a document shows: the block of code whose first line is a comment with its name.
func shown(t *testing.T, document, name string) string {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```\\w+\n(?://|#) " + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not show %s", document, name)
	}
	return string(found[1])
}

// runsTheTask runs an agent, which gets its task as an argument, and checks what the recorded streams ask for.
func runsTheTask(t *testing.T, name, code string) {
	h := newHome(t)
	m := newModel(t, h.root)
	h.write("greeting.txt", "Hello, world\n")
	h.write("count.sh", "wc -c <\"$1\" | tee -a counted\n")
	program := filepath.Join(h.dir, name)
	cmd := h.command(debian)
	if strings.HasSuffix(name, ".py") {
		_, path := python(t)
		cmd.Env = append(cmd.Env, "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+path)
	} else {
		interpreter, dir := node(t)
		file, err := os.CreateTemp(dir, "*-"+strings.TrimSuffix(name, ".js")+".mjs") // where it finds its packages
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		program, cmd = file.Name(), h.command(interpreter)
	}
	if err := os.WriteFile(program, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Args = append(cmd.Args, program, "Make it say Goodbye.")
	cmd.Env = append(cmd.Env, m.environment()...)
	if out := h.converse(cmd, "[y/n] ", "y\n"); !strings.Contains(out, "It says Goodbye now.") {
		t.Errorf("it has printed:\n%s", out)
	}
	if got := h.read("greeting.txt"); got != "Goodbye, world\n" {
		t.Errorf("the file was not edited: %q", got)
	}
	if got := h.read("counted"); got != "15\n" {
		t.Errorf("the command has counted %q, want once 15: after the edit", got)
	}
	checkConversation(t, m.conversation())
}

// checkConversation: behind each of the model's calls stands its result, once, and what the command has printed.
func checkConversation(t *testing.T, conversation []any) {
	whole, err := json.MarshalIndent(conversation, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`"(?:tool_use_id|tool_call_id|call_id|id)": "((?:toolu|call)_0[123])"`).FindAllSubmatch(whole, -1)
	var order []string
	for _, id := range ids {
		order = append(order, string(id[1][len(id[1])-1:]))
	}
	if got := strings.Join(order, ""); got != "112323" {
		t.Errorf("calls and results in the order %s, want 112323:\n%s", got, whole)
	}
	if !strings.Contains(string(whole), `15\n`) || strings.Contains(string(whole), `"is_error": true`) {
		t.Errorf("the model did not get what the command has printed:\n%s", whole)
	}
}
