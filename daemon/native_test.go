package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/tooltest"
)

// streams are messages in which a model asks for two calls of Write, as each API sends them, and the items that answer.
var streams = map[tooldv1.ModelFormat]struct {
	events  []string
	answers map[string]string // by the call's id; %s: the text of the result, as JSON
}{
	tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC: {
		[]string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"one","name":"Write","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":\"ROOT/one\","}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"content\":\"1\"}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"two","name":"Write","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":\"ROOT/two\",\"content\":\"2\"}"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
			`{"type":"message_stop"}`,
		},
		map[string]string{
			"one": `{"type":"tool_result","tool_use_id":"one","content":[{"type":"text","text":%s}],"is_error":false}`,
			"two": `{"type":"tool_result","tool_use_id":"two","content":[{"type":"text","text":%s}],"is_error":false}`,
		},
	},
	tooldv1.ModelFormat_MODEL_FORMAT_OPENAI_CHAT: {
		[]string{
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"Write","arguments":""}}]}}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"file_path\":\"ROOT/one\",\"content\":\"1\"}"}}]}}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"two","type":"function","function":{"name":"Write","arguments":"{\"file_path\":\"ROOT/two\",\"content\":\"2\"}"}}]}}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`[DONE]`,
		},
		map[string]string{"one": `{"role":"tool","tool_call_id":"one","content":%s}`, "two": `{"role":"tool","tool_call_id":"two","content":%s}`},
	},
	tooldv1.ModelFormat_MODEL_FORMAT_OPENAI_RESPONSES: {
		[]string{
			`{"type":"response.created","response":{"id":"resp_1"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"one","name":"Write","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"one","name":"Write","arguments":"{\"file_path\":\"ROOT/one\",\"content\":\"1\"}","caller":{"type":"program"},"status":"completed"}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"two","name":"Write","arguments":"{\"file_path\":\"ROOT/two\",\"content\":\"2\"}","status":"completed"}}`,
			`{"type":"response.completed","response":{"id":"resp_1"}}`,
		},
		map[string]string{
			"one": `{"type":"function_call_output","call_id":"one","output":%s,"caller":{"type":"program"}}`,
			"two": `{"type":"function_call_output","call_id":"two","output":%s}`,
		},
	},
}

// event sends the event of a model's message.
func (c *conversation) event(turn string, index int, text string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ModelEvent{
		ModelEvent: &tooldv1.ModelEvent{TurnId: turn, Index: uint64(index), Json: text},
	}})
}

// natively joins as a client that wants results in the model's form, behind the record after if it is not negative.
func (h *house) natively(session string, after int64) (*conversation, *tooldv1.Attached) {
	h.t.Helper()
	c := h.converse()
	a := &tooldv1.Attach{SessionId: session, Roots: []string{h.root}, Options: free(), Capabilities: &tooldv1.Capabilities{NativeResults: true}}
	if after >= 0 {
		a.AfterSeq = new(uint64(after))
	}
	return c, c.attach(a)
}

// eventsIn returns the events of a message for the house's root.
func (h *house) eventsIn(format tooldv1.ModelFormat) (events []string) {
	for _, e := range streams[format].events {
		events = append(events, strings.ReplaceAll(e, "ROOT", h.root))
	}
	return events
}

// wantAnswers checks the items of the results, and that the same results have content for who asks for none.
func wantAnswers(t *testing.T, format tooldv1.ModelFormat, native, plain map[string]*tooldv1.ToolResult) {
	t.Helper()
	if len(native) != 2 {
		t.Fatalf("%d results, want 2", len(native))
	}
	for id, form := range streams[format].answers {
		text, err := json.Marshal(plain[id].GetContent()[0].GetText())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := native[id].GetNativeJson(), fmt.Sprintf(form, text); got != want || len(native[id].GetContent()) > 0 || plain[id].GetNativeJson() != "" {
			t.Errorf("%s\ngot  %s\nwant %s (content %v)", id, got, want, native[id].GetContent())
		}
	}
}

// TestModelEvents feeds a message as it comes from the API. Its calls run, the turn ends with it, and the items answer it.
func TestModelEvents(t *testing.T) {
	for format := range streams {
		t.Run(format.String(), func(t *testing.T) {
			h := serve(t)
			c, _ := h.natively("s", -1)
			for i, e := range h.eventsIn(format) {
				c.event("m1", i, e)
			}
			native := c.results()
			plain := h.converse()
			plain.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64), Role: tooldv1.Role_ROLE_COMPANION})
			wantAnswers(t, format, native, plain.results())
			for _, e := range plain.events {
				if a := e.GetAccepted(); a != nil && (a.GetFormat() != format || a.GetNativeType() == "" || e.GetTurnId() != "m1") {
					t.Errorf("accepted as %v of the turn %q", a, e.GetTurnId())
				}
			}
		})
	}
}

