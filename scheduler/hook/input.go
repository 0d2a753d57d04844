// What a hook is told. Everything here goes out as JSON, in the names that hooks know. Which event has which fields, and
// how the text reaches the hook, is not known here.

package hook

import (
	"bytes"
	"encoding/json"
	"strings"
)

// An Input tells hooks of one event. Which fields an event has is for who fills it in: empty ones are left out, but for
// the first two and the event.
type Input struct {
	Session    string `json:"session_id"`
	Dir        string `json:"cwd"`
	Transcript string `json:"transcript_path"` // no such file is kept; hooks expect the field
	Mode       string `json:"permission_mode,omitempty"`
	Event      string `json:"hook_event_name"`

	Tool      string          `json:"tool_name,omitempty"`
	ToolInput json.RawMessage `json:"tool_input,omitempty"` // an object; paths absolute
	ToolUse   string          `json:"tool_use_id,omitempty"`

	Response   json.RawMessage `json:"tool_response,omitempty"` // PostToolUse
	DurationMS *int64          `json:"duration_ms,omitempty"`   // PostToolUse, PostToolUseFailure; without waiting
	Error      string          `json:"error,omitempty"`         // PostToolUseFailure: what the model is told
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

// A Call is one call of a batch that has ended.
type Call struct {
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	ToolUse  string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"`
}

// A Suggestion is a change of the rules that would settle the like of a call from now on.
type Suggestion struct {
	Type        string          `json:"type"`
	Rules       []SuggestedRule `json:"rules"`
	Behavior    string          `json:"behavior"`
	Destination string          `json:"destination"`
}

// A SuggestedRule is a rule in its two parts.
type SuggestedRule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

// Suggest puts a rule that would allow a call, such as "Bash(npm test *)", into the form that hooks know. It would be
// kept in the workspace's local settings.
func Suggest(rule string) Suggestion {
	tool, content, _ := strings.Cut(rule, "(")
	return Suggestion{
		Type: "addRules", Behavior: "allow", Destination: "localSettings",
		Rules: []SuggestedRule{{Tool: tool, Content: strings.TrimSuffix(content, ")")}},
	}
}

// encode returns the JSON that a hook reads, as one line. Hooks search it as text, so < > & stand as they are.
func (in *Input) encode() ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	err := to.Encode(in)
	return text.Bytes(), err
}
