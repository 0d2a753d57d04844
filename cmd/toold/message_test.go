package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// reading is what a case expects of a message: its dialect, its name and its uses, each "id name input".
type reading struct {
	dialect dialect
	id      string
	uses    []string
}

// messageCases are what models' servers send, and what is read of it.
var messageCases = map[string]struct {
	text string
	want reading
}{
	"json lines": {
		`{"id":"a","name":"Read","input":{"file_path":"/x"}}` + "\n" + `{"name":"LS","input":{}}` + "\n\n",
		reading{lines, "", []string{`a Read {"file_path":"/x"}`, `? LS {}`}},
	},
	"a line as the wire has it": {
		`{"tool_use":{"id":"a","name":"Bash","input_json":"{\"command\": 1e400}"}}`,
		reading{lines, "", []string{`a Bash {"command": 1e400}`}},
	},
	"a line without input": {`{"name":"LS"}`, reading{lines, "", []string{"? LS "}}},
	"lines in an array": {
		`[{"name":"LS","input":{}},{"id":"b","name":"LS","input":{}}]`,
		reading{lines, "", []string{"? LS {}", "b LS {}"}},
	},
	"a value over several lines": {"{\n \"name\": \"LS\",\n \"input\": { }\n}", reading{lines, "", []string{"? LS { }"}}},
	"anthropic response": {
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[
			 {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},
			 {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/x","limit":50.0}},
			 {"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"q"}},
			 {"type":"tool_use","id":"toolu_2","name":"Grep","input":{"pattern":"<a>"}}],"usage":{"input_tokens":1}}`,
		reading{anthropic, "msg_1", []string{`toolu_1 Read {"file_path":"/x","limit":50.0}`, `toolu_2 Grep {"pattern":"<a>"}`}},
	},
	"anthropic object with content alone": {
		`{"content":[{"type":"tool_use","id":"t","name":"LS","input":{}}]}`, reading{anthropic, "", []string{"t LS {}"}},
	},
	"anthropic content array": {
		`[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"LS","input":{}}]`, reading{anthropic, "", []string{"t LS {}"}},
	},
	"anthropic blocks on lines": {
		`{"type":"text","text":"x"}` + "\n" + `{"type":"tool_use","id":"t","name":"LS","input":{}}`, reading{anthropic, "", []string{"t LS {}"}},
	},
	"anthropic without a tool use, whatever the stop reason": {
		`{"id":"msg_1","type":"message","role":"assistant","stop_reason":"tool_use","content":[{"type":"text","text":"Done."}]}`, reading{},
	},
	"openai completion": {
		`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,
			 "tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{\"file_path\": \"/x\"}"}}]}}]}`,
		reading{chat, "chatcmpl-1", []string{`call_1 Read {"file_path": "/x"}`}},
	},
	"openai message": {
		`{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"LS","arguments":""}}]}`,
		reading{chat, "", []string{"c LS "}},
	},
	"openai tool calls alone": {
		`[{"id":"c","type":"function","function":{"name":"LS","arguments":"{}"}}]`, reading{chat, "", []string{"c LS {}"}},
	},
	"openai arguments that are no JSON are for the daemon to judge": {
		`{"tool_calls":[{"id":"c","type":"function","function":{"name":"LS","arguments":"{\"path\": "}}]}`,
		reading{chat, "", []string{`c LS {"path": `}},
	},
	"arguments as an object, as some servers give them": {
		`{"role":"assistant","tool_calls":[{"function":{"name":"LS","arguments":{"path":"/x"}}}]}`,
		reading{chat, "", []string{`? LS {"path":"/x"}`}},
	},
	"openai custom call": {
		`{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"select 1"}}]}`,
		reading{chat, "", []string{`c sql "select 1"`}},
	},
	"openai message without calls": {`{"role":"assistant","content":"Hello.","tool_calls":null}`, reading{}},
	"openai response": {
		`{"id":"resp_1","object":"response","output":[{"type":"reasoning","id":"rs_1","summary":[]},
			 {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
			 {"type":"function_call","id":"fc_1","call_id":"call_9","name":"Grep","arguments":"{\"pattern\":\"a\"}"}]}`,
		reading{responses, "resp_1", []string{`call_9 Grep {"pattern":"a"}`}},
	},
	"openai response items": {
		`[{"type":"function_call","call_id":"a","name":"LS","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"sql","input":"x"}]`,
		reading{responses, "", []string{"a LS {}", `b sql "x"`}},
	},
	"empty content": {`{"role":"assistant","content":[]}`, reading{}},
	"empty array":   {`[]`, reading{}},
}

func TestReadMessage(t *testing.T) {
	for name, c := range messageCases {
		t.Run(name, func(t *testing.T) { checkRead(t, c.text, c.want) })
	}
}

func checkRead(t *testing.T, text string, want reading) {
	t.Helper()
	m, err := readMessage([]byte(text))
	if err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	got := reading{dialect: m.dialect, id: m.id}
	for _, u := range m.uses {
		id := u.given
		if id == "" {
			id = "?"
		}
		got.uses = append(got.uses, id+" "+u.name+" "+u.input)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("reading %s (-want +got):\n%s", text, diff)
	}
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
		"a conversation":   {`[{"role":"user","content":"hi"},{"role":"assistant","content":[]}]`, "give the last message alone"},
		"a conversation of responses": {
			`[{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"LS"}]}]`, "give the last message alone",
		},
		"an event stream": {`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}`, `type "content_block_start"`},
		"an API error":    {`{"type":"error","error":{"type":"overloaded_error"}}`, `the keys "error", "type"`},
		"two choices": {
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"LS"}}]}},{"message":{"tool_calls":[{"id":"b","function":{"name":"LS"}}]}}]}`,
			"more than one choice",
		},
		"a tool call of no form": {`{"tool_calls":[{"id":"a"}]}`, "is not a tool call"},
		"a string in content":    {`{"role":"assistant","content":["x"]}`, `"x" is not a content block`},
		"a name that is none":    {`{"type":"tool_use","name":5}`, "no known form"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := readMessage([]byte(c.text))
			if err == nil {
				t.Fatalf("reading %s gave %d uses and no error; want one with %q", c.text, len(m.uses), c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("reading %s: %q does not say %q", c.text, err, c.want)
			}
		})
	}
}

func TestTimeoutOfALine(t *testing.T) {
	m, err := readMessage([]byte(`{"name":"Bash","input":{},"timeout":"1m30s"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.uses[0].wire("").GetTimeout().AsDuration(); got != 90*time.Second {
		t.Errorf("the timeout on the wire is %s, want 1m30s", got)
	}
}

