package hook_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

func TestRun(t *testing.T) {
	r := newRunner(t)
	for _, tt := range append(slices.Concat(singleCases, failureCases, severalCases, eventCases), dropped) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := r
			r.Dir = t.TempDir()
			checkRun(t, r, tt)
		})
	}
}

// A rewritten input reads as one would write it, and the same each time.
func TestRewrittenInput(t *testing.T) {
	got := newRunner(t).Run(t.Context(), scripts(hook.PreToolUse, before(`"updatedInput": {"timeout": 1000, "command": "a && b <c", "flags": {"a": [1,2]}}`)), input(hook.PreToolUse))
	if want := `{"command":"a && b <c","flags":{"a":[1,2.0]},"timeout":1000}`; string(got.Input) != want {
		t.Errorf("it is %s, want %s", got.Input, want)
	}
}

// A hook that must not fail denies where the same hook would only be reported.
func TestRunBlocking(t *testing.T) {
	r := newRunner(t)
	for _, tt := range failureCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hooks := scripts(hook.PreToolUse, tt.scripts...)
			hooks[0].Block = true
			got := r.Run(t.Context(), hooks, input(hook.PreToolUse))
			if len(got.Reasons) == 0 || len(got.Failures) == 0 {
				t.Fatalf("it comes to %+v, with no reason or no failure", got)
			}
			last := got.Reasons[len(got.Reasons)-1]
			_, clause, _ := strings.Cut(strings.TrimSuffix(got.Failures[0], "."), "(/s.json:1) ")
			if want := "It " + clause + "; the call may not go on without it."; got.Decision != hook.Deny || last != reason(hook.Deny, want, 1) {
				t.Errorf("it comes to %v for %+v, want %q", got.Decision, last, want)
			}
		})
	}
}

// What has run cannot be held back any more, but what it has put out can, whatever other hooks would make of it. Nothing
// of what the hook prints, which may be that output, stands in its place.
func TestBlockingAfterwards(t *testing.T) {
	r := newRunner(t)
	replaces := says(`{"hookSpecificOutput": {"updatedToolOutput": "less"}}`, 0)
	for _, script := range []string{"echo secret >&2; exit 1", "echo secret >&2; kill -SEGV $$", says(`{"hookSpecificOutput": {"updatedToolOutput": "secret"}}`, 1), says(`{"secret"`, 2)} {
		hooks := scripts(hook.PostToolUse, replaces, script, replaces)
		if got := r.Run(t.Context(), hooks, input(hook.PostToolUse)); got.Output == nil || *got.Output != "less" {
			t.Errorf("%s: a hook that may fail leaves %v", script, got.Output)
		}
		hooks[1].Block = true
		got := r.Run(t.Context(), hooks, input(hook.PostToolUse))
		if len(got.Failures) != 1 || got.Output == nil || !strings.Contains(*got.Output, "is withheld, because the PostToolUse hook") || !strings.Contains(*got.Output, "(/s.json:2) has failed") {
			t.Errorf("%s: it comes to %+v", script, got)
		}
	}
}

// Where a hook can replace nothing, its failure is said to the model.
func TestBlockingAfterAFailure(t *testing.T) {
	hooks := scripts(hook.PostToolUseFailure, "exit 1")
	hooks[0].Block = true
	got := newRunner(t).Run(t.Context(), hooks, input(hook.PostToolUseFailure))
	want := []permission.Opinion{reason(hook.Deny, `The PostToolUseFailure hook "exit 1" (/s.json:1) ended with exit code 1.`, 1)}
	if diff := cmp.Diff(want, got.Reasons); diff != "" || got.Output != nil {
		t.Errorf("the output becomes %v; wanted - and got +\n%s", got.Output, diff)
	}
}

// A hook that cannot be run has failed without having been run.
func TestBrokenHook(t *testing.T) {
	hooks := []*hook.Hook{{Event: hook.PreToolUse, Command: "echo never; exit 0", Broken: "it makes no sense", Block: true, Origin: at(4)}}
	got := newRunner(t).Run(t.Context(), hooks, input(hook.PreToolUse))
	checkSentences(t, "failures", got.Failures, []string{"(/s.json:4) cannot be run: it makes no sense."})
	if got.Decision != hook.Deny {
		t.Errorf("it comes to %v", got.Decision)
	}
}

func input(event string) hook.Input {
	return hook.Input{Event: event, Tool: "Bash", ToolInput: json.RawMessage(original)}
}

func checkRun(t *testing.T, r hook.Runner, tt runCase) {
	t.Helper()
	if tt.event == "" {
		tt.event = hook.PreToolUse
	}
	hooks := scripts(tt.event, tt.scripts...)
	got := r.Run(t.Context(), hooks, input(tt.event))
	checkSentences(t, "failures", got.Failures, tt.want.Failures)
	checkSentences(t, "notes", got.Notes, tt.want.Notes)
	got.Failures, got.Notes, tt.want.Failures, tt.want.Notes = nil, nil, nil, nil
	for i, reason := range got.Reasons {
		for _, h := range hooks {
			reason.Reason = strings.ReplaceAll(reason.Reason, h.String(), fmt.Sprintf("PreToolUse hook %q (%s)", "HOOK", h.Origin))
		}
		got.Reasons[i] = reason
	}
	if (got.Input == nil) != (tt.want.Input == nil) {
		t.Errorf("input %s, want %s", got.Input, tt.want.Input)
	}
	sameJSON := cmp.Comparer(func(a, b json.RawMessage) bool { return cmp.Equal(decoded(t, a), decoded(t, b)) })
	if diff := cmp.Diff(tt.want, got, sameJSON); diff != "" {
		t.Errorf("wanted - and got +\n%s", diff)
	}
}

func checkSentences(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s %q, want %q", what, got, want)
		return
	}
	for i, sentence := range got {
		if !strings.Contains(sentence, want[i]) || !strings.HasPrefix(sentence, "The ") || !strings.HasSuffix(sentence, ".") {
			t.Errorf("%s %q, want %q in it", what, sentence, want[i])
		}
	}
}

func decoded(t *testing.T, text json.RawMessage) (value any) {
	t.Helper()
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
