package permission_test

// What the rule Bash, without a specifier, lets run.

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// TestBareBash: of a list of calls as they come, the rule lets all run that was understood and names its programs, unless
// it is critical, writes a protected file or names a path outside the roots or
// a host; and nothing else.
func TestBareBash(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	rules := compile(t, "allow Bash")
	allowed := 0
	for call := range strings.Lines(string(list)) {
		call = strings.TrimSuffix(call, "\n")
		f := factsOf(t, "Bash "+call)
		v := permission.Decide(f, permission.Policy{Rules: rules})
		covered := !f.Unknown.Unread
		for _, c := range f.Commands {
			covered = covered && (c.Literal || c.DenyOnly || c.Name == "[[" || c.Name == "((")
		}
		guarded := strings.HasPrefix(v.Text, "It would change ") || strings.Contains(call, "://") && strings.Contains(v.Text, " to contact ") ||
			slices.ContainsFunc(f.Accesses, func(a permission.Access) bool { return !a.Inside && !a.Unnamed })
		if want := covered && !guarded; (v.Decision == permission.Allow) != want {
			t.Errorf("%s: %s (%s), but understood and named: %t", call, v.Decision, v.Text, covered)
		}
		if v.Decision == permission.Allow {
			allowed++
		}
	}
	if allowed < 300 {
		t.Errorf("only %d of the calls are allowed", allowed)
	}
}
