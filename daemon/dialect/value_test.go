package dialect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reading is what a case expects of a message: its format, its name and its uses, each "id name input".
type reading struct {
	format Format
	id     string
	uses   []string
}

// messageCases are what models' servers send, and what is read of it.
var messageCases = map[string]struct {
	text string
	want reading
}{
	"json lines": {
		`{"id":"a","name":"Read","input":{"file_path":"/x"}}` + "\n" + `{"name":"LS","input":{}}` + "\n\n",
		reading{Lines, "", []string{`a Read {"file_path":"/x"}`, `? LS {}`}},
	},
	"a line as the wire has it": {
		`{"tool_use":{"id":"a","name":"Bash","input_json":"{\"command\": 1e400}"}}`,
		reading{Lines, "", []string{`a Bash {"command": 1e400}`}},
	},
	"a line without input": {`{"name":"LS"}`, reading{Lines, "", []string{"? LS "}}},
	"lines in an array": {
		`[{"name":"LS","input":{}},{"id":"b","name":"LS","input":{}}]`,
		reading{Lines, "", []string{"? LS {}", "b LS {}"}},
	},
	"a value over several lines": {"{\n \"name\": \"LS\",\n \"input\": { }\n}", reading{Lines, "", []string{"? LS { }"}}},
	"anthropic response": {
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[
			 {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},
			 {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/x","limit":50.0}},
			 {"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"q"}},
			 {"type":"tool_use","id":"toolu_2","name":"Grep","input":{"pattern":"<a>"}}],"usage":{"input_tokens":1}}`,
		reading{Anthropic, "msg_1", []string{`toolu_1 Read {"file_path":"/x","limit":50.0}`, `toolu_2 Grep {"pattern":"<a>"}`}},
	},
	"anthropic object with content alone": {
		`{"content":[{"type":"tool_use","id":"t","name":"LS","input":{}}]}`, reading{Anthropic, "", []string{"t LS {}"}},
	},
	"anthropic content array": {
		`[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"LS","input":{}}]`, reading{Anthropic, "", []string{"t LS {}"}},
	},
	"anthropic blocks on lines": {
		`{"type":"text","text":"x"}` + "\n" + `{"type":"tool_use","id":"t","name":"LS","input":{}}`, reading{Anthropic, "", []string{"t LS {}"}},
	},
	"anthropic without a tool use, whatever the stop reason": {
		`{"id":"msg_1","type":"message","role":"assistant","stop_reason":"tool_use","content":[{"type":"text","text":"Done."}]}`, reading{},
	},
	"openai completion": {
		`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,
			 "tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{\"file_path\": \"/x\"}"}}]}}]}`,
		reading{Chat, "chatcmpl-1", []string{`call_1 Read {"file_path": "/x"}`}},
	},
	"openai message": {
		`{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"LS","arguments":""}}]}`,
		reading{Chat, "", []string{"c LS "}},
	},
	"openai tool calls alone": {
		`[{"id":"c","type":"function","function":{"name":"LS","arguments":"{}"}}]`, reading{Chat, "", []string{"c LS {}"}},
	},
	"openai arguments that are no JSON are for the daemon to judge": {
		`{"tool_calls":[{"id":"c","type":"function","function":{"name":"LS","arguments":"{\"path\": "}}]}`,
		reading{Chat, "", []string{`c LS {"path": `}},
	},
	"arguments as an object, as some servers give them": {
		`{"role":"assistant","tool_calls":[{"function":{"name":"LS","arguments":{"path":"/x"}}}]}`,
		reading{Chat, "", []string{`? LS {"path":"/x"}`}},
	},
	"openai custom call": {
		`{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"select 1"}}]}`,
		reading{Chat, "", []string{`c sql "select 1"`}},
	},
	"openai message without calls": {`{"role":"assistant","content":"Hello.","tool_calls":null}`, reading{}},
	"openai response": {
		`{"id":"resp_1","object":"response","output":[{"type":"reasoning","id":"rs_1","summary":[]},
			 {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
			 {"type":"function_call","id":"fc_1","call_id":"call_9","name":"Grep","arguments":"{\"pattern\":\"a\"}"}]}`,
		reading{Responses, "resp_1", []string{`call_9 Grep {"pattern":"a"}`}},
	},
	"openai response items": {
		`[{"type":"function_call","call_id":"a","name":"LS","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"sql","input":"x"}]`,
		reading{Responses, "", []string{"a LS {}", `b sql "x"`}},
	},
	"empty content": {`{"role":"assistant","content":[]}`, reading{}},
	"empty array":   {`[]`, reading{}},
}

func TestReadMessage(t *testing.T) {
	for name, c := range messageCases {
		t.Run(name, func(t *testing.T) { checkRead(t, c.text, c.want) })
	}
}

// read reads a whole text.
func read(text []byte) (*Reader, []Use, Ending, error) {
	r := &Reader{}
	uses, err := r.Feed(text)
	if err != nil {
		return r, uses, Ending{}, err
	}
	more, ending, err := r.End()
	return r, append(uses, more...), ending, err
}

func checkRead(t *testing.T, text string, want reading) {
	t.Helper()
	r, uses, ending, err := read([]byte(text))
	if err != nil || ending.Broken || len(ending.CutOff) > 0 {
		t.Fatalf("reading %s: %v, %+v", text, err, ending)
	}
	got := reading{format: r.Format(), id: r.ID(), uses: told(uses)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("reading %s (-want +got):\n%s", text, diff)
	}
}

// told returns a line for each use: "id name input".
func told(uses []Use) (lines []string) {
	for _, u := range uses {
		id := u.ID
		if id == "" {
			id = "?"
		}
		lines = append(lines, id+" "+u.Name+" "+u.Input)
	}
	return lines
}

func TestReadMessageRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":           {" \n", "the input is empty"},
		"text":              {"hello", "line 1 is not JSON"},
		"broken off":        {"{\"name\":\"LS\"}\n{\"name\":", "line 2 is not JSON: it ends in the middle of a value"},
		"a number":          {`7`, "7 is not a tool use"},
		"an empty object":   {`{}`, "no keys"},
		"unknown keys":      {`{"tool":"LS","args":{}}`, `the keys "args", "tool"`},
		"a misspelt key":    {`{"name":"LS","inputs":{}}`, `unknown field "inputs"`},
		"no name":           {`{"name":"","input":{}}`, "has no name"},
		"two inputs":        {`{"name":"LS","input":{},"input_json":"{}"}`, "both input and input_json"},
		"a bad timeout":     {`{"name":"LS","timeout":"soon"}`, `"soon" is not a duration`},
		"beside tool_use":   {`{"tool_use":{"name":"LS"},"end_turn":{}}`, "nothing else is expected"},
		"tool_use null":     {`{"tool_use":null}`, "expected an object"},
		"the same id twice": {`{"id":"a","name":"LS"}` + `{"id":"a","name":"LS"}`, `tool uses 1 and 2 have the same id "a"`},
		"two dialects":      {`{"name":"LS"}` + "\n" + `{"type":"tool_use","name":"LS"}`, "an Anthropic message, but what came before is JSON lines"},
		"two messages": {
			`{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"a","name":"LS"}]}` +
				`{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"b","name":"LS"}]}`, "second message",
		},
		"a user's message": {`{"role":"user","content":[{"type":"tool_result"}]}`, `the role "user"`},
		"a conversation":   {`[{"role":"user","content":"hi"},{"role":"assistant","content":[]}]`, "send only the last message"},
		"a conversation of responses": {
			`[{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"LS"}]}]`, "send only the last message",
		},
		"an API error":             {`{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}`, "the model's API reported overloaded_error: Busy."},
		"a failed response":        {`{"id":"r","status":"failed","error":{"code":"server_error","message":"No."},"output":[]}`, "reported server_error: No."},
		"an error with a number":   {`{"error":{"code":429,"message":"Slow down."}}`, "reported 429: Slow down."},
		"an error without words":   {`{"type":"error","error":{}}`, "reported an error"},
		"a line that is no event":  {"data: {\"name\":\"LS\"}\n\nhello\n", "line 3 is not JSON"},
		"the end of no stream":     {"data: [DONE]\n\n", "none of its events"},
		"an event of another form": {`{"type":"content_block_start","index":"x"}`, "no known form"},
		"input behind its end": {
			`{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"LS","arguments":"{}"}}]}}]}` +
				`{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"/\"}"}}]}}]}`,
			"the input of LS goes on behind its end",
		},
		"two choices": {
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"LS"}}]}},{"message":{"tool_calls":[{"id":"b","function":{"name":"LS"}}]}}]}`,
			"more than one choice",
		},
		"a tool call of no form": {`{"tool_calls":[{"id":"a"}]}`, "is not a tool call"},
		"a string in content":    {`{"role":"assistant","content":["x"]}`, `"x" is not a content block`},
		"a name that is none":    {`{"type":"tool_use","name":5}`, "no known form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, uses, _, err := read([]byte(c.text))
			if err == nil {
				t.Fatalf("reading %s gave %d uses and no error; want one with %q", c.text, len(uses), c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("reading %s: %q does not say %q", c.text, err, c.want)
			}
		})
	}
}

func TestTimeoutOfALine(t *testing.T) {
	_, uses, _, err := read([]byte(`{"name":"Bash","input":{},"timeout":"1m30s"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := uses[0].Timeout; got != 90*time.Second {
		t.Errorf("the timeout is %s, want 1m30s", got)
	}
}
