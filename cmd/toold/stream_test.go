package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// Each tool use starts when it is complete: the second is written only when the first has its result.
func TestRunStreams(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "stream", map[string]string{"a.txt": "hello\n"})
	for name, halves := range map[string][2]string{
		"json lines": {
			`{"id":"a","name":"Glob","input":{"pattern":"*"}}` + "\n",
			`{"id":"b","name":"Glob","input":{"pattern":"*"}}` + "\n",
		},
		"json lines without the line's end": {`{"id":"a","name":"Glob","input":{"pattern":"*"}}`, `{"id":"b","name":"Glob","input":{"pattern":"*"}}`},
		"anthropic": {
			sse(`{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[]}}`, anthropicBlock(0, "a"), `{"type":"ping"}`),
			sse(anthropicBlock(1, "b"), `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`),
		},
		"openai chat": {
			sse(chatCall(0, "a")),
			sse(chatCall(1, "b"), `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"),
		},
		"openai responses": {
			sse(`{"type":"response.created","response":{"id":"resp_1","output":[]}}`, responsesItem(0, "a")),
			sse(responsesItem(1, "b"), `{"type":"response.completed","response":{"id":"resp_1","output":[]}}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := onPipes(t, h.environ, root, "run", "--output", "jsonl")
			x.write(halves[0])
			x.until("a OK")
			x.write(halves[1])
			x.until("b OK")
			x.ends(cli.ExitOK)
		})
	}
}

// sse writes events as a server sends them.
func sse(events ...string) string {
	var b strings.Builder
	for _, event := range events {
		b.WriteString("event: any\ndata: " + event + "\n\n")
	}
	return b.String()
}

func fill(text string, place int, id string) string {
	return strings.NewReplacer("PLACE", string(rune('0'+place)), "ID", id).Replace(text)
}

func anthropicBlock(place int, id string) string {
	return fill(`{"type":"content_block_start","index":PLACE,"content_block":{"type":"tool_use","id":"ID","name":"Glob","input":{}}}`+"\n\n"+
		`data: {"type":"content_block_delta","index":PLACE,"delta":{"type":"input_json_delta","partial_json":"{\"pattern\":\"*\"}"}}`+"\n\n"+
		`data: {"type":"content_block_stop","index":PLACE}`, place, id)
}

func chatCall(place int, id string) string {
	return fill(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":PLACE,"id":"ID","type":"function","function":{"name":"Glob","arguments":"{\"pattern\":\"*\"}"}}]},"finish_reason":null}]}`, place, id)
}

func responsesItem(place int, id string) string {
	return fill(`{"type":"response.output_item.done","output_index":PLACE,"item":{"type":"function_call","status":"completed","call_id":"ID","name":"Glob","arguments":"{\"pattern\":\"*\"}"}}`, place, id)
}

// The recorded streams of package dialect, run: what is complete runs, what was cut off does not and is named, and an
// error of the model's API takes the turn back.
func TestRecordedStreams(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "recorded", map[string]string{"a.txt": "hello\n"})
	recorded, err := filepath.Abs("../../daemon/dialect/testdata/streams")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		form   string
		code   int
		stdout []string
		stderr []string
	}{
		"anthropic-interleaved.jsonl": {"anthropic", 0, []string{`"tool_use_id":"toolu_1"`, `"tool_use_id":"toolu_2"`, "hello"}, nil},
		"anthropic-broken.sse":        {"anthropic", 1, []string{`"tool_use_id":"toolu_1"`, "hello"}, []string{"a call of Glob was cut off", "broke off before the end"}},
		"anthropic-max-tokens.jsonl":  {"anthropic", 0, []string{`"tool_use_id":"toolu_1"`}, []string{"a call of TaskList was cut off"}},
		"anthropic-error.sse":         {"anthropic", 1, nil, []string{"overloaded_error: Overloaded", "does not count", "nothing to append"}},
		"chat-interleaved.jsonl":      {"openai", 0, []string{`"tool_call_id":"call_1"`, `"tool_call_id":"call_2"`, "hello"}, nil},
		"chat-broken.sse":             {"openai", 1, []string{`"tool_call_id":"call_1"`, "hello"}, []string{"a call of Glob was cut off", "broke off before the end"}},
		"responses-pings.sse":         {"responses", 0, []string{`"call_id":"call_1"`, `"call_id":"call_2"`, "hello"}, nil},
		"responses.sse":               {"responses", 0, []string{`"call_id":"call_1"`, `"call_id":"call_2"`, "hello", "function_call_output"}, nil},
		"responses-broken.sse":        {"responses", 1, []string{`"call_id":"call_2"`}, []string{"a call of Read was cut off"}},
		"responses-incomplete.sse":    {"responses", 0, []string{`"call_id":"call_2"`}, []string{"a call of Read was cut off"}},
		"responses-failed.sse":        {"responses", 1, nil, []string{"server_error: The model failed.", "nothing to append"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(recorded, name))
			if err != nil {
				t.Fatal(err)
			}
			x := onPipes(t, h.environ, root, "run", "--output", want.form)
			x.write(strings.ReplaceAll(string(text), "/w/a", filepath.Join(root, "a")))
			out := x.ends(want.code)
			holds(t, "standard output", out, want.stdout...)
			holds(t, "standard error", x.stderr.String(), want.stderr...)
			if want.stdout == nil && out != "" {
				t.Errorf("there is something to append: %s", out)
			}
			if name == "anthropic-max-tokens.jsonl" && strings.Contains(out, "TaskList") {
				t.Errorf("what was cut off was run: %s", out)
			}
		})
	}
}
