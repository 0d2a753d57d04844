package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A piped is a toold that reads from and writes to pipes of the test's.
type piped struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

// onPipes starts toold.
func onPipes(t *testing.T, environ []string, dir string, args ...string) *piped {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	t.Cleanup(cancel)
	r := &piped{t: t, cmd: self(t, ctx, environ, dir, args...)}
	r.cmd.Stderr = &r.stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.in, r.out = in, bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *piped) write(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Fatalf("%v; standard error:\n%s", err, r.stderr.String())
	}
}

// until reads events, one a line, up to the first whose story begins so.
func (r *piped) until(told string) *tooldv1.ExecuteResponse {
	r.t.Helper()
	var heard []string
	for {
		line, err := r.out.ReadString('\n')
		if err != nil {
			_ = r.cmd.Wait()
			r.t.Fatalf("%v, waiting for %q after %q; standard error:\n%s", err, told, heard, r.stderr.String())
		}
		event := &tooldv1.ExecuteResponse{}
		if err := protojson.Unmarshal([]byte(line), event); err != nil {
			r.t.Fatalf("%v in %s", err, line)
		}
		words := tell(event)
		if heard = append(heard, words); strings.HasPrefix(words, told) && words != "" {
			return event
		}
	}
}

// ends reads the rest of the output and checks the exit code.
func (r *piped) ends(code int) string {
	r.t.Helper()
	_ = r.in.Close()
	rest, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d; standard output:\n%s\nstandard error:\n%s", got, code, rest, r.stderr.String())
	}
	return string(rest)
}

func (r *piped) interrupt() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
}

// bashLine is a tool use as a JSON line.
func bashLine(t *testing.T, id, command string) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{"id": id, "name": "Bash", "input": map[string]string{"command": command}})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// forever is a command that is no interruptible tool's and does not end by itself within any test.
const forever = "sleep 900; echo over"

// An interrupt stops what runs, also a command, and what waits never starts. Every call has its result on standard
// output, in the form that was asked for.
func TestInterrupt(t *testing.T) {
	h := newHouse(t, nil)
	for form, want := range map[string][]string{
		"text":      {"✗ Bash " + forever + "  cancelled", "✗ Bash touch never  cancelled", "the user pressed Ctrl-C"},
		"json":      {`"tool_use_id":"a"`, `"tool_use_id":"b"`, `"outcome":"OUTCOME_CANCELLED"`},
		"anthropic": {`"tool_use_id":"a"`, `"tool_use_id":"b"`, `"is_error":true`},
		"openai":    {`"tool_call_id":"a"`, `"tool_call_id":"b"`},
		"responses": {`"call_id":"a"`, `"call_id":"b"`},
	} {
		t.Run(form, func(t *testing.T) {
			root := h.room(t, "run-"+form, nil)
			x := onPipes(t, h.environ, root, "run", "--output", form, "--session", "run-"+form, "--mode", "bypassPermissions", "--root", root)
			x.write(bashLine(t, "a", forever) + bashLine(t, "b", "touch never"))
			h.attend(t, root, "run-"+form, "a started")
			x.interrupt()
			holds(t, "the output", x.ends(cli.ExitFailed), want...)
			if content(t, filepath.Join(root, "never")) != "" || strings.Contains(x.stderr.String(), "panic") {
				t.Errorf("what waited has run; standard error:\n%s", x.stderr.String())
			}
		})
	}
	t.Run("call", func(t *testing.T) {
		root := h.room(t, "call", nil)
		x := onPipes(t, h.environ, root, "call", "Bash", "command="+forever, "--session", "call", "--mode", "bypassPermissions")
		h.attend(t, root, "call", "")
		x.interrupt()
		holds(t, "the output", x.ends(cli.ExitFailed), "the user pressed Ctrl-C")
	})
}

