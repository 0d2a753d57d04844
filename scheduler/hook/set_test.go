package hook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

func TestMatchers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		event, matcher string
		matches, not   []string
	}{
		{"PreToolUse", "", []string{"Bash", "mcp__a__b"}, nil},
		{"PreToolUse", "*", []string{"Bash", "mcp__a__b"}, nil},
		{"PreToolUse", " ", []string{"Bash"}, nil},
		{"PreToolUse", "Edit", []string{"Edit"}, []string{"MultiEdit", "edit", "Edits", ""}},
		{"PreToolUse", "Edit|Write", []string{"Edit", "Write"}, []string{"MultiEdit", "Edit|Write"}},
		{"PreToolUse", "Edit, Write ,Bash", []string{"Edit", "Write", "Bash"}, []string{"Edit,", " Write"}},
		{"PreToolUse", "mcp__my-server__get", []string{"mcp__my-server__get"}, []string{"mcp__my-server__get_all"}},
		{"PreToolUse", "mcp__memory__.*", []string{"mcp__memory__get"}, []string{"mcp__other__get"}},
		{"PreToolUse", "Edit.*", []string{"Edit", "MultiEdit", "Editor"}, []string{"Write"}},
		{"PreToolUse", "^Edit$", []string{"Edit"}, []string{"MultiEdit"}},
		{"PreToolUse", "^(Edit|Write)", []string{"Write", "Edits"}, []string{"MultiEdit"}},
		{"Notification", "question", []string{"question"}, []string{"other", ""}},
		{"SessionStart", "startup|resume", []string{"startup", "resume"}, []string{"clear"}},
		{"PostToolBatch", "Bash", []string{"", "Edit"}, nil},
		{"CwdChanged", "[", []string{""}, nil},
	}
	for _, tt := range tests {
		set, errs := hook.Compile([]hook.Hook{{Event: tt.event, Matcher: tt.matcher, Command: "true"}})
		if len(errs) != 0 {
			t.Errorf("matcher %q: %v", tt.matcher, errs)
		}
		for _, subject := range tt.matches {
			if len(set.For(tt.event, subject, nil)) != 1 {
				t.Errorf("matcher %q of %s does not match %q", tt.matcher, tt.event, subject)
			}
		}
		for _, subject := range tt.not {
			if len(set.For(tt.event, subject, nil)) != 0 {
				t.Errorf("matcher %q of %s matches %q", tt.matcher, tt.event, subject)
			}
		}
	}
}

// What cannot be read: a guard runs for everything, any other hook for nothing, and somebody learns of it.
func TestCompileErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		hook    hook.Hook
		problem string
		block   int // how often it is chosen for Bash when it blocks; never when it does not
	}{
		{"matcher", hook.Hook{Event: "PreToolUse", Matcher: "Edit("}, `the matcher "Edit(" of the PreToolUse hook is not a regular expression`, 1},
		{"no name", hook.Hook{Event: "PreToolUse", Matcher: "|"}, `the matcher "|" of the PreToolUse hook holds no name`, 1},
		{"rule", hook.Hook{Event: "PreToolUse", If: "Bash(git *"}, `the "if" of the PreToolUse hook: the rule "Bash(git *"`, 1},
		{"rule that never matches", hook.Hook{Event: "PreToolUse", If: "Write(/x)"}, `Edit(/x)`, 1},
		{"rule of another's tool", hook.Hook{Event: "SessionStart", If: "Bash"}, `SessionStart is not about one call: it never runs`, 0},
	}
	for _, tt := range tests {
		for _, block := range []bool{true, false} {
			h := tt.hook
			h.Command, h.Block, h.Origin = "true", block, at(7)
			set, errs := hook.Compile([]hook.Hook{h, {Event: h.Event, Command: "other"}})
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "/s.json:7: ") || !strings.Contains(errs[0].Error(), tt.problem) {
				t.Errorf("%s: errors %v, want one with %q", tt.name, errs, tt.problem)
			}
			want := 1 // the other one
			if block {
				want += tt.block
			}
			if found := set.For(h.Event, "Bash", func(permission.Rule) bool { return false }); len(found) != want {
				t.Errorf("%s, block %v: %d hooks, want %d", tt.name, block, len(found), want)
			}
		}
	}
}

func TestIf(t *testing.T) {
	t.Parallel()
	set, errs := hook.Compile([]hook.Hook{
		{Event: "PreToolUse", Command: "push", If: "Bash(git push *)"},
		{Event: "PreToolUse", Command: "all"},
		{Event: "PreToolUse", Command: "edit", Matcher: "Edit", If: "Edit(*.go)"},
	})
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	for _, holds := range []bool{true, false} {
		var asked []string
		found := set.For("PreToolUse", "Bash", func(r permission.Rule) bool {
			asked = append(asked, r.Text)
			return holds
		})
		if len(asked) != 1 || asked[0] != "Bash(git push *)" {
			t.Errorf("asked for %q", asked)
		}
		if want := map[bool]int{true: 2, false: 1}[holds]; len(found) != want || found[want-1].Command != "all" {
			t.Errorf("the rule holds %v: %d hooks, want %d", holds, len(found), want)
		}
	}
}

