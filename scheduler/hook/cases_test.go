package hook_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

func reason(d hook.Decision, text string, line int) permission.Opinion {
	return permission.Opinion{Decision: permission.Decision(d - hook.Allow), Reason: text, Origin: at(line)}
}

func ptr[T any](v T) *T { return &v }

// says makes a script that prints JSON and ends with a code.
func says(json string, code int) string {
	return fmt.Sprintf("cat <<'END'\n%s\nEND\nexit %d", json, code)
}

// before makes a script that decides before a call.
func before(fields string) string {
	return says(`{"hookSpecificOutput": {"hookEventName": "PreToolUse", `+fields+`}}`, 0)
}

const original = `{"command": "make", "timeout": 1000, "flags": {"a": [1, 2.0]}}`

type runCase struct {
	name    string
	event   string // empty: PreToolUse
	scripts []string
	want    hook.Result // Input as JSON in any spelling; of Failures and Notes, parts of the sentences
}

// What single hooks say.
var singleCases = []runCase{
	{name: "silence", scripts: []string{"true"}},
	{name: "plain text says nothing", scripts: []string{`echo 'permissionDecision: deny'`}},
	{
		name: "allow", scripts: []string{before(`"permissionDecision": "allow", "permissionDecisionReason": "known"`)},
		want: hook.Result{Decision: hook.Allow, Reasons: []permission.Opinion{reason(hook.Allow, "known", 1)}},
	},
	{
		name: "ask, after white space", scripts: []string{"printf '\\n\\t '\n" + before(`"permissionDecision": "ask"`)},
		want: hook.Result{Decision: hook.Ask, Reasons: []permission.Opinion{reason(hook.Ask, "", 1)}},
	},
	{
		name: "deny", scripts: []string{before(`"permissionDecision": "deny", "permissionDecisionReason": "not on Fridays"`)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "not on Fridays", 1)}},
	},
	{
		name: "defer", scripts: []string{before(`"permissionDecision": "defer"`)},
		want: hook.Result{Notes: []string{"deferred"}},
	},
	{
		name: "older approve", scripts: []string{says(`{"decision": "approve", "reason": "fine"}`, 0)},
		want: hook.Result{Decision: hook.Allow, Reasons: []permission.Opinion{reason(hook.Allow, "fine", 1)}},
	},
	{
		name: "older block", scripts: []string{says(`{"decision": "block", "reason": "no"}`, 0)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "no", 1)}},
	},
	{
		name:    "older and newer: the stricter",
		scripts: []string{says(`{"decision": "block", "reason": "no", "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "yes"}}`, 0)},
		want:    hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "no", 1)}},
	},
	{
		name:    "newer and older: the stricter",
		scripts: []string{says(`{"decision": "approve", "reason": "yes", "hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "hm"}}`, 0)},
		want:    hook.Result{Decision: hook.Ask, Reasons: []permission.Opinion{reason(hook.Ask, "hm", 1)}},
	},
	{
		name: "texts", scripts: []string{says(`{"systemMessage": "for you", "suppressOutput": true, "hookSpecificOutput": {"additionalContext": "for the model"}}`, 0)},
		want: hook.Result{System: []string{"for you"}, Context: []string{"for the model"}},
	},
	{
		name: "stop", scripts: []string{says(`{"continue": false, "stopReason": "enough"}`, 0)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "enough", 1)}, Stop: ptr("enough")},
	},
	{
		name: "stop beats allow", scripts: []string{says(`{"continue": false, "decision": "approve"}`, 0)},
		want: hook.Result{
			Decision: hook.Deny, Stop: ptr(""),
			Reasons: []permission.Opinion{reason(hook.Allow, "", 1), reason(hook.Deny, "The session is to stop.", 1)},
		},
	},
	{
		name: "exit 2", scripts: []string{"echo ' because\n' >&2; exit 2"},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "because", 1)}},
	},
	{
		name: "exit 2 with a JSON reason", scripts: []string{"echo other >&2\n" + says(`{"decision": "block", "reason": "mine"}`, 2)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "mine", 1)}},
	},
	{
		name: "exit 2 beats a JSON allow", scripts: []string{"echo because >&2\n" + says(`{"decision": "approve", "reason": "fine"}`, 2)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "because", 1)}},
	},
	{
		name: "exit 2 with JSON that does not fit", scripts: []string{"echo because >&2\n" + says(`{"reason": 5}`, 2)},
		want: hook.Result{
			Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "because", 1)}, Failures: []string{"reason is not a string"},
		},
	},
	{
		name: "another code with JSON", scripts: []string{says(`{"decision": "block", "reason": "no"}`, 5)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "no", 1)}, Failures: []string{"exit code 5"}},
	},
	{
		name: "an unknown word", scripts: []string{before(`"permissionDecision": "Allow"`)},
		want: hook.Result{Failures: []string{`hookSpecificOutput.permissionDecision is "Allow"; it can be allow, ask, defer, deny`}},
	},
	{
		name: "keys in another case", scripts: []string{says(`{"Decision": "approve", "HOOKSPECIFICOUTPUT": {"permissionDecision": "allow"}}`, 0)},
	},
	{
		name: "for another event", scripts: []string{says(`{"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "allow"}}`, 0)},
		want: hook.Result{Failures: []string{`hookEventName is "PostToolUse", but the event is PreToolUse`}},
	},
	{
		name: "what is not UTF-8", scripts: []string{`printf 'a\377b' >&2; exit 2`},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "a\uFFFDb", 1)}},
	},
	{
		name: "long texts", scripts: []string{`head -c 10123 /dev/zero | tr '\0' x >&2; exit 2`},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{
			reason(hook.Deny, strings.Repeat("x", 10_000)+"\n[123 more characters of the hook's text were cut off]", 1),
		}},
	},
}

