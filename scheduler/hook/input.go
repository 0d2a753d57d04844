// The event that a hook receives, as JSON with the field names that existing hooks expect.

package hook

import (
	"bytes"
	"encoding/json"
	"strings"
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
