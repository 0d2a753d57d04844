package hook

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/scheduler/permission"
)

// Whatever a hook prints, and however it ends: it allows only in so many words, and what it says is fit to be shown.
func FuzzEnding(f *testing.F) {
	f.Add(`{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}}`, "", 0, uint8(0))
	f.Add(`{"decision": "approve", "reason": "r", "continue": false, "stopReason": 5}`, "because", 2, uint8(0))
	f.Add(`{"hookSpecificOutput": {"decision": {"behavior": "allow", "message": null}}}`, "\xff", 1, uint8(4))
	f.Add(`{"hookSpecificOutput": {"updatedToolOutput": [1, "x"]}, "systemMessage": "\ud800"}`, "", 127, uint8(1))
	f.Add(" \n{\"Decision\": \"approve\"}", "", 0, uint8(100))
	f.Fuzz(func(t *testing.T, out, printed string, code int, n uint8) {
		event := Events[int(n)%len(Events)]
		e := ending{out: out, err: printed, code: code, cut: n&16 != 0}
		if n&32 != 0 {
			e.failure = "was ended by SIGKILL"
		}
		h := &Hook{Event: event, Command: "c", Block: n&64 != 0}
		one := e.hear(h, event, veil{})
		in := &Input{Event: event, ToolInput: json.RawMessage(`{"a": 0}`)}
		r := join([]*Hook{h}, []heard{one}, in)
		switch {
		case r.Decision == Allow && (!saysAllow(out) || code == 2 || e.failure != "" || !permits(event) || h.Block && len(r.Failures) > 0):
			t.Errorf("it is allowed by %q", out)
		case r.Decision != Deny && code == 2:
			t.Errorf("exit code 2 comes to %v", r.Decision)
		case r.Decision != Deny && h.Block && permits(event) && len(r.Failures) > 0:
			t.Errorf("%q, and it comes to %v", r.Failures, r.Decision)
		case h.Block && event == PostToolUse && len(r.Failures) > 0 && (r.Output == nil || *r.Output != *h.withholds()):
			t.Errorf("%q, and the output becomes %v", r.Failures, r.Output)
		case r.Decision == Deny && r.Input != nil:
			t.Errorf("a denied call gets the input %s", r.Input)
		}
		for _, text := range texts(r) {
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxText+100 {
				t.Errorf("a text that is not fit to be shown: %q", text)
			}
		}
	})
}

// saysAllow reads an answer in another way than the package does.
func saysAllow(out string) bool {
	var whole map[string]any
	_ = json.Unmarshal([]byte(strings.ToValidUTF8(strings.TrimSpace(out), "\uFFFD")), &whole) // 1e999 leaves a part
	specific, _ := whole["hookSpecificOutput"].(map[string]any)
	decision, _ := specific["decision"].(map[string]any)
	return whole["decision"] == "approve" || specific["permissionDecision"] == "allow" || decision["behavior"] == "allow"
}

func texts(r Result) []string {
	all := append(append(append([]string{}, r.Context...), r.System...), append(r.Failures, r.Notes...)...)
	for _, reason := range r.Reasons {
		all = append(all, reason.Reason)
	}
	if r.Stop != nil {
		all = append(all, *r.Stop)
	}
	if r.Output != nil && len(*r.Output) <= maxText {
		all = append(all, *r.Output)
	}
	return all
}

// One hook's input is taken whole; of two, the order decides nothing.
func FuzzRewrite(f *testing.F) {
	f.Add(`{"a": 1, "b": "x"}`, `{"a": 2, "b": "x"}`, `{"a": 1.0, "c": [null]}`)
	f.Add(`{"a": 1}`, `{"a": 2}`, `{"a": 3}`)
	f.Add(`{"a": 1}`, `{}`, `{"a": 1e0, "A": {"a": 1}}`)
	f.Add(`[]`, `{"\u0061": "<&>"}`, `{"a": "\u003c&>"}`)
	f.Fuzz(func(t *testing.T, original, first, second string) {
		a, b := rewritten(t, first), rewritten(t, second)
		hooks := []*Hook{{Origin: permission.Origin{Line: 1}}, {Origin: permission.Origin{Line: 2}}}
		given := json.RawMessage(original)
		alone, reason := rewrite(given, hooks[:1], []heard{a})
		if want := value(t, []byte(first)); reason != nil || alone != nil && !reflect.DeepEqual(value(t, alone), want) ||
			alone == nil && json.Valid(given) && reflect.TypeOf(value(t, given)) == reflect.TypeOf(want) && !reflect.DeepEqual(value(t, given), want) {
			t.Errorf("%s for %s gives %s, %v", first, original, alone, reason)
		}
		one, conflict := rewrite(given, hooks, []heard{a, b})
		other, clash := rewrite(given, hooks, []heard{b, a})
		if string(one) != string(other) && !reflect.DeepEqual(value(t, one), value(t, other)) || (conflict == nil) != (clash == nil) {
			t.Errorf("%s and %s for %s give %s, %v in one order and %s, %v in the other", first, second, original, one, conflict, other, clash)
		}
	})
}

func rewritten(t *testing.T, text string) heard {
	var input object
	if json.Unmarshal([]byte(text), &input) != nil || input == nil {
		t.Skip("no object")
	}
	value(t, []byte(text))
	return heard{answer: answer{input: input}}
}

// value reads JSON whose numbers are not beyond floating point.
func value(t *testing.T, text []byte) (v any) {
	if len(text) > 0 && json.Unmarshal(text, &v) != nil {
		t.Skip("beyond what can be compared")
	}
	return v
}
