// Package clients_test lets the clients in other languages talk to the real daemon, and looks at what they saw. It
// knows the conversation that they hold; it does not know how they hold it.
package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/clients/clienttest"
)

func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		lacking(t, "Node")
	}
	if _, err := os.Stat("node/node_modules/@grpc/grpc-js"); err != nil {
		lacking(t, `the Node client's packages, which "make clients" installs`)
	}
	converse(t, nil, node, "node/conversation.js")
}

func TestPython(t *testing.T) {
	python := pythonWithGRPC()
	if python == "" {
		lacking(t, "a Python with grpcio (Debian: python3-grpcio, python3-protobuf)")
	}
	env := []string{"PYTHONPATH=" + pythonStubs(t), "PYTHONDONTWRITEBYTECODE=1"}
	converse(t, env, python, "python/conversation.py")
}

// pythonWithGRPC finds an interpreter that has grpcio: Debian's, else the first on PATH.
func pythonWithGRPC() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import grpc, google.protobuf").Run() == nil {
			return python
		}
	}
	return ""
}

// pythonStubs generates the stubs as README.md beside this file says, into a folder of the test's.
func pythonStubs(t *testing.T) string {
	t.Helper()
	plugin, err := exec.LookPath("grpc_python_plugin")
	if err != nil {
		lacking(t, "grpc_python_plugin (Debian: protobuf-compiler-grpc)")
	}
	if _, err := exec.LookPath("protoc"); err != nil {
		lacking(t, "protoc (Debian: protobuf-compiler, libprotobuf-dev)")
	}
	protos, err := filepath.Glob("../../proto/toold/v1/*.proto")
	if err != nil || len(protos) == 0 {
		t.Fatalf("no contract in ../../proto: %v", err)
	}
	dir := t.TempDir()
	args := append([]string{
		"-I", "../../proto", "--python_out=" + dir, "--grpc_python_out=" + dir,
		"--plugin=protoc-gen-grpc_python=" + plugin,
	}, protos...)
	if output, err := exec.Command("protoc", args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, output)
	}
	return dir
}

// An event is what a client printed of one ExecuteResponse: the fields that the test looks at.
type event struct {
	Seq      uint64 `json:"seq"`
	Kind     string `json:"kind"`
	Question struct {
		Diff string `json:"diff"`
	} `json:"question"`
	Progress struct {
		ID     string `json:"tool_use_id"`
		Output struct {
			Text string `json:"text"`
		} `json:"output"`
	} `json:"progress"`
	Result struct {
		ID      string `json:"tool_use_id"`
		Outcome string `json:"outcome"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"tool_result"`
}

// converse runs a client and checks the conversation that it printed.
func converse(t *testing.T, env []string, program, script string) {
	root := t.TempDir()
	notes := filepath.Join(root, "notes.txt")
	if err := os.WriteFile(notes, []byte("the old note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := startDaemon(t, buildToold(t))
	name := strings.TrimSuffix(filepath.Base(program), ".exe") + "-conversation"

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script, socket, name, root)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, stdout, &stderr)
	}
	events := parse(t, stdout)

	checkRecords(t, events)
	checkResults(t, events)
	checkTalk(t, events)
	text, err := os.ReadFile(notes)
	if err != nil || string(text) != "the new note\n" {
		t.Errorf("notes.txt holds %q, %v after the edit", text, err)
	}
	if t.Failed() {
		t.Logf("the client printed:\n%s", stdout)
	}
}

func parse(t *testing.T, lines []byte) []event {
	t.Helper()
	var events []event
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	scanner.Buffer(nil, 8<<20)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			t.Fatalf("the client printed %q: %v", scanner.Text(), err)
		}
		events = append(events, e)
	}
	return events
}

// checkRecords: over both streams, every record came exactly once and in order.
func checkRecords(t *testing.T, events []event) {
	t.Helper()
	var next uint64 = 1
	streams := 0
	for _, e := range events {
		if e.Kind == "attached" {
			streams++
		}
		if e.Seq == 0 {
			continue
		}
		if e.Seq != next {
			t.Errorf("record %d came where %d was due, on stream %d", e.Seq, next, streams)
		}
		next = e.Seq + 1
	}
	if streams != 2 {
		t.Errorf("the client was attached %d times, not twice", streams)
	}
}

// checkResults: one result for each call, all of them OK, and what was run while the client was away is in it.
func checkResults(t *testing.T, events []event) {
	t.Helper()
	var ended []string
	for _, e := range events {
		if e.Kind != "tool_result" {
			continue
		}
		ended = append(ended, e.Result.ID)
		if e.Result.Outcome != "OUTCOME_OK" {
			t.Errorf("%s ended as %s: %+v", e.Result.ID, e.Result.Outcome, e.Result.Content)
		}
		if e.Result.ID == "slow" && !strings.Contains(e.Result.Content[0].Text, "awake") {
			t.Errorf("the call that ran on without the client gave %q", e.Result.Content[0].Text)
		}
	}
	slices.Sort(ended)
	if want := []string{"count", "edit", "glob", "read", "slow"}; !slices.Equal(ended, want) {
		t.Errorf("there are results of %v, not of %v", ended, want)
	}
}

// checkTalk: the edit was asked about with its diff, the count was seen as it came, both turns ended.
func checkTalk(t *testing.T, events []event) {
	t.Helper()
	asked, turns, output := false, 0, ""
	for _, e := range events {
		switch e.Kind {
		case "question":
			asked = asked || strings.Contains(e.Question.Diff, "\n+the new note")
		case "turn_ended":
			turns++
		case "progress":
			if e.Progress.ID == "count" {
				output += e.Progress.Output.Text
			}
		}
	}
	if !asked {
		t.Error("nobody asked about the edit with its diff")
	}
	if turns != 2 {
		t.Errorf("%d turns ended, not 2", turns)
	}
	if !strings.Contains(output, "line 1\n") {
		t.Errorf("the output that came while the call ran is %q", output)
	}
}

// buildToold builds the program and gives its path.
func buildToold(t *testing.T) string {
	t.Helper()
	toold := filepath.Join(t.TempDir(), "toold")
	if err := clienttest.Build(toold); err != nil {
		t.Fatal(err)
	}
	return toold
}

// startDaemon starts a daemon of the test's own and gives its socket. It ends with the test.
func startDaemon(t *testing.T, toold string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toold") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "toold.sock")
	if output, err := exec.Command(toold, "start", "--socket", socket).CombinedOutput(); err != nil {
		t.Fatalf("toold start: %v\n%s", err, output)
	}
	t.Cleanup(func() {
		if output, err := exec.Command(toold, "stop", "--socket", socket).CombinedOutput(); err != nil {
			t.Errorf("toold stop: %v\n%s", err, output)
		}
	})
	return socket
}

// lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}
