package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestReplies(t *testing.T) {
	image := &tooldv1.ToolResult{Content: []*tooldv1.Content{
		{Block: &tooldv1.Content_Image{Image: &tooldv1.Blob{MediaType: "image/png", Data: []byte("png")}}},
		{Block: &tooldv1.Content_Link{Link: &tooldv1.Link{Uri: "file:///x", Name: "x"}}},
	}}
	mute := &tooldv1.ToolResult{
		IsError: true, Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: " \n"}}},
		Error: &tooldv1.Error{Code: "internal", Message: "It broke."},
	}
	uses := []Answered{
		{Use{Given: "b", ID: "b"}, textResult(tooldv1.Outcome_OUTCOME_OK, "a < b && c\n")},
		{Use{Given: "a", ID: "a"}, textResult(tooldv1.Outcome_OUTCOME_DENIED, "No.")},
		{Use{Given: "", ID: "made"}, mute},
		{Use{Given: "i", ID: "i", custom: true}, image},
		{Use{Given: "e", ID: "e"}, &tooldv1.ToolResult{}},
	}
	for name, c := range map[string]struct {
		reply func() ([]byte, error)
		want  string
	}{
		"anthropic": {
			func() ([]byte, error) { return AnthropicReply(dialect.Anthropic, uses) },
			`{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"a < b && c\n"}],"is_error":false},` +
				`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"No."}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"made","content":[{"type":"text","text":"It broke."}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"i","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},{"type":"text","text":"x file:///x"}],"is_error":false},` +
				`{"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":"(no output)"}],"is_error":false}]}` + "\n",
		},
		"openai chat": {
			func() ([]byte, error) { return OpenAIReply(dialect.Chat, uses[:2]) },
			`[{"role":"tool","tool_call_id":"b","content":"a < b && c\n"},{"role":"tool","tool_call_id":"a","content":"No."}]` + "\n",
		},
		"openai responses": {
			func() ([]byte, error) { return OpenAIReply(dialect.Responses, uses[3:]) },
			`[{"type":"custom_tool_call_output","call_id":"i","output":[{"type":"input_image","image_url":"data:image/png;base64,cG5n"},{"type":"input_text","text":"x file:///x"}]},` +
				`{"type":"function_call_output","call_id":"e","output":"(no output)"}]` + "\n",
		},
		"anthropic without uses": {func() ([]byte, error) { return AnthropicReply(dialect.Anthropic, nil) }, `{"role":"user","content":[]}` + "\n"},
		"openai without uses":    {func() ([]byte, error) { return OpenAIReply(dialect.Silent, nil) }, "[]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.reply()
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func textResult(o tooldv1.Outcome, text string) *tooldv1.ToolResult {
	return &tooldv1.ToolResult{
		Outcome: o, IsError: o != tooldv1.Outcome_OUTCOME_OK,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: strings.ToValidUTF8(text, "\uFFFD")}}},
	}
}

// FuzzReplies holds that whatever message is read, each form of reply is JSON that answers its uses in order.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","name":"LS","input":{}}`, `{"content":[{"type":"tool_use","id":"t","name":"LS","input":{}}]}`,
		`{"output":[{"type":"function_call","call_id":"c","name":"LS","arguments":"{}"},{"type":"custom_tool_call"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r dialect.Reader
		read, err := r.Feed(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		var uses []Answered
		for _, u := range UsesOf(read, dialect.Silent) {
			if u.ID == "" || seen[u.ID] {
				t.Fatalf("the id %q is empty or not the only one", u.ID)
			}
			seen[u.ID] = true
			uses = append(uses, Answered{u, textResult(tooldv1.Outcome_OUTCOME_OK, u.Input)})
		}
		checkReplies(t, uses)
	})
}

// checkReplies checks that each form of reply is JSON that has an entry for each use.
func checkReplies(t *testing.T, uses []Answered) {
	t.Helper()
	for name, reply := range map[string]func([]Answered) ([]byte, error){
		"anthropic": func(uses []Answered) ([]byte, error) { return AnthropicReply(dialect.Anthropic, uses) },
		"chat":      func(uses []Answered) ([]byte, error) { return OpenAIReply(dialect.Chat, uses) },
		"responses": ResponsesReply,
	} {
		text, err := reply(uses)
		if err != nil || !json.Valid(text) {
			t.Fatalf("the reply as %s is no JSON: %v\n%s", name, err, text)
		}
		if got := len(repliedIDs(t, name, text)); got != len(uses) {
			t.Fatalf("the reply answers %d of %d uses:\n%s", got, len(uses), text)
		}
	}
}

func repliedIDs(t *testing.T, form string, text []byte) (ids []string) {
	t.Helper()
	type entry struct {
		ToolUseID  string `json:"tool_use_id"`
		ToolCallID string `json:"tool_call_id"`
		CallID     string `json:"call_id"`
	}
	var entries []entry
	if form == "anthropic" {
		var user struct{ Content []entry }
		if err := json.Unmarshal(text, &user); err != nil {
			t.Fatal(err)
		}
		entries = user.Content
	} else if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.ToolUseID+e.ToolCallID+e.CallID)
	}
	return ids
}