// dropped is more than is kept of what a hook prints as an error.
var dropped = runCase{
	name: "very long texts", scripts: []string{`head -c 10000000 /dev/zero | tr '\0' x >&2; exit 2`},
	want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{
		reason(hook.Deny, strings.Repeat("x", 10_000)+"\n[at least 55536 more characters of the hook's text were cut off]", 1),
	}},
}

// What goes wrong, and passes.
var failureCases = []runCase{
	{
		name: "an error", scripts: []string{"echo boom >&2; exit 1"},
		want: hook.Result{Failures: []string{`The PreToolUse hook "echo boom >&2; exit 1" (/s.json:1) ended with exit code 1, and printed "boom".`}},
	},
	{
		name: "crash", scripts: []string{"kill -SEGV $$"},
		want: hook.Result{Failures: []string{"(/s.json:1) was ended by SIGSEGV."}},
	},
	{
		name: "missing", scripts: []string{"./absent/guard.sh --all"},
		want: hook.Result{Failures: []string{`"./absent/guard.sh --all" (/s.json:1) ended with exit code 127, which means that a program was not found`}},
	},
	{
		name: "not executable", scripts: []string{"/etc/passwd"},
		want: hook.Result{Failures: []string{"exit code 126, which means that a program is not executable"}},
	},
	{
		name: "garbage", scripts: []string{`echo '{"permissionDecision": allow'`},
		want: hook.Result{Failures: []string{"(/s.json:1) printed text that begins like JSON but is not valid"}},
	},
	{
		name: "more than one object", scripts: []string{`echo '{"decision": "approve"} {"decision": "approve"}'`},
		want: hook.Result{Failures: []string{"printed text that begins like JSON but is not valid"}},
	},
	{
		name: "too much JSON", scripts: []string{`echo '{"decision": "approve", "x": "'; head -c 2000000 /dev/zero | tr '\0' x; echo '"}'`},
		want: hook.Result{Failures: []string{"printed JSON of more than 1048576 bytes, which was not read"}},
	},
	{
		name: "an input that is no object", scripts: []string{before(`"permissionDecision": "allow", "updatedInput": ["x"]`)},
		want: hook.Result{Failures: []string{"hookSpecificOutput.updatedInput is not an object"}},
	},
	{
		name: "an allow before a crash", scripts: []string{`echo '{"decision": "approve", "systemMessage": "m"}'; kill -KILL $$`},
		want: hook.Result{Failures: []string{"was ended by SIGKILL"}},
	},
	{
		name: "a refusal before a crash", scripts: []string{`echo '{"decision": "block", "reason": "no"}'; kill -KILL $$`},
		want: hook.Result{
			Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "no", 1)}, Failures: []string{"was ended by SIGKILL"},
		},
	},
}

