package terminal

import tooldv1 "github.com/toold/toold/gen/toold/v1"

func textResult(o tooldv1.Outcome, text string) *tooldv1.ToolResult {
	return &tooldv1.ToolResult{
		Outcome: o, IsError: o != tooldv1.Outcome_OUTCOME_OK,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: text}}},
	}
}
