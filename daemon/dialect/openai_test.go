package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
)

// TestOwnItems: the items of the tools that OpenAI's Responses API defines become calls of ApplyPatch and Shell, by themselves and
// as events of a stream.
func TestOwnItems(t *testing.T) {
	patch := func(lines ...string) string {
		text := "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"
		input, _ := json.Marshal(map[string]string{"patch": text})
		return string(input)
	}
	for _, c := range []struct{ name, item, use, input, kind string }{
		{
			"an update", `{"type":"apply_patch_call","call_id":"a","status":"completed","operation":{"type":"update_file","path":"x.go","diff":"@@\n-a\n+b\n"}}`,
			"ApplyPatch", patch("*** Update File: x.go", "@@", "-a", "+b"), "apply_patch_call",
		},
		{
			"a move", `{"type":"apply_patch_call","call_id":"a","operation":{"type":"update_file","path":"x","diff":"@@\n-a\n+b","move_to":"y"}}`,
			"ApplyPatch", patch("*** Update File: x", "*** Move to: y", "@@", "-a", "+b"), "apply_patch_call",
		},
		{
			"a new file", `{"type":"apply_patch_call","call_id":"a","operation":{"type":"create_file","path":"x","diff":"+a\n+b"}}`,
			"ApplyPatch", patch("*** Add File: x", "+a", "+b"), "apply_patch_call",
		},
		{
			"a file that goes", `{"type":"apply_patch_call","call_id":"a","operation":{"type":"delete_file","path":"x"}}`,
			"ApplyPatch", patch("*** Delete File: x"), "apply_patch_call",
		},
		{
			"no second file", `{"type":"apply_patch_call","call_id":"a","operation":{"type":"update_file","path":"x","diff":"@@\n-a\n+b\n*** Delete File: y"}}`,
			"ApplyPatch", patch("*** Update File: x", "@@", "-a", "+b"), "apply_patch_call",
		},
		{
			"no second file by its name", `{"type":"apply_patch_call","call_id":"a","operation":{"type":"delete_file","path":"x\n*** Delete File: y"}}`,
			"ApplyPatch", patch("*** Delete File: base64:eAoqKiogRGVsZXRlIEZpbGU6IHk="), "apply_patch_call",
		},
		{
			"free text", `{"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":"*** Begin Patch\n*** Delete File: <x>\n*** End Patch"}`,
			"ApplyPatch", `{"patch":"*** Begin Patch\n*** Delete File: <x>\n*** End Patch"}`, "custom_tool_call",
		},
		{
			"commands", `{"type":"shell_call","call_id":"a","status":"completed","action":{"commands":["ls","pwd"],"timeout_ms":1000,"max_output_length":null}}`,
			"Shell", `{"commands":["ls","pwd"],"timeout_ms":1000}`, "shell_call",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			input := c.input
			u, format, err := ReadItem([]byte(c.item))
			if err != nil || u.ID != "a" || u.Name != c.use || !sameJSON(u.Input, input) || format.Type(u) != c.kind || format != Responses {
				t.Errorf("%+v in %s, %v; want %s", u, format, err, input)
			}
			var m Message
			added := strings.Replace(c.item, `"completed"`, `"in_progress"`, 1)
			if _, err := m.Add([]byte(`{"type":"response.output_item.added","output_index":0,"item":` + added + `}`)); err != nil {
				t.Fatal(err)
			}
			uses, err := m.Add([]byte(`{"type":"response.output_item.done","output_index":0,"item":` + c.item + `}`))
			if err != nil || len(uses) != 1 || uses[0].Name != c.use || !sameJSON(uses[0].Input, input) {
				t.Errorf("as events it is %+v, %v", uses, err)
			}
		})
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// TestOwnItemCutOff: an item that the API calls incomplete never becomes a call.
func TestOwnItemCutOff(t *testing.T) {
	var m Message
	uses, err := m.Add([]byte(`{"type":"response.output_item.done","output_index":0,"item":{"type":"apply_patch_call","call_id":"a","status":"incomplete","operation":{"type":"update_file","path":"x"}}}`))
	_, ending, _ := m.End()
	if err != nil || len(uses) != 0 || len(ending.CutOff) != 1 || ending.CutOff[0] != "ApplyPatch" {
		t.Errorf("%+v, %+v, %v", uses, ending, err)
	}
}

func TestOwnAnswers(t *testing.T) {
	said := func(text string, wrong bool) Output {
		return Output{Blocks: []tools.Block{{Text: text}}, IsError: wrong}
	}
	ran := Output{Blocks: []tools.Block{{Text: "x"}}, Structured: func() ([]byte, error) {
		return []byte(`{"max_output_length":9,"commands":[{"stdout":"o","stderr":"e","exit_code":3},{"stdout":"","stderr":"","timed_out":true}]}`), nil
	}}
	caller := json.RawMessage(`{"type":"direct"}`)
	for _, c := range []struct {
		use    Use
		output Output
		want   string
	}{
		{Use{ID: "a", Item: patchCall}, said("Updated x.", false), `{"type":"apply_patch_call_output","call_id":"a","status":"completed","output":"Updated x."}`},
		{Use{ID: "a", Item: patchCall, Caller: caller}, said("No.", true), `{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"No.","caller":{"type":"direct"}}`},
		{Use{ID: "a", Name: patchTool, Custom: true}, said("Updated x.", false), `{"type":"custom_tool_call_output","call_id":"a","output":"Updated x."}`},
		{Use{ID: "a", Item: shellCall}, ran, `{"type":"shell_call_output","call_id":"a","max_output_length":9,"output":[{"stdout":"o","stderr":"e","outcome":{"type":"exit","exit_code":3}},{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]}`},
		{Use{ID: "a", Item: shellCall}, said("Denied.", true), `{"type":"shell_call_output","call_id":"a","output":[{"stdout":"","stderr":"Denied.","outcome":{"type":"exit","exit_code":126}}]}`},
		{Use{ID: "a", Item: shellCall}, Output{Blocks: []tools.Block{{Text: "Stopped."}}, IsError: true, Stopped: true}, `{"type":"shell_call_output","call_id":"a","output":[{"stdout":"","stderr":"Stopped.","outcome":{"type":"exit","exit_code":130}}]}`},
	} {
		if got, err := Answer(Responses, c.use, c.output); err != nil || string(got) != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
}
