// A tool use on its way from a model's message to the daemon. It does not know how messages are read.

package main

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A use is one tool use.
type use struct {
	given   string // the id as the model gave it; the reply repeats it. May be empty
	id      string // what the daemon gets: given, or one made here. Unique in its message
	name    string
	input   string // JSON text as it came, valid or not
	timeout time.Duration
	custom  bool // a call of a tool with free text for input; its reply has another type in the Responses API
}

// usesOf returns each tool use of a message an id for the wire.
func usesOf(read []dialect.Use) []use {
	uses := make([]use, len(read))
	for i, u := range read {
		uses[i] = use{given: u.ID, id: u.ID, name: u.Name, input: u.Input, timeout: u.Timeout, custom: u.Custom}
		if u.ID == "" {
			uses[i].id = "toold-" + uuid.NewString()
		}
	}
	return uses
}

// wire is the use as the wire has it, which carries UTF-8 only.
func (u use) wire(turnID string) *tooldv1.ToolUse {
	w := &tooldv1.ToolUse{
		Id: validText(u.id), Name: validText(u.name), TurnId: turnID,
		Arguments: &tooldv1.ToolUse_InputJson{InputJson: validText(u.input)},
	}
	if u.timeout > 0 {
		w.Timeout = durationpb.New(u.timeout)
	}
	return w
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// turnStateOf returns the state of a turn that begins with uses and whose working directory is dir.
func turnStateOf(turnID, dir string, uses []use) *terminal.TurnState {
	b := terminal.NewTurnState(turnID, dir)
	for _, u := range uses {
		b.Add(u.id, u.name, u.input)
	}
	return b
}
