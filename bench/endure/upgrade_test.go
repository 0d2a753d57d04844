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

const older, newer = "v1.1.1000", "v1.1.1001" // of the same length, and of no module

// releases builds the program as of the older version, and writes it again as of the newer one.
func releases(t *testing.T) (before, after string) {
	t.Helper()
	before, after = filepath.Join(t.TempDir(), "toold"), filepath.Join(t.TempDir(), "toold")
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+older, "-o", before, "../../cmd/toold")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(before)
	if err == nil {
		err = os.WriteFile(after, bytes.ReplaceAll(program, []byte(older), []byte(newer)), 0o700) //nolint:gosec // it is a program
	}
	if err != nil {
		t.Fatal(err)
	}
	return before, after
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
	before, after := releases(t)
	l := launch(t, before)
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
	if said := l.toold(after, "start", "-v"); !strings.Contains(said, older+" is running and busy") || !strings.Contains(said, "toold "+older+" (process") {
		t.Errorf("the busy daemon goes: %s", said)
	}
	if said := l.toold(after, "start", "--replace"); !strings.Contains(said, "toold "+newer+" (process") {
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

	if said := l.toold(before, "start"); !strings.Contains(said, newer) {
		t.Errorf("an older program has replaced a newer one unasked: %s", said)
	}
	l.toold(before, "start", "--replace")
	c.ended(t)
	c = l.attached(seen)
	if said := l.toold(after, "sessions", "-v"); !strings.Contains(said, older+" has ended, and "+newer+" takes its place") {
		t.Errorf("the idle daemon stays: %s", said)
	}
	c.ended(t)
	c = l.attached(seen)
	next := []use{{"next", "Read", map[string]any{"file_path": filepath.Join(l.root(), "f")}}}
	if err := errors.Join(c.send("next", next), c.settle("next", next)); err != nil {
		t.Fatal(err)
	}
}
