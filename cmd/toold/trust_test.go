package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// What the user has seen of a workspace that they trust.

// TestTrustOfWhatChanges: what is written while the settings are shown is not trusted. More is shown than a pipe holds, so
// that the command has not come to its end when the first line can be read.
func TestTrustOfWhatChanges(t *testing.T) {
	environ, ws := home(t)
	file := filepath.Join(ws, ".toold", "settings.json")
	var rules []string
	for i := range 5000 {
		rules = append(rules, fmt.Sprintf(`"Bash(make %d)"`, i))
	}
	put(t, file, `{"permissions": {"allow": [`+strings.Join(rules, ", ")+`]}}`)
	cmd := self(t, t.Context(), environ, ws, "trust")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := bufio.NewReader(out)
	if line, err := shown.ReadString('\n'); err != nil || !strings.Contains(line, "need trust to count") {
		t.Errorf("first it says %q (%v)", line, err)
	}
	put(t, file, `{"permissions": {"allow": ["Bash"]}}`)
	rest, _ := io.ReadAll(shown)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitFailed || strings.Contains(string(rest), "is trusted") ||
		!strings.Contains(complaint.String(), ".toold/settings.json changed. Look at them again") {
		t.Errorf("it ended with %v and said %q", err, complaint.String())
	}
	if said, err := self(t, t.Context(), environ, ws, "trust", "--show").CombinedOutput(); err != nil || !strings.Contains(string(said), "is not trusted.") {
		t.Errorf("afterwards: %v\n%s", err, said)
	}
}