// What several hooks come to.
var severalCases = []runCase{
	{
		name: "deny over ask over allow, all reasons kept",
		scripts: []string{
			before(`"permissionDecision": "allow", "permissionDecisionReason": "a"`), "true",
			before(`"permissionDecision": "deny", "permissionDecisionReason": "b"`),
			before(`"permissionDecision": "ask", "permissionDecisionReason": "c"`), "echo d >&2; exit 2",
		},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{
			reason(hook.Allow, "a", 1), reason(hook.Deny, "b", 3), reason(hook.Ask, "c", 4), reason(hook.Deny, "d", 5),
		}},
	},
	{
		name: "ask over allow", scripts: []string{before(`"permissionDecision": "ask"`), before(`"permissionDecision": "allow"`)},
		want: hook.Result{Decision: hook.Ask, Reasons: []permission.Opinion{reason(hook.Ask, "", 1), reason(hook.Allow, "", 2)}},
	},
	{
		// Each waits for the other.
		name: "side by side, told in their order",
		scripts: []string{
			"mkfifo a 2>/dev/null; mkfifo b 2>/dev/null; echo >a; read x <b\n" + says(`{"systemMessage": "first"}`, 0),
			"mkfifo a 2>/dev/null; mkfifo b 2>/dev/null; read x <a; echo >b\n" + says(`{"systemMessage": "second"}`, 0),
		},
		want: hook.Result{System: []string{"first", "second"}},
	},
	{
		name: "the first stop counts",
		scripts: []string{
			says(`{"continue": true}`, 0), says(`{"continue": false, "stopReason": "one"}`, 0), says(`{"continue": false, "stopReason": "two"}`, 0),
		},
		want: hook.Result{
			Decision: hook.Deny, Stop: ptr("one"), Reasons: []permission.Opinion{reason(hook.Deny, "one", 2), reason(hook.Deny, "two", 3)},
		},
	},
	{
		name:    "a rewrite",
		scripts: []string{before(`"updatedInput": {"command": "make -n", "timeout": 1000, "flags": {"a": [1, 2]}}`)},
		want:    hook.Result{Input: json.RawMessage(`{"command": "make -n", "timeout": 1000, "flags": {"a": [1, 2.0]}}`)},
	},
	{
		name: "a rewrite that changes nothing", scripts: []string{before(`"updatedInput": {"flags": {"a": [1.0, 2]}, "timeout": 1e3, "command": "make"}`)},
	},
	{
		name: "rewrites of different fields",
		scripts: []string{
			before(`"updatedInput": {"command": "make -n", "timeout": 1000, "flags": {"a": [1, 2]}}`),
			before(`"permissionDecision": "allow", "updatedInput": {"command": "make", "timeout": 5, "new": true}`),
		},
		want: hook.Result{
			Decision: hook.Allow, Reasons: []permission.Opinion{reason(hook.Allow, "", 2)},
			Input: json.RawMessage(`{"command": "make -n", "timeout": 5, "new": true}`),
		},
	},
	{
		name: "rewrites that agree",
		scripts: []string{
			before(`"updatedInput": {"command": "make a<b", "timeout": 7}`), before(`"updatedInput": {"timeout": 7.0, "command": "make a\u003cb"}`),
		},
		want: hook.Result{Input: json.RawMessage(`{"command": "make a<b", "timeout": 7}`)},
	},
	{
		name: "rewrites in conflict",
		scripts: []string{
			before(`"updatedInput": {"command": "make", "timeout": 1, "flags": {"a": [1, 2]}}`), "true",
			before(`"permissionDecision": "allow", "updatedInput": {"command": "make", "timeout": 2, "flags": {"a": [1, 2]}}`),
		},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{
			reason(hook.Allow, "", 3),
			reason(hook.Deny, `Two hooks give the field "timeout" of the input different values: 1 by the PreToolUse hook "HOOK" (/s.json:1), `+
				`and 2 by the PreToolUse hook "HOOK" (/s.json:3). Only one of them may change it.`, 3),
		}},
	},
	{
		name:    "one takes away what the other sets",
		scripts: []string{before(`"updatedInput": {"command": "x"}`), before(`"updatedInput": {"command": "make", "flags": 1, "timeout": 1000}`)},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{
			reason(hook.Deny, `Two hooks give the field "flags" of the input different values: none by the PreToolUse hook "HOOK" (/s.json:1), `+
				`and 1 by the PreToolUse hook "HOOK" (/s.json:2). Only one of them may change it.`, 2),
		}},
	},
	{
		name: "no rewrite of what is denied", scripts: []string{before(`"updatedInput": {"command": "x"}`), "exit 2"},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "", 2)}},
	},
}

