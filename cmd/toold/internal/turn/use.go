package turn

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Use is one tool use of a message.
type Use struct {
	Given   string // the id as the model gave it; the reply repeats it. May be empty
	ID      string // what the daemon gets: given, or one made here. Unique in its message
	Name    string
	Input   string // JSON text as it came, valid or not
	Timeout time.Duration
	caller  json.RawMessage // what the reply repeats of who asks; nil: nothing
	event   bool            // an event of a managed agent, whose reply is one too
	format  dialect.Format  // whose own tool it may call; Silent: it names a tool
	custom  bool            // a call of a tool with free text for input; its reply has another type in the Responses API
	raw     json.RawMessage // as dialect.Use has it
	own     string          // the type of its item, where the API has one for the tool alone; empty: that of any tool
}

// UsesOf returns the tool uses of a message in that format, each with an id for the wire.
func UsesOf(read []dialect.Use, format dialect.Format) []Use {
	if len(dialect.NativeTools(format)) == 0 {
		format = dialect.Silent
	}
	uses := make([]Use, len(read))
	for i, u := range read {
		uses[i] = Use{Given: u.ID, ID: u.ID, Name: u.Name, Input: u.Input, Timeout: u.Timeout, caller: u.Caller, custom: u.Custom, event: u.Event, format: format, own: u.Item, raw: u.Raw}
		if u.ID == "" {
			uses[i].ID = "toold-" + uuid.NewString()
		}
	}
	return uses
}

// Wire returns the message for the wire, which carries only UTF-8: other bytes are replaced by U+FFFD.
func (u Use) Wire(turnID string) *tooldv1.ToolUse {
	if u.format != dialect.Silent {
		return &tooldv1.ToolUse{NativeJson: u.item(), Format: convert.ModelFormat(u.format), TurnId: turnID}
	}
	if u.raw != nil && u.ID == u.Given { // the record has its type
		return &tooldv1.ToolUse{NativeJson: ValidText(string(u.raw)), Format: convert.ModelFormat(dialect.Responses), TurnId: turnID}
	}
	w := &tooldv1.ToolUse{
		Id: ValidText(u.ID), Name: ValidText(u.Name), TurnId: turnID,
		Arguments: &tooldv1.ToolUse_InputJson{InputJson: ValidText(u.Input)},
	}
	if u.Timeout > 0 {
		w.Timeout = durationpb.New(u.Timeout)
	}
	return w
}

// item returns the tool use as the model's API has it. An input that is not JSON is a text in it, which the daemon refuses.
func (u Use) item() string {
	input := json.RawMessage(ValidText(u.Input))
	if !json.Valid(input) {
		input, _ = json.Marshal(string(input))
	}
	text, err := dialect.Marshal(struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{u.format.Type(dialect.Use{Event: u.event}), ValidText(u.ID), ValidText(u.Name), input})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// Request returns the tool use as a message of the stream.
func (u Use) Request(turnID string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: u.Wire(turnID)}}
}

// ValidText returns s with U+FFFD in place of what is not UTF-8.
func ValidText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
