package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A question about a host is put as one, and its rule is not offered for files of the workspace.
func TestElicitationAboutHost(t *testing.T) {
	q := &tooldv1.Question{
		QuestionId: "host-1", InputDigest: "d", Title: "Bash(npm install): connect to a.example:443?", Reason: "It waits.", FormSchemaJson: "{}",
		InputJson: `{"host":"a.example"}`, Connection: &tooldv1.Connection{Host: "a.example", Port: 443, Program: "npm"},
		Suggestions: []*tooldv1.Suggestion{{Rule: "WebFetch(domain:a.example)", List: "allow"}},
	}
	form := elicitation(q, "")
	if !strings.HasPrefix(form.Message, "May this connect?\nBash(npm install): connect to a.example:443?") {
		t.Errorf("the message is %q", form.Message)
	}
	text, err := json.Marshal(form.RequestedSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct {
			Description string
			Enum        []string
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if where := schema.Properties["where"].Enum; !slices.Equal(where, []string{"session", "user"}) {
		t.Errorf("a rule is offered for %q", where)
	}
	if said := schema.Properties["decision"].Description; !strings.Contains(said, "connect to the host") {
		t.Errorf("the decision is described as %q", said)
	}
	answer := answerOf(q, &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow", "remember": "allow WebFetch(domain:a.example)", "where": "user"}}, nil)
	if r := answer.GetRemember(); len(r) != 1 || r[0].GetScope() != tooldv1.Scope_SCOPE_USER || answer.GetDecision() != tooldv1.Decision_DECISION_ALLOW {
		t.Errorf("the answer is %v", answer)
	}
}
