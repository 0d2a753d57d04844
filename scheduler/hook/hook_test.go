package hook_test

import (
	"testing"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// A command is named as it was written, unless there is something in it that a terminal would act upon.
func TestNames(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`"$CLAUDE_PROJECT_DIR"/h.sh`: "`\"$CLAUDE_PROJECT_DIR\"/h.sh`",
		"sh guard.sh":                `"sh guard.sh"`,
		"echo \"`date`\"":            `"echo \"` + "`date`" + `\""`,
		"echo \"\x1b[2J\"":           `"echo \"\x1b[2J\""`,
		"echo \"\u202e\"":            `"echo \"\u202e\""`,
		"a \\\nb":                    `"a \\\nb"`,
	} {
		h := hook.Hook{Event: hook.PreToolUse, Command: command, Origin: permission.Origin{File: "/s.json", Line: 1}}
		if got := h.String(); got != "PreToolUse hook "+want+" (/s.json:1)" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
