package daemon_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

// TestNothingOfTheDaemonInside: no call sees what the daemon keeps to itself, whichever way it is confined: its environment, its
// state with the tokens in it, its socket.
func TestNothingOfTheDaemonInside(t *testing.T) {
	const secret = "the-daemon-keeps-this-to-itself"
	t.Setenv("SERVICE_API_TOKEN", secret)
	h := prepare(t)
	h.start()
	for _, name := range []string{"tokens", "journal/note"} {
		if err := os.WriteFile(filepath.Join(h.state, name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := h.join("s", free())
	places := h.state + " " + filepath.Dir(h.socket)
	for id, command := range map[string]string{
		"reads":  "cat " + filepath.Join(h.root, "missing") + "; grep -r . /proc/self/environ",
		"looks":  "ls -R " + places + "; cat " + h.state + "/tokens " + h.state + "/journal/note",
		"writes": "touch made; env; cat /proc/*/environ /proc/*/cmdline | tr '\\\\0' '\\\\n'; find " + places + " -type f -exec cat {} +; ls -la " + h.socket,
	} {
		c.use(id, "Bash", `{"command":"`+command+`"}`)
	}
	c.endTurn()
	results := c.results()
	if len(results) != 3 {
		t.Fatalf("results %v", results)
	}
	for id, result := range results {
		for _, block := range result.GetContent() {
			if strings.Contains(block.GetText(), secret) {
				t.Errorf("%s saw it: %s", id, block.GetText())
			}
		}
	}
	if text := results["writes"].GetContent()[0].GetText(); strings.Contains(text, "srw") {
		t.Errorf("the socket is in sight: %s", text)
	}
}

// TestTitlesHoldNoSecrets: what the daemon words itself has marks, what a call was given and gave is exact.
func TestTitlesHoldNoSecrets(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	h := serve(t)
	c := h.join("s", free())
	c.use("a", "Bash", `{"command":"echo `+token+`"}`)
	c.endTurn()
	c.until("turn ")
	var title, text string
	for _, event := range h.records("s") {
		if a := event.GetAccepted(); a != nil {
			title = a.GetTitle()
		}
		if r := event.GetToolResult(); r != nil {
			text = r.GetContent()[0].GetText()
		}
	}
	if strings.Contains(title, token) || !strings.Contains(title, "[redacted: github token]") {
		t.Errorf("the title is %q", title)
	}
	if text != token+"\n" {
		t.Errorf("the result is %q", text)
	}
}

// TestToolThatStartsAProgram: a tool that says nothing of programs and starts one is confined all the same, and its result
// says how.
func TestToolThatStartsAProgram(t *testing.T) {
	type nothing struct{}
	own := tools.New(tools.Spec{Name: "Own"}, tools.Funcs[nothing]{
		Effects: func(nothing) tools.Effects { return tools.Effects{} },
		Run: func(_ context.Context, env *tools.Env, _ nothing) (tools.Result, error) {
			out := sandbox.Beginning{Most: 100}
			p, err := env.Box.Start(sandbox.Command{
				ID: env.CallID, Path: "/bin/sh", Args: []string{"sh", "-c", "grep Seccomp: /proc/self/status; : >made && echo made"}, Dir: env.Dir, Stdout: &out, Stderr: io.Discard,
			})
			if err != nil {
				return tools.Result{}, err
			}
			p.Wait()
			return tools.Text(out.String()), nil
		},
	})
	h := serve(t, own)
	c := h.join("s", free())
	c.use("a", "Own", `{}`)
	result := c.until("a OK").GetToolResult()
	if tier := result.GetConfinement().GetTier(); tier <= tooldv1.SandboxTier_SANDBOX_TIER_NONE || result.GetUsage().GetSandbox() != tier {
		t.Errorf("confinement %v, usage %v", result.GetConfinement(), result.GetUsage())
	}
	if text := result.GetContent()[0].GetText(); strings.Contains(text, "made") {
		t.Errorf("it wrote: %q", text)
	}
}