func TestOrderAndRepetition(t *testing.T) {
	t.Parallel()
	set, _ := hook.Compile([]hook.Hook{
		{Event: "PreToolUse", Command: "a", Origin: at(1)},
		{Event: "PostToolUse", Command: "a", Origin: at(2)},
		{Event: "PreToolUse", Matcher: "Bash", Command: "b", Origin: at(3)},
		{Event: "PreToolUse", Matcher: "Bash", Command: "a", Timeout: time.Minute, Origin: at(4)}, // as the first
		{Event: "PreToolUse", Command: "b", Block: true, Origin: at(5)},                           // as the third, and stricter
		{Event: "PreToolUse", Command: "a", Args: []string{}, Origin: at(6)},
		{Event: "Unheard", Command: "a", Origin: at(7)},
		{Event: "PreToolUse", Command: "b", Origin: at(8)},
		{Event: "PreToolUse", Command: "a", Timeout: time.Second, Origin: at(9)},
	})
	var lines []int
	for _, h := range set.For("PreToolUse", "Bash", nil) {
		lines = append(lines, h.Origin.Line)
	}
	if want := []int{1, 5, 6, 9}; !slices.Equal(lines, want) {
		t.Errorf("hooks of lines %v, want %v", lines, want)
	}
}

// A program that is wherever the session has gone to is somebody else's there.
func TestRelativePrograms(t *testing.T) {
	t.Parallel()
	none := []string(nil)
	const project = `"$CLAUDE_PROJECT_DIR"/`
	for _, tt := range []struct {
		command string
		args    []string
		meant   string // empty: nothing is wrong
	}{
		{"./check.sh", none, project + "check.sh is"},
		{"  ../x/check.sh -a", none, project + "../x/check.sh is"},
		{".claude/hooks/check|cat", none, project + ".claude/hooks/check is"},
		{"A=1 B= ./check.sh", none, project + "check.sh is"},
		{`"./my check.sh" x`, none, project + `"./my check.sh" is`},
		{"'a/b c' x", none, project + "\"a/b c\" is"},
		{"bash", []string{"-c", "./check.sh"}, project + "check.sh is"},
		{"./check.sh", []string{}, "${CLAUDE_PROJECT_DIR}/check.sh is"},
		{"a/b", []string{"x"}, "${CLAUDE_PROJECT_DIR}/a/b is"},
		{"$CLAUDE_PROJECT_DIR/x", []string{}, "an absolute path is"},
		{"~/x", []string{}, "an absolute path is"},
		{"check.sh", none, ""},
		{"cat ./x", none, ""},
		{"/bin/cat x/y", none, ""},
		{project + "check.sh", none, ""},
		{"$CLAUDE_PROJECT_DIR/check.sh", none, ""},
		{"~/check.sh", none, ""},
		{`A="b c/d" x`, none, ""},
		{"A=b/c x", none, ""},
		{"(cd x/y)", none, ""},
		{"[ -e x/y ]", none, ""},
		{"${CLAUDE_PROJECT_DIR}/x", []string{"./y"}, ""},
		{"${TOOLD_PROJECT_DIR}/x", []string{}, ""},
		{"/x", []string{}, ""},
		{"x", []string{"a/b"}, ""},
	} {
		set, errs := hook.Compile([]hook.Hook{
			{Event: "PreToolUse", Command: tt.command, Args: tt.args, Origin: at(7)},
			{Event: "Stop", Command: tt.command, Args: tt.args, Origin: at(8)}, // never runs
		})
		if len(set.For("PreToolUse", "Bash", nil)) != 1 {
			t.Errorf("%s %q does not run", tt.command, tt.args)
		}
		if tt.meant == "" && len(errs) != 0 || tt.meant != "" && len(errs) != 1 {
			t.Errorf("%s %q: errors %v, want one with %q", tt.command, tt.args, errs, tt.meant)
		} else if tt.meant != "" && (!strings.HasPrefix(errs[0].Error(), "/s.json:7: the program ") || !strings.Contains(errs[0].Error(), "; "+tt.meant+" probably meant")) {
			t.Errorf("%s %q: %v, want it to say %q", tt.command, tt.args, errs[0], tt.meant)
		}
	}
}

func TestNoHooks(t *testing.T) {
	var none *hook.Set
	empty, errs := hook.Compile(nil)
	if found := none.For("PreToolUse", "Bash", nil); found != nil || len(errs) != 0 {
		t.Errorf("found %v, errors %v", found, errs)
	}
	if n := testing.AllocsPerRun(100, func() { empty.For("PreToolUse", "Bash", nil) }); n != 0 {
		t.Errorf("choosing none of no hooks allocates %v times", n)
	}
	if result := (hook.Runner{}).Run(t.Context(), nil, hook.Input{}); result.Decision != hook.None {
		t.Errorf("no hooks come to %v", result.Decision)
	}
}