// TestModelEventsAgain cuts the stream behind each event. The client goes on where the daemon says, or from the beginning, and after
// a restart of the daemon from the beginning: each call runs once. Each cut is tried in one of the three ways, with TOOLD_ALL in all.
func TestModelEventsAgain(t *testing.T) {
	for format := range streams {
		t.Run(format.String(), func(t *testing.T) {
			h := serve(t)
			events := h.eventsIn(format)
			for cut := range events {
				for n := range tooltest.Times(1, 3) {
					way := (cut + n) % 3
					session := fmt.Sprintf("s%d-%d", cut, way)
					c, _ := h.natively(session, -1)
					for i, e := range events[:cut] {
						c.event("m1", i, e)
					}
					c.use("last", "TodoWrite", `{"todos":[]}`) // what was said before it has been heard
					c.until("last ")
					c.cancel()
					if way == 2 {
						h.stop()
						h.start()
					}
					c, attached := h.natively(session, 0)
					from := 0
					if open := attached.GetOpenTurns(); way == 0 && len(open) > 0 {
						from = int(open[0].GetModelEvents())
					}
					for i, e := range events[from:] {
						c.event("m1", from+i, e)
					}
					c.use("more", "TodoWrite", `{"todos":[]}`)
					c.until("more ")
					begun := map[string]int{}
					for _, e := range c.events {
						if a := e.GetAccepted(); a != nil && !a.GetReplayed() {
							begun[a.GetToolUseId()]++
						}
					}
					if diff := cmp.Diff(map[string]int{"last": 1, "more": 1, "one": 1, "two": 1}, begun); diff != "" {
						t.Errorf("cut at %d, way %d (-want +got):\n%s\n%q", cut, way, diff, story(c.events))
					}
					c.cancel()
				}
			}
		})
	}
}

// TestModelEventsGoWrong: what cannot be taken is said, and harms nothing else.
func TestModelEventsGoWrong(t *testing.T) {
	begin := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"one","name":"TodoWrite","input":{}}}`
	delta := `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"todos\":[]}"}}`
	stop := `{"type":"content_block_stop","index":0}`
	half := `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"todos\":["}}`
	for name, c := range map[string]struct {
		events []string // "INDEX JSON" or JSON in their order
		notice string
		turn   string // "": none, else what its end says
	}{
		"gap":               {[]string{"1 " + begin}, "model_event_gap", ""},
		"cut off":           {[]string{begin, half, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_stop"}`}, "model_cut_off", "turn 0"},
		"not JSON":          {[]string{begin, delta, stop, `{"type":`}, "invalid_model_event", "turn 1"},
		"failed":            {[]string{begin, half, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "model_failed", "turn 0"},
		"another format":    {[]string{begin, delta, stop, `{"object":"chat.completion.chunk","choices":[]}`}, "invalid_model_event", "turn 1"},
		"the client's":      {[]string{`{"id":"x","name":"TodoWrite","input":{"todos":[]}}`}, "invalid_model_event", "turn 0"},
		"without an id":     {[]string{`{"content":[{"type":"tool_use","name":"TodoWrite","input":{"todos":[]}}]}`}, "", "turn 1"},
		"text alone":        {[]string{`{"type":"message_start","message":{"id":"m"}}`, `{"type":"message_stop"}`}, "", "turn 0"},
		"the same turn_id":  {[]string{`0 {"id":"m","role":"assistant","content":[{"type":"text","text":"x"}]}`, "0 " + begin, "1 " + delta, "2 " + stop, `3 {"type":"message_stop"}`}, "", "turn 0"},
		"a whole message":   {[]string{`{"id":"m","role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"one","name":"TodoWrite","input":{"todos":[]}}]}`}, "", "turn 1"},
		"after the end":     {[]string{begin, delta, stop, `{"type":"message_stop"}`, `{"type":"ping"}`, begin}, "", "turn 1"},
		"an event repeated": {[]string{"0 " + begin, "0 " + begin, "1 " + delta, "1 " + delta, "2 " + stop, `3 {"type":"message_stop"}`}, "", "turn 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			conv, _ := h.natively("s", -1)
			for i, text := range c.events {
				if n, rest, found := strings.Cut(text, " "); found && len(n) == 1 {
					i, text = int(n[0]-'0'), rest
				}
				conv.event("m1", i, text)
			}
			conv.use("last", "TodoWrite", `{"todos":[]}`)
			conv.until("last OK")
			ended := func() int {
				return slices.IndexFunc(conv.events, func(e *tooldv1.ExecuteResponse) bool { return e.GetTurnEnded() != nil && e.GetTurnId() == "m1" })
			}
			for c.turn != "" && ended() < 0 {
				conv.until("turn ")
			}
			told := story(conv.events)
			if noticed := slices.ContainsFunc(conv.events, func(e *tooldv1.ExecuteResponse) bool { return e.GetNotice().GetCode() == c.notice }); c.notice != "" && !noticed {
				t.Errorf("no notice %s: %q", c.notice, told)
			}
			if c.turn == "" && ended() >= 0 {
				t.Fatalf("the turn has ended: %q", told)
			}
			var calls int
			if n, _ := fmt.Sscanf(c.turn, "turn %d", &calls); n == 1 && int(conv.events[ended()].GetTurnEnded().GetCalls()) != calls {
				t.Errorf("the turn had %d calls, want %d: %q", conv.events[ended()].GetTurnEnded().GetCalls(), calls, told)
			}
		})
	}
}

