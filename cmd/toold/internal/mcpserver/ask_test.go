package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/cli"
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

// A tool that asks in the middle of its call gets what its own form asks for.
func TestElicitationOfAForm(t *testing.T) {
	q := &tooldv1.Question{
		QuestionId: "q", InputDigest: "d", Title: "mcp__kit__ask", Reason: "The server asks: which?", InputJson: `{"secret":1}`,
		FormSchemaJson: `{"type":"object","properties":{"which":{"type":"string","enum":["a","b"],"default":"a"}},"required":["which"]}`,
	}
	form := elicitation(q, "")
	if text, err := json.Marshal(form.RequestedSchema); err != nil || string(text) != q.GetFormSchemaJson() {
		t.Errorf("the form is %s, %v", text, err)
	}
	if !strings.HasPrefix(form.Message, "This asks:\nmcp__kit__ask") || strings.Contains(form.Message, "secret") {
		t.Errorf("the message is %q", form.Message)
	}
	for _, c := range []struct {
		result *mcp.ElicitResult
		want   tooldv1.Decision
		input  string
	}{
		{&mcp.ElicitResult{Action: "accept", Content: map[string]any{"which": "b"}}, tooldv1.Decision_DECISION_ALLOW, `{"which":"b"}`},
		{&mcp.ElicitResult{Action: "decline"}, tooldv1.Decision_DECISION_DENY, ""},
		{&mcp.ElicitResult{Action: "cancel"}, tooldv1.Decision_DECISION_DENY, ""},
	} {
		if answer := answerOf(q, c.result, nil); answer.GetDecision() != c.want || answer.GetUpdatedInputJson() != c.input {
			t.Errorf("%s gives %v", c.result.Action, answer)
		}
	}
}

// No form asks for a password: the client gets to know where it is answered.
func TestNoFormForASecret(t *testing.T) {
	logged := make(chan any, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			logged <- "it was asked"
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- r.Params.Data },
	})
	near, far := mcp.NewInMemoryTransports()
	server, err := mcp.NewServer(&mcp.Implementation{Name: "server"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	b := &bridge{Options: Options{Console: &cli.Console{Stderr: os.Stderr}}, client: server, ctx: t.Context(), elicits: map[string]*elicited{}}
	b.ask(&tooldv1.Question{QuestionId: "secret-1", InputDigest: "d", FormSchemaJson: "{}", Secret: &tooldv1.SecretPrompt{Program: "/usr/bin/ssh\n"}}, "")
	if text, _ := (<-logged).(string); !strings.HasPrefix(text, "/usr/bin/ssh") || !strings.Contains(text, `"toold attach"`) || strings.Contains(text, "\n") {
		t.Errorf("it is told %q", text)
	}
	b.asks.Wait()
}
