package main

// Commands of a session that would answer its questions, or trust its workspace.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// answering makes a room with a copy of toold in it, and settings of the workspace that would let every command run.
func answering(t *testing.T, h *house, name string, files map[string]string) (root string) {
	t.Helper()
	root = h.room(t, name, files)
	put(t, filepath.Join(root, ".toold/settings.json"), `{"permissions":{"allow":["Bash(touch *)"]}}`)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "toold"), program, 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return root
}

// named puts the daemon's places into a command.
func (h *house) named(command string) string {
	places := strings.NewReplacer("SOCKET", filepath.Join(h.dir, "run/toold/toold.sock"), "STATE", filepath.Join(h.dir, "state"))
	return places.Replace(command)
}

// TestCallsAnswerNothing: a command that runs outside of the sandbox reaches the daemon, and is refused.
func TestCallsAnswerNothing(t *testing.T) {
	h := ordinary(t)
	root := answering(t, h, "outside", map[string]string{"answer.sh": h.named(`
		until ./toold --socket SOCKET answer 2 yes >said 2>&1 && echo taken >>said || grep -q 'cannot use the daemon' said; do sleep 0.01; done
	`)})
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"sandbox":{"enabled":false}}`)}))
	c.use("1", "Bash", `{"command":"setsid sh answer.sh","run_in_background":true}`)
	c.finish("1", yes)
	c.bash("2", "touch made")
	q := c.question("2")
	c.awaitNotice("task_ended")
	holds(t, "the answer", content(t, filepath.Join(root, "said")), "which a call of this daemon has started")
	absent(t, root, "made")
	c.answer(answer(q, yes))
	expect(t, "the call", outcome(c.finish("2", no)), "OK")
}

// TestCallsTrustNothing: a command in the sandbox reaches neither the daemon nor what it keeps of trust.
func TestCallsTrustNothing(t *testing.T) {
	h := ordinary(t)
	root := answering(t, h, "inside", nil)
	c := h.attach(t, in(root, nil))
	for i, command := range []string{"./toold --socket SOCKET answer", "XDG_STATE_HOME=STATE ./toold trust .", "./toold --socket SOCKET sessions"} {
		r := c.run(string(rune('a'+i)), h.named(command))
		if r.GetOutcome() != tooldv1.Outcome_OUTCOME_ERROR {
			t.Errorf("%s\nends %s in %s:\n%s", command, outcome(r), r.GetConfinement().GetTier(), textIn(r))
		}
	}
	c.wasAsked()
	c.run("touch", "touch made")
	if len(c.wasAsked()) != 1 {
		t.Error("the workspace is trusted: its rule lets a command run")
	}
	h.apart(t, root, "trust", root)
	c.run("again", "touch made")
	same(t, "a rule of a workspace that the user trusts\nasks", c.wasAsked())
}

func TestCallsTrustNothingWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("answer", TestCallsAnswerNothing)
	t.Run("trust", TestCallsTrustNothing)
}
