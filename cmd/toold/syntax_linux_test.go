package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestSyntaxError: a command that bash refuses to read is invalid, in every mode, and does not ask; one that only the analysis
// cannot parse asks.
func TestSyntaxError(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for i, x := range []struct{ command, want, at string }{
		{"echo 'x", "INVALID syntax_error", "1:6"},
		{"touch made\nif true; then\n  echo y", "INVALID syntax_error", "2:1"},
		{"touch made; )", "INVALID syntax_error", "1:13"},
		{"touch made && for", "INVALID syntax_error", "1:15"},
		{"echo $(touch made", "INVALID syntax_error", "1:6"},
		{"cat <<E\nno end", "asked", ""},
		{"bash -c 'if'", "asked", ""},
		{"touch made", "asked", ""},
	} {
		for _, mode := range []tooldv1.PermissionMode{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS} {
			root := h.room(t, fmt.Sprintf("syntax-%d-%d", i, mode), nil)
			c := h.attach(t, in(root, &tooldv1.Options{PermissionMode: mode.Enum()}))
			c.bash("1", x.command)
			r := c.finish("1", no)
			got := outcome(r)
			if len(c.wasAsked()) > 0 {
				got = "asked"
			}
			if x.command == "touch made" || x.command == "bash -c 'if'" {
				if mode == tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT {
					expect(t, x.command, got, x.want)
				}
				continue
			}
			expect(t, x.command+"\n"+textIn(r), got, x.want)
			absent(t, root, "made")
			if x.at == "" {
				continue
			}
			details := r.GetError().GetDetails().AsMap()
			expect(t, x.command+"\n"+textIn(r), fmt.Sprintf("%v:%v", details["line"], details["column"]), x.at)
			holds(t, x.command, textIn(r), "line "+strings.Replace(x.at, ":", ", column ", 1), "Bash reports", "Nothing was run")
		}
	}
	explained := self(t, t.Context(), h.environ, filepath.Join(h.dir, "rooms"), "explain", "Bash(echo 'x)")
	out, _ := explained.CombinedOutput()
	holds(t, "toold explain", string(out), "not valid bash")
}