// What does not end when it is told to is not waited for: each call has its result, with what it has printed. The daemon is
// stopped meanwhile, so that it has no results to give; what it was about to send is in the stream before that.
func TestInterruptOfWhatStays(t *testing.T) {
	h := newHouse(t, nil)
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string][]string{
		"text":      {"✗ Bash " + forever + "  cancelled", "had not ended"},
		"anthropic": {`"tool_use_id":"a"`, `"tool_use_id":"b"`, `"is_error":true`, "had not ended"},
		"jsonl":     {`"tool_use_id":"a"`, `"tool_use_id":"b"`, "had not ended"},
	} {
		t.Run(form, func(t *testing.T) {
			root := h.room(t, "stays-"+form, nil)
			x := onPipes(t, h.environ, root, "run", "--output", form, "--session", "stays-"+form, "--mode", "bypassPermissions", "--root", root)
			x.write(bashLine(t, "a", forever) + bashLine(t, "b", "touch never"))
			h.attend(t, root, "stays-"+form, "a started")
			daemon := func(sig syscall.Signal) {
				if err := syscall.Kill(int(info.GetPid()), sig); err != nil {
					t.Fatal(err)
				}
			}
			daemon(syscall.SIGSTOP)
			defer daemon(syscall.SIGCONT)
			x.interrupt()
			holds(t, "the output", x.ends(cli.ExitFailed), want...)
		})
	}
	root := h.room(t, "ignores", nil)
	x := onPipes(t, h.environ, root, "run", "--output", "jsonl", "--mode", "bypassPermissions")
	x.write(bashLine(t, "a", "trap '' TERM; echo printed; touch ready; while :; do sleep 0.01; done"))
	x.until("a started")
	bypass := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	h.attach(t, in(root, bypass)).run("1", "until test -e ready; do sleep 0.01; done")
	x.interrupt()
	holds(t, "the result", textIn(x.until("a CANCELLED").GetToolResult()), "printed", turn.StopReason)
	x.ends(cli.ExitFailed)
}

// attend returns when the session is there and the story has come so far; empty: a call of it has started.
func (h *house) attend(t *testing.T, root, session, story string) {
	t.Helper()
	c := h.attach(t, &tooldv1.Attach{SessionId: session, Roots: []string{root}, Role: tooldv1.Role_ROLE_COMPANION, AfterSeq: new(uint64)})
	for {
		event := c.until("")
		if story == "" && event.GetStarted() != nil || story != "" && strings.HasPrefix(tell(event), story) {
			return
		}
	}
}

// A soft interrupt lets a command finish, and what waits never starts. The second interrupt ends the client.
func TestSoftInterrupt(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "soft", nil)
	args := []string{"run", "--output", "jsonl", "--interrupt", "soft", "--mode", "bypassPermissions"}
	x := onPipes(t, h.environ, root, args...)
	x.write(bashLine(t, "a", "until test -e go; do sleep 0.02; done; echo finished") + bashLine(t, "b", "touch never"))
	x.until("a started")
	x.interrupt()
	x.until("b CANCELLED")
	put(t, filepath.Join(root, "go"), "go")
	if r := x.until("a OK").GetToolResult(); textIn(r) != "finished\n" && textIn(r) != "finished" {
		t.Errorf("the command was not let finish: %q", textIn(r))
	}
	x.ends(cli.ExitFailed)

	x = onPipes(t, h.environ, root, args...)
	x.write(bashLine(t, "a", forever) + bashLine(t, "b", "touch never"))
	x.until("a started")
	x.interrupt()
	x.until("b CANCELLED")
	if err := x.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	x.ends(cli.ExitSignal)
}

// An interrupt also ends a turn whose message is still coming.
func TestInterruptWhileReading(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "reading", nil)
	x := onPipes(t, h.environ, root, "run", "--output", "jsonl", "--mode", "bypassPermissions")
	x.write(bashLine(t, "a", "echo one"))
	x.until("a OK")
	x.interrupt() // standard input stays open
	x.until("turn ended")
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("%v; standard error:\n%s", err, x.stderr.String())
	}
}