// TestModelMessageEndsWithItsTurn: what ends or discards the turn drops what has come of the message.
func TestModelMessageEndsWithItsTurn(t *testing.T) {
	begin := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"one","name":"TodoWrite","input":{"todos":[]}}}`
	for name, end := range map[string]*tooldv1.ExecuteRequest{
		"end":        {Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: "m1"}}},
		"discard":    {Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: "m1"}}},
		"half-close": nil,
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			c, _ := h.natively("s", -1)
			c.event("m1", 0, begin)
			if end == nil {
				if err := c.rest(); err != nil || !slices.ContainsFunc(c.events, func(e *tooldv1.ExecuteResponse) bool { return e.GetTurnEnded() != nil && e.GetTurnId() == "m1" }) {
					t.Errorf("%v after %q", err, story(c.events))
				}
				return
			}
			c.say(end)
			c.event("m1", 1, `{"type":"message_stop"}`) // belongs to nothing any more
			c.use("last", "TodoWrite", `{"todos":[]}`)
			c.until("last OK")
			if !slices.ContainsFunc(c.events, func(e *tooldv1.ExecuteResponse) bool { return e.GetTurnEnded() != nil && e.GetTurnId() == "m1" }) || len(resultsOf(c.events)) != 1 {
				t.Errorf("%q", story(c.events))
			}
			c.event("m2", 0, begin)
			c.event("m2", 1, `{"type":"message_stop"}`)
			c.until("one OK")
		})
	}
}

// TestModelMessagesSentAgain: after a break a client sends again all of the messages whose turns have not ended, though one was followed
// by another and one was ended by the client. Nothing ends or runs because of that.
func TestModelMessagesSentAgain(t *testing.T) {
	g := newGate(tools.Spec{Name: "Gate"})
	h := serve(t, g)
	c, _ := h.natively("s", -1)
	ask := func(c *conversation) {
		for _, turn := range []string{"m1", "m2"} {
			c.event(turn, 0, fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"of %s","name":"Gate","input":{"name":%q}}}`, turn, turn))
			c.event(turn, 1, `{"type":"content_block_stop","index":0}`)
			c.event(turn, 2, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
			c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: turn}}})
		}
	}
	ask(c)
	c.until("of m1 started")
	c.cancel()
	c, _ = h.natively("s", 0)
	ask(c)
	c.use("last", "Nope", `{}`)
	c.until("last INVALID")
	for _, e := range c.events {
		if e.GetTurnEnded() != nil && e.GetTurnId() != "" {
			t.Errorf("the turn %s ends while its call runs: %q", e.GetTurnId(), story(c.events))
		}
	}
	g.call("m1").leave <- nil
	g.call("m2").leave <- nil
	ended := map[string]int{}
	for ended["m1"] == 0 || ended["m2"] == 0 {
		ended[c.until("turn ").GetTurnId()]++
	}
	begun := 0
	for _, e := range c.events {
		if a := e.GetAccepted(); a != nil && !a.GetReplayed() && strings.HasPrefix(a.GetToolUseId(), "of ") {
			begun++
		}
	}
	if begun != 2 {
		t.Errorf("%d calls began, want 2: %q", begun, story(c.events))
	}
}

