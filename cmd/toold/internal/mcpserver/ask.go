package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// rootsPatience is how long a client may take to name its roots before the flags decide.
	rootsPatience = 5 * time.Second
	// mostAsked is how many bytes of a part of a question are shown, which is more than a user reads in a form.
	mostAsked = 6 << 10
	// allRules stands for all rules that a question offers.
	allRules = "all of them"
	once     = "no"
)

// An elicited is a question that stands before the client.
type elicited struct {
	question *tooldv1.Question
	stop     context.CancelFunc
	answered bool // an answer was sent; the daemon may still refuse it
}

// canElicit reports whether a client can show a form to its user.
func canElicit(client *mcp.ServerSession) bool {
	form := capabilities(client).Elicitation
	return form != nil && (form.Form != nil || form.URL == nil) // neither is how older clients say that they have forms
}

// capabilities returns what a client has said that it can do.
func capabilities(client *mcp.ServerSession) *mcp.ClientCapabilities {
	if params := client.InitializeParams(); params != nil && params.Capabilities != nil {
		return params.Capabilities
	}
	return &mcp.ClientCapabilities{}
}

// ask puts a question to the client, also one about a call that another client has sent to the session. One that is
// open there already is not put again: the daemon repeats those that are open when a stream is resumed.
func (b *bridge) ask(q *tooldv1.Question, note string) {
	client := b.client
	if q.GetSecret() != nil {
		b.leaveToOthers(q)
		return
	}
	if known := b.elicits[q.GetQuestionId()]; known != nil && !known.answered || !canElicit(client) {
		return
	}
	ctx, stop := context.WithCancel(b.ctx)
	if c := b.calls[q.GetToolUseId()]; c != nil && c.ctx != nil {
		ctx, stop = context.WithCancel(c.ctx) // the question goes to the client with what else comes of the call
	}
	a := &elicited{question: q, stop: stop}
	b.elicits[q.GetQuestionId()] = a
	b.asks.Go(func() {
		defer stop()
		result, err := client.Elicit(ctx, elicitation(q, note))
		if ctx.Err() != nil {
			return // withdrawn
		}
		answer := answerOf(q, result, err)
		b.do(ctx, func() {
			a.answered = true
			if err := b.session.Send(turn.AnswerRequest(answer)); err != nil {
				b.Console.Noted("an answer was not sent: %s", cli.Describe(err))
			}
		})
	})
}

// leaveToOthers leaves a question about a hidden line to other clients: what is typed into a form is shown, and passes
// through the client and perhaps its model.
func (b *bridge) leaveToOthers(q *tooldv1.Question) {
	text := unasked(q)
	b.Console.Say("%s", text)
	b.log("warning", text)
}

// unasked is what the client gets instead of a form.
func unasked(q *tooldv1.Question) string {
	return terminal.VisibleLine(q.GetSecret().GetProgram()) + " waits for a line such as a password, which no form may carry. Answer it in a terminal with \"toold attach\", or end the program with KillShell."
}

// withdraw takes questions back from the client.
func (b *bridge) withdraw(which func(*elicited) bool) {
	for id, a := range b.elicits {
		if which(a) {
			a.stop()
			delete(b.elicits, id)
		}
	}
}

// elicitation is the form of a question; note is why its last answer did not count.
func elicitation(q *tooldv1.Question, note string) *mcp.ElicitParams {
	if form := formOf(q); form != nil {
		return &mcp.ElicitParams{Mode: "form", Message: elicitText(q, note), RequestedSchema: form}
	}
	decision, message := "allow: run this call. deny: do not.", "With deny: what the model should know or do instead."
	if q.GetConnection() != nil {
		decision, message = "allow: let this call connect to the host. deny: refuse the host for the rest of the call, which goes on.", "Is not used here."
	}
	properties := map[string]any{
		"decision": formChoice("Decision", decision, []string{"allow", "deny"}, []string{"Allow", "Deny"}, ""),
		"message":  map[string]any{"type": "string", "title": "Message", "description": message},
	}
	if offered := q.GetSuggestions(); len(offered) > 0 {
		words, titles := []string{once}, []string{"No, this call alone"}
		for _, x := range offered {
			words, titles = append(words, ruleWord(x)), append(titles, "Always: "+ruleWord(x))
		}
		if len(offered) > 1 {
			words, titles = append(words, allRules), append(titles, "Always: all of these rules")
		}
		properties["remember"] = formChoice("Remember", "With allow: a rule that settles the like from now on.", words, titles, once)
		words, titles = nil, nil
		for _, x := range terminal.KeepersFor(q, terminal.Keepers) {
			words, titles = append(words, x.Word), append(titles, x.Meaning)
		}
		properties["where"] = formChoice("Where", "For whom the rule is kept.", words, titles, words[0])
	}
	return &mcp.ElicitParams{
		Mode: "form", Message: elicitText(q, note),
		RequestedSchema: map[string]any{"type": "object", "properties": properties, "required": []string{"decision"}},
	}
}