// FuzzReadMessage holds what follows from any input that is read: each use can be sent under an id of its own, and
// each reply answers all of them in order.
func FuzzReadMessage(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","name":"LS","input":{}}`, `{"tool_use":{"name":"LS","input_json":"{}"}}`, `[]`, `{"content":[{"type":"tool_use"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"LS","input":{}}]}`,
		`{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"LS","arguments":"{}"}}]}}]}`,
		`{"output":[{"type":"function_call","call_id":"c","name":"LS","arguments":"{}"},{"type":"custom_tool_call"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readMessage(text)
		if err != nil {
			return
		}
		if (m.dialect == silent) != (len(m.uses) == 0) {
			t.Fatalf("%d uses in %s", len(m.uses), m.dialect)
		}
		seen := map[string]bool{}
		var uses []answered
		for _, u := range m.uses {
			if u.id == "" || seen[u.id] {
				t.Fatalf("the id %q is empty or not the only one", u.id)
			}
			seen[u.id] = true
			uses = append(uses, answered{u, textResult(tooldv1.Outcome_OUTCOME_OK, u.input)})
		}
		checkReplies(t, m.dialect, uses)
	})
}

// checkReplies checks that each form of reply is JSON that has an entry for each use.
func checkReplies(t *testing.T, d dialect, uses []answered) {
	t.Helper()
	for _, form := range []dialect{anthropic, chat, responses} {
		var text []byte
		var err error
		if form == anthropic {
			text, err = anthropicReply(uses)
		} else {
			text, err = openaiReply(form, uses)
		}
		if err != nil || !json.Valid(text) {
			t.Fatalf("the reply of %s as %s is no JSON: %v\n%s", d, form, err, text)
		}
		if got := len(repliedIDs(t, form, text)); got != len(uses) {
			t.Fatalf("the reply answers %d of %d uses:\n%s", got, len(uses), text)
		}
	}
}

func repliedIDs(t *testing.T, form dialect, text []byte) (ids []string) {
	t.Helper()
	type entry struct {
		ToolUseID  string `json:"tool_use_id"`
		ToolCallID string `json:"tool_call_id"`
		CallID     string `json:"call_id"`
	}
	var entries []entry
	if form == anthropic {
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

func textResult(o tooldv1.Outcome, text string) *tooldv1.ToolResult {
	return &tooldv1.ToolResult{
		Outcome: o, IsError: o != tooldv1.Outcome_OUTCOME_OK,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: strings.ToValidUTF8(text, "\uFFFD")}}},
	}
}