// What hooks say at other events than PreToolUse.
var eventCases = []runCase{
	{
		name: "replaced output", event: hook.PostToolUse,
		scripts: []string{says(`{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "less", "additionalContext": "c"}}`, 0)},
		want:    hook.Result{Output: ptr("less"), Context: []string{"c"}},
	},
	{
		name: "output replaced by data", event: hook.PostToolUse, scripts: []string{says(`{"hookSpecificOutput": {"updatedToolOutput": {"a":[1]}}}`, 0)},
		want: hook.Result{Output: ptr(`{"a":[1]}`)},
	},
	{
		name: "output replaced twice", event: hook.PostToolUse,
		scripts: []string{
			says(`{"hookSpecificOutput": {"updatedToolOutput": "one"}}`, 0), says(`{"hookSpecificOutput": {"updatedToolOutput": "two"}}`, 0),
			says(`{"hookSpecificOutput": {"updatedToolOutput": "two"}}`, 0),
		},
		want: hook.Result{Output: ptr("two"), Notes: []string{"(/s.json:1) replaced the output, and so did a later hook"}},
	},
	{
		name: "an objection afterwards", event: hook.PostToolUse, scripts: []string{says(`{"decision": "block", "reason": "look again"}`, 0), "echo also >&2; exit 2"},
		want: hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Deny, "look again", 1), reason(hook.Deny, "also", 2)}},
	},
	{
		name: "nothing to permit afterwards", event: hook.PostToolUseFailure,
		scripts: []string{says(`{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"a": 1}, "updatedToolOutput": "x"}}`, 0)},
	},
	{
		name: "stop after a batch", event: hook.PostToolBatch, scripts: []string{says(`{"continue": false, "stopReason": "enough"}`, 0)},
		want: hook.Result{Stop: ptr("enough")},
	},
	{
		name: "a request granted", event: hook.PermissionRequest,
		scripts: []string{says(`{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [{}]}}}`, 0)},
		want: hook.Result{
			Decision: hook.Allow, Reasons: []permission.Opinion{reason(hook.Allow, "", 1)}, Input: json.RawMessage(`{"command": "ls"}`),
			Notes: []string{"updatedPermissions"},
		},
	},
	{
		name: "a request refused", event: hook.PermissionRequest,
		scripts: []string{
			says(`{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}`, 0),
			says(`{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no", "interrupt": true}}}`, 0),
		},
		want: hook.Result{
			Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Allow, "", 1), reason(hook.Deny, "no", 2)}, Interrupt: true,
		},
	},
	{
		name: "no interruption by who allows", event: hook.PermissionRequest,
		scripts: []string{says(`{"hookSpecificOutput": {"decision": {"behavior": "allow", "interrupt": true}}}`, 0), "exit 2"},
		want:    hook.Result{Decision: hook.Deny, Reasons: []permission.Opinion{reason(hook.Allow, "", 1), reason(hook.Deny, "", 2)}},
	},
}
