package permission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// TestInvolved: a script on which the analysis gives up, or which names more paths than are held against rules, asks in
// every mode that asks, whatever allows it; a deny rule that is met before that still denies.
func TestInvolved(t *testing.T) {
	t.Parallel()
	rules := compile(t, "deny Bash(rm *)", "deny Read(.env)", "allow Bash")
	var names strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&names, "a/%d,b ", i)
	}
	finds, paths := "find . "+strings.Repeat("-exec find . ", 700), "cd x; cd y; cd z; mytool "+names.String()
	for script, want := range map[string]permission.Decision{
		finds: permission.Ask, "rm x; " + finds: permission.Deny, paths[:9_900]: permission.Ask, "rm x; " + paths[:9_900]: permission.Deny,
		paths[:900]: permission.Allow,
	} {
		f := factsOf(t, "Bash "+script)
		for _, mode := range []permission.Mode{permission.Default, permission.AcceptEdits, permission.BypassPermissions} {
			if got := permission.Decide(f, permission.Policy{Rules: rules, Mode: mode}); got.Decision != want {
				t.Errorf("%.60s in mode %s: %s (%.200s), want %s", script, mode, got.Decision, got.Text, want)
			}
		}
	}
}