// formOf returns the form in which a tool asks for something in the middle of its call; nil: a yes or a no is all.
func formOf(q *tooldv1.Question) json.RawMessage {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	form := json.RawMessage(q.GetFormSchemaJson())
	if json.Unmarshal(form, &schema) != nil || len(schema.Properties) == 0 {
		return nil
	}
	return form
}

// formChoice is a field with a list to choose from, in the form that all versions of the protocol have.
func formChoice(title, description string, words, titles []string, unless string) map[string]any {
	field := map[string]any{"type": "string", "title": title, "description": description, "enum": words, "enumNames": titles}
	if unless != "" {
		field["default"] = unless
	}
	return field
}

func ruleWord(x *tooldv1.Suggestion) string {
	return x.GetList() + " " + terminal.VisibleLine(x.GetRule())
}

// elicitText returns all that the user should see before a yes.
func elicitText(q *tooldv1.Question, note string) string {
	var parts []string
	add := func(head, text string) {
		if text = terminal.VisibleText(strings.TrimSpace(text)); text != "" {
			parts = append(parts, head+ellipsis.Bytes(text, mostAsked))
		}
	}
	add("The last answer did not count: ", note)
	form, head := formOf(q) != nil, "May this run?\n"
	switch {
	case form:
		head = "This asks:\n"
	case q.GetConnection() != nil:
		head = "May this connect?\n"
	}
	add(head, q.GetTitle())
	add("", q.GetReason())
	add("What it would do:\n", strings.Join(q.GetEffects(), "\n"))
	if q.GetDiff() == "" && !form {
		add("Input: ", q.GetInputJson())
	}
	add("", q.GetDiff())
	if q.GetExpires() != nil {
		add("", "This question is open until "+q.GetExpires().AsTime().Local().Format(time.TimeOnly)+".")
	}
	return strings.Join(parts, "\n\n")
}

// answerOf reads what came back. Whatever is not plainly a yes is a no.
func answerOf(q *tooldv1.Question, result *mcp.ElicitResult, err error) *tooldv1.Answer {
	answer := &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: tooldv1.Decision_DECISION_DENY}
	said := func(field string) string {
		word, _ := result.Content[field].(string)
		return word
	}
	switch {
	case err != nil:
		answer.Message = ellipsis.Bytes("The client could not ask: "+terminal.VisibleText(err.Error()), 1000)
	case result.Action == "cancel":
		answer.Message = "The question was dismissed without an answer."
	case result.Action == "accept" && formOf(q) != nil:
		filled, err := json.Marshal(result.Content)
		if err != nil {
			answer.Message = "The answer is no JSON."
			break
		}
		answer.Decision, answer.UpdatedInputJson = tooldv1.Decision_DECISION_ALLOW, string(filled)
	case result.Action == "accept" && said("decision") == "allow":
		answer.Decision = tooldv1.Decision_DECISION_ALLOW
		answer.Remember = terminal.Remembered(slices.DeleteFunc(slices.Clone(q.GetSuggestions()), func(x *tooldv1.Suggestion) bool {
			which := said("remember")
			return which != allRules && which != ruleWord(x)
		}), said("where"))
	case result.Action == "accept":
		answer.Message = said("message")
	}
	return answer
}

// rootsOf asks the client for its roots. Those that are not folders here are left out and reported.
func rootsOf(ctx context.Context, console *cli.Console, client *mcp.ServerSession) (roots []string) {
	if capabilities(client).RootsV2 == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, rootsPatience)
	defer stop()
	list, err := client.ListRoots(ctx, nil)
	if err != nil {
		console.Say("the client names no roots: %v", err)
		return nil
	}
	for _, root := range list.Roots {
		path, err := folderOf(root.URI)
		if err != nil {
			console.Say("the client's root %s is left out: %v", root.URI, err)
			continue
		}
		if !slices.Contains(roots, path) {
			roots = append(roots, path)
		}
	}
	return roots
}

// folderOf returns the folder that a file URI names.
func folderOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", err
	}
	if u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0) {
		return "", errors.New("it is no file:///... of this machine")
	}
	info, err := os.Stat(u.Path)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", errors.New("it is no folder")
	}
	return filepath.Clean(u.Path), nil
}
