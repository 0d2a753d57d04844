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
	const ts, py = "../typescript/README.md", "../python/README.md"
	const all = "112323" // the digits at the end of the ids of calls and results, in the order of the conversation
	for _, c := range []struct{ file, in, order string }{
		{"anthropic.js", ts, all},
		{"chat.js", ts, all},
		{"messages.py", py, all},
		{"chat.py", py, all},
		{"runner.py", py, all},
		{"chain.py", py, all},
		{"typed.py", py, all},
		{"coder.py", py, "112233"},
		{"runner.js", ts, "23"}, // it sends only what is new
		{"ai.js", ts, all},
		{"responses.js", ts, "112233"}, // the model asks for the patch and the command one after the other
		{"responses.py", py, "112233"},
		{"agents.js", ts, "112233"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			code := shown(t, c.in, c.file)
			if lines := strings.Count(code, "\n"); lines >= 25 {
				t.Errorf("%d lines, want less than 25", lines)
			}
			runsTheTask(t, c.file, code, c.order)
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
func runsTheTask(t *testing.T, name, code, order string) {
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
	checkConversation(t, m.conversation(), order)
}

// checkConversation: behind each of the model's calls stands its result, once, and what the command has printed.
func checkConversation(t *testing.T, conversation []any, want string) {
	whole, err := json.MarshalIndent(conversation, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`"(?:tool_use_id|tool_call_id|call_id|id)": "((?:toolu|call)_0[123])"`).FindAllSubmatch(whole, -1)
	got := ""
	for _, id := range ids {
		got += string(id[1][len(id[1])-1:])
	}
	if got != want {
		t.Errorf("calls and results in the order %s, want %s:\n%s", got, want, whole)
	}
	if !strings.Contains(string(whole), `15\n`) || strings.Contains(string(whole), `"is_error": true`) {
		t.Errorf("the model did not get what the command has printed:\n%s", whole)
	}
}
