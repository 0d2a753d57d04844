package permission_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

var wanted = map[string]permission.Decision{"deny": permission.Deny, "ask": permission.Ask, "none": permission.Allow}

// TestWalkAround holds the ways around deny rules against them: a line of walkaround.txt is the rule and the command,
// behind "deny", "ask" or "none" for what comes of it in every mode.
func TestWalkAround(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/walkaround.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		want, rest, _ := strings.Cut(lines.Text(), " ")
		rule, command, _ := strings.Cut(rest, ") ")
		command = strings.ReplaceAll(command, `\n`, "\n")
		seen[want]++
		rules := compile(t, "deny "+rule+")", "allow Bash")
		decision, ok := wanted[want]
		if !ok {
			t.Fatalf("%q", lines.Text())
		}
		for _, mode := range []permission.Mode{permission.Default, permission.BypassPermissions} {
			got := permission.Decide(factsOf(t, "Bash "+command), permission.Policy{Rules: rules, Mode: mode})
			if got.Decision != decision {
				t.Errorf("%s) and %s in mode %s: %s (%s), want %s", rule, command, mode, got.Decision, got.Text, want)
			}
		}
	}
	if seen["deny"] < 50 || seen["ask"] < 50 || seen["none"] < 30 {
		t.Errorf("only %v cases", seen)
	}
}
