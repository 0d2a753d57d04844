// The event that a hook receives, as JSON with the field names that existing hooks expect, and with marks instead of secrets. If a
// hook rewrites an input, the marks in it are replaced by the secrets again. Package redact decides what is a secret.

package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/tools/text/ellipsis"
	"github.com/toold/toold/tools/text/redact"
)

// An Input is one event for hooks. The caller decides which fields an event has: empty ones are
// omitted, except for the first two and the event.
type Input struct {
	Session    string `json:"session_id"`
	Dir        string `json:"cwd"`
	Transcript string `json:"transcript_path"` // there is no such file; hooks expect the field
	Mode       string `json:"permission_mode,omitempty"`
	Event      string `json:"hook_event_name"`

	Tool      string          `json:"tool_name,omitempty"`
	ToolInput json.RawMessage `json:"tool_input,omitempty"` // an object; paths absolute
	ToolUse   string          `json:"tool_use_id,omitempty"`

	Response   json.RawMessage `json:"tool_response,omitempty"` // PostToolUse
	DurationMS *int64          `json:"duration_ms,omitempty"`   // PostToolUse, PostToolUseFailure; without waiting
	Error      string          `json:"error,omitempty"`         // PostToolUseFailure: the error that the model gets
	Interrupt  *bool           `json:"is_interrupt,omitempty"`  // PostToolUseFailure

	Suggestions []Suggestion `json:"permission_suggestions,omitempty"` // PermissionRequest
	Reason      string       `json:"reason,omitempty"`                 // PermissionDenied, SessionEnd
	Calls       []Call       `json:"tool_calls,omitempty"`             // PostToolBatch

	Source           string `json:"source,omitempty"`            // SessionStart: startup or resume
	OldDir           string `json:"old_cwd,omitempty"`           // CwdChanged
	NewDir           string `json:"new_cwd,omitempty"`           // CwdChanged
	Message          string `json:"message,omitempty"`           // Notification
	NotificationType string `json:"notification_type,omitempty"` // Notification
}

// A Call is one ended call of a batch.
type Call struct {
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	ToolUse  string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"`
}

// A Suggestion is a change of the rules that would decide similar calls from now on.
type Suggestion struct {
	Type        string          `json:"type"`
	Rules       []SuggestedRule `json:"rules"`
	Behavior    string          `json:"behavior"`
	Destination string          `json:"destination"`
}

// A SuggestedRule is a rule as tool and content.
type SuggestedRule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

// Suggest converts a rule that would allow a call, such as "Bash(npm test *)", to the form that
// hooks expect. Its destination is the workspace's local settings.
func Suggest(rule string) Suggestion {
	tool, content, _ := strings.Cut(rule, "(")
	return Suggestion{
		Type: "addRules", Behavior: "allow", Destination: "localSettings",
		Rules: []SuggestedRule{{Tool: tool, Content: strings.TrimSuffix(content, ")")}},
	}
}

// encoded returns a value as JSON in one line. Hooks search it as text, so < > & are not escaped.
func encoded(value any) ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	err := to.Encode(value)
	return text.Bytes(), err
}

// A telling is an event as a hook receives it.
type telling struct {
	text  []byte
	err   error // why it cannot be sent
	input veil
}

// telling returns the event as the administrator's hooks, or the others, receive it.
func (r Runner) telling(in Input, managed bool) telling {
	told, secrets := in, redact.New(nil, r.ManagedPatterns)
	if !managed {
		secrets = redact.New(r.Filter.Secrets(r.Environ), r.Patterns)
	}
	if !r.Plain {
		told = in.without(secrets)
	}
	text, err := encoded(&told)
	return telling{text, err, veil{in.ToolInput, told.ToolInput}}
}

// without returns the event with marks instead of secrets. Names and paths stay: hooks need them.
func (in Input) without(secrets *redact.Redactor) Input {
	in.ToolInput, in.Response = secrets.JSON(in.ToolInput), secrets.JSON(in.Response)
	in.Error, in.Reason, in.Message = secrets.Text(in.Error), secrets.Text(in.Reason), secrets.Text(in.Message)
	in.Calls = slices.Clone(in.Calls)
	for i := range in.Calls {
		call := &in.Calls[i]
		call.Input, call.Response = secrets.JSON(call.Input), secrets.JSON(call.Response)
	}
	in.Suggestions = slices.Clone(in.Suggestions)
	for i := range in.Suggestions {
		rules := slices.Clone(in.Suggestions[i].Rules)
		for j := range rules {
			rules[j].Content = secrets.Text(rules[j].Content)
		}
		in.Suggestions[i].Rules = rules
	}
	return in
}

// A veil is a call's input, and what hooks receive of it.
type veil struct{ given, told json.RawMessage }

// lift replaces the marks of a rewritten input: fields that are equal to what the hook received get
// their original values. It returns, as a clause, why that is impossible; empty: it is done. A mark
// in any other field would be written instead of the secret.
func (v veil) lift(input object) string {
	if input == nil || bytes.Equal(v.given, v.told) {
		return ""
	}
	var given, told object
	_, _ = json.Unmarshal(v.given, &given), json.Unmarshal(v.told, &told) // an input that is not an object has no fields
	for _, name := range slices.Sorted(maps.Keys(input)) {
		switch {
		case told[name] != nil && equal(told, input, name):
			input[name] = given[name]
		case redact.Marked(string(input[name])) && (!bytes.Equal(given[name], told[name]) || !redact.Marked(string(given[name]))):
			return fmt.Sprintf("gives the field %q of the input a value with a mark in it that begins with %q: hooks are not told the secret behind it, and the mark would be written in its place; "+
				"a field with a mark must be returned unchanged, unless the user's settings have \"redactHooks\": false", ellipsis.Bytes(name, 200), "[redacted: ")
		}
	}
	return ""
}
