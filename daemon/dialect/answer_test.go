package dialect

import (
	"encoding/json"
	"testing"

	"github.com/toold/toold/tools"
)

// FuzzReadItem holds that an item is read as what a whole message with it is read as, and that its answer is JSON with its id.
func FuzzReadItem(f *testing.F) {
	for _, seed := range []string{
		`{"type":"tool_use","id":"a","name":"LS","input":{}}`, `{"type":"function","id":"b","function":{"name":"LS","arguments":"{}"}}`,
		`{"type":"function_call","call_id":"c","name":"LS","arguments":"{}","caller":{"type":"x"}}`, `{"type":"custom_tool_call","call_id":"d","name":"x","input":"y"}`,
		`{"type":"apply_patch_call","call_id":"e","operation":{"type":"update_file","path":"x","diff":"@@\n-a\n+b"}}`,
		`{"type":"shell_call","call_id":"f","action":{"commands":["ls"],"timeout_ms":null}}`, `{"type":"custom_tool_call","call_id":"g","name":"apply_patch","input":"*** Begin Patch"}`,
		`{"type":"function_call","status":"incomplete","name":"x"}`, `{"name":"LS"}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		u, format, err := ReadItem(item)
		if err != nil {
			if u.Name != "" || format != Silent {
				t.Errorf("%v beside %+v in %s", err, u, format)
			}
			return
		}
		if format.Type(u) == "" {
			t.Errorf("%+v in %s has no type", u, format)
		}
		var m Message
		if uses, err := m.Add(item); err != nil || len(uses) != 1 || uses[0].Name != u.Name || uses[0].Input != u.Input || m.Format() != format {
			t.Errorf("as a message it is %+v in %s (%v), as an item %+v in %s", uses, m.Format(), err, u, format)
		}
		answer, err := Answer(format, u, Output{Blocks: []tools.Block{{Text: "x"}, {Image: &tools.Blob{MediaType: "image/png", Data: item}}}})
		if err != nil {
			t.Fatal(err)
		}
		var ids struct {
			A string `json:"tool_use_id"`
			B string `json:"tool_call_id"`
			C string `json:"call_id"`
		}
		if err := json.Unmarshal(answer, &ids); err != nil || ids.A+ids.B+ids.C != u.ID {
			t.Errorf("%s answers %q (%v)", answer, u.ID, err)
		}
	})
}