// TestNativeItems sends items of each form.
func TestNativeItems(t *testing.T) {
	h := serve(t)
	c, _ := h.natively("s", -1)
	chat := tooldv1.ModelFormat_MODEL_FORMAT_OPENAI_CHAT
	for _, use := range []struct {
		wire *tooldv1.ToolUse
		told string
		item string // what its answer begins with
	}{
		{&tooldv1.ToolUse{NativeJson: `{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[]}}`}, "a OK", `{"type":"tool_result","tool_use_id":"a"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"function","id":"b","function":{"name":"TodoWrite","arguments":"{\"todos\":[]}"}}`, Format: chat}, "b OK", `{"role":"tool","tool_call_id":"b"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"function_call","call_id":"c","name":"TodoWrite","arguments":"{\"todos\":[]}"}`}, "c OK", `{"type":"function_call_output","call_id":"c"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"custom_tool_call","call_id":"d","name":"Nothing","input":"x"}`}, "d INVALID unknown_tool", `{"type":"custom_tool_call_output","call_id":"d"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"tool_use","id":"e","name":"TodoWrite","input":{}}`, Format: chat}, "e INVALID invalid_item", `{"type":"tool_result","tool_use_id":"e"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"tool_use","id":"f","name":"TodoWrite","input":{"todos":[]}}`, Name: "Bash"}, "f INVALID invalid_item", `{"type":"tool_result","tool_use_id":"f"`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"apply_patch_call","call_id":"g","operation":{"type":"create_file","path":"made.txt","diff":"+one\n+two"}}`}, "g OK", `{"type":"apply_patch_call_output","call_id":"g","status":"completed","output":"Added `},
		{&tooldv1.ToolUse{NativeJson: `{"type":"apply_patch_call","call_id":"h","operation":{"type":"update_file","path":"made.txt","diff":"@@\n-three\n+3"}}`}, "h INVALID no_match", `{"type":"apply_patch_call_output","call_id":"h","status":"failed","output":"Hunk 1 of made.txt`},
		{&tooldv1.ToolUse{NativeJson: `{"type":"custom_tool_call","call_id":"i","name":"apply_patch","input":"*** Begin Patch\n*** Update File: made.txt\n*** Move to: moved.txt\n@@\n-one\n+1\n*** End Patch"}`}, "i OK", `{"type":"custom_tool_call_output","call_id":"i","output":"Moved `},
	} {
		c.ask(use.wire)
		if got := c.until(use.told).GetToolResult().GetNativeJson(); !strings.HasPrefix(got, use.item) {
			t.Errorf("%s is answered by %s", use.wire.GetNativeJson(), got)
		}
	}
	for _, bad := range []string{"{", "3", "{}", `{"type":"text","text":"x"}`, `{"name":"TodoWrite","input":{}}`} {
		c.ask(&tooldv1.ToolUse{NativeJson: bad})
		for c.events = nil; len(resultsOf(c.events)) == 0; {
			c.until("")
		}
		for _, result := range resultsOf(c.events) {
			if result.GetError().GetCode() != "invalid_item" || result.GetNativeJson() != "" {
				t.Errorf("%s ends as %v", bad, result)
			}
		}
	}
	again := &tooldv1.ToolUse{NativeJson: `{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[]}}`}
	c.ask(again)
	if !c.until("a accepted").GetAccepted().GetReplayed() {
		t.Error("the item was not known again")
	}
}

// TestNoStructured: a stream that does not read what is structured gets the rest.
func TestNoStructured(t *testing.T) {
	h := serve(t)
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: free(), Capabilities: &tooldv1.Capabilities{NoStructured: true}})
	c.use("a", "TodoWrite", `{"todos":[]}`)
	if r := c.until("a OK").GetToolResult(); r.GetStructured() != nil || len(r.GetContent()) == 0 {
		t.Errorf("%v", r)
	}
}

// snapshot is a tool that gives an image of noise, which does not get smaller by being packed.
func snapshot(side int) tools.Tool {
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(picture.Pix)
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // into memory
	return tools.New(tools.Spec{Name: "Snapshot", Description: "Gives an image.", ReadOnly: true}, tools.Funcs[struct{}]{Effects: func(struct{}) tools.Effects { return tools.Effects{} }, Run: func(context.Context, *tools.Env, struct{}) (tools.Result, error) {
		return tools.Result{Content: []tools.Block{{Image: &tools.Blob{MediaType: "image/png", Data: b.Bytes()}}}}, nil
	}})
}

// TestNativeImage: an image that is too large in the model's form for a message of gRPC is made smaller.
func TestNativeImage(t *testing.T) {
	h := serve(t, snapshot(930))
	c, _ := h.natively("s", -1)
	c.ask(&tooldv1.ToolUse{NativeJson: `{"type":"tool_use","id":"a","name":"Snapshot","input":{}}`})
	var item struct {
		Content []struct {
			Type   string
			Source struct{ Data []byte }
		}
	}
	text := c.until("a OK").GetToolResult().GetNativeJson()
	if err := json.Unmarshal([]byte(text), &item); err != nil {
		t.Fatal(err)
	}
	if len(item.Content) != 1 || item.Content[0].Type != "image" || len(item.Content[0].Source.Data) > 2_500_000 {
		t.Fatalf("an item of %d bytes with %d blocks", len(text), len(item.Content))
	}
	if _, _, err := image.Decode(bytes.NewReader(item.Content[0].Source.Data)); err != nil {
		t.Error(err)
	}
}
