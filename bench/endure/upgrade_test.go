package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/bench/ledger"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// release builds the program as of a version.
func release(t *testing.T, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toold")
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", file, "../../cmd/toold")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// A launched daemon is one that a client command has started in the background.
type launched struct {
	*testing.T
	server
}

func (l *launched) toold(binary string, args ...string) string {
	l.Helper()
	cmd := exec.Command(binary, append(args, "--socket", l.socket())...)
	cmd.Env = []string{"HOME=" + filepath.Join(l.dir, "home"), "PATH=" + os.Getenv("PATH")}
	cmd.Dir = l.root()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		l.Fatalf("toold %v: %v\n%s", args, err, said.String())
	}
	return said.String()
}

func launch(t *testing.T, binary string) *launched {
	t.Helper()
	s, err := newServer(binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &launched{t, *s}
	l.toold(binary, "start")
	t.Cleanup(func() { l.toold(binary, "stop", "--now") })
	if err := l.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.conn.Close() })
	return l
}

func (l *launched) attached(seen *ledger.Ledger) *client {
	l.Helper()
	c, err := l.attach(context.Background(), "s", seen, tooldv1.Role_ROLE_MAIN)
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// ended reads what comes until the daemon has ended the stream.
func (c *client) ended(t *testing.T) {
	t.Helper()
	for {
		_, err := c.receive()
		var broken violation
		switch {
		case errors.As(err, &broken):
			t.Fatal(broken)
		case status.Code(err) == codes.Unavailable:
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

// TestUpgrade: a newer program takes the place of an idle daemon by itself, and of a busy one when it is told to. An
// attached client goes on with neither a lost nor a doubled record, and what ran has its result.
func TestUpgrade(t *testing.T) {
	older, newer := release(t, "v1.0.0"), release(t, "v1.1.0")
	l := launch(t, older)
	seen := ledger.New()
	c := l.attached(seen)
	uses := []use{
		{"runs", "Bash", map[string]any{"command": "echo begun >> f; sleep 1; echo ended >> f"}},
		{"waits", "Bash", map[string]any{"command": "echo never >> f"}},
	}
	if err := c.send("turn", uses); err != nil {
		t.Fatal(err)
	}
	for len(seen.Calls()) < len(uses) {
		if _, err := c.receive(); err != nil {
			t.Fatal(err)
		}
	}
	if said := l.toold(newer, "start", "-v"); !strings.Contains(said, "v1.0.0 is running and busy") || !strings.Contains(said, "toold v1.0.0 (process") {
		t.Errorf("the busy daemon goes: %s", said)
	}
	if said := l.toold(newer, "start", "--replace"); !strings.Contains(said, "toold v1.1.0 (process") {
		t.Errorf("told to, it stays: %s", said)
	}
	c.ended(t)
	c = l.attached(seen)
	if err := errors.Join(c.send("turn", uses), c.settle("turn", uses)); err != nil {
		t.Fatal(err)
	}
	results := seen.Results("turn")
	if runs := results["runs"].Result; runs.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
		t.Errorf("the call that ran ended %v, want that it came to its end", runs)
	}
	if waits := results["waits"].Result; waits.GetOutcome() != tooldv1.Outcome_OUTCOME_INTERRUPTED {
		t.Errorf("the call that waited ended %v", waits)
	}
	if text, err := os.ReadFile(filepath.Join(l.root(), "f")); string(text) != "begun\nended\n" {
		t.Errorf("f holds %q (%v)", text, err)
	}

	if said := l.toold(older, "start"); !strings.Contains(said, "v1.1.0") {
		t.Errorf("an older program has replaced a newer one unasked: %s", said)
	}
	l.toold(older, "start", "--replace")
	c.ended(t)
	c = l.attached(seen)
	if said := l.toold(newer, "sessions", "-v"); !strings.Contains(said, "v1.0.0 has ended, and v1.1.0 takes its place") {
		t.Errorf("the idle daemon stays: %s", said)
	}
	c.ended(t)
	c = l.attached(seen)
	next := []use{{"next", "Read", map[string]any{"file_path": filepath.Join(l.root(), "f")}}}
	if err := errors.Join(c.send("next", next), c.settle("next", next)); err != nil {
		t.Fatal(err)
	}
}
