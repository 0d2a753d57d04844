package main

import (
	"testing"

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
	uses := []answered{
		{use{given: "b", id: "b"}, textResult(tooldv1.Outcome_OUTCOME_OK, "a < b && c\n")},
		{use{given: "a", id: "a"}, textResult(tooldv1.Outcome_OUTCOME_DENIED, "No.")},
		{use{given: "", id: "made"}, mute},
		{use{given: "i", id: "i", custom: true}, image},
		{use{given: "e", id: "e"}, &tooldv1.ToolResult{}},
	}
	for name, c := range map[string]struct {
		reply func() ([]byte, error)
		want  string
	}{
		"anthropic": {
			func() ([]byte, error) { return anthropicReply(uses) },
			`{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"a < b && c\n"}],"is_error":false},` +
				`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"No."}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"made","content":[{"type":"text","text":"It broke."}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"i","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},{"type":"text","text":"x file:///x"}],"is_error":false},` +
				`{"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":"(no output)"}],"is_error":false}]}` + "\n",
		},
		"openai chat": {
			func() ([]byte, error) { return openaiReply(chat, uses[:2]) },
			`[{"role":"tool","tool_call_id":"b","content":"a < b && c\n"},{"role":"tool","tool_call_id":"a","content":"No."}]` + "\n",
		},
		"openai responses": {
			func() ([]byte, error) { return openaiReply(responses, uses[3:]) },
			`[{"type":"custom_tool_call_output","call_id":"i","output":"[image, image/png, 3 bytes: not shown as text]\nx file:///x"},` +
				`{"type":"function_call_output","call_id":"e","output":"(no output)"}]` + "\n",
		},
		"anthropic without uses": {func() ([]byte, error) { return anthropicReply(nil) }, `{"role":"user","content":[]}` + "\n"},
		"openai without uses":    {func() ([]byte, error) { return openaiReply(silent, nil) }, "[]\n"},
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
