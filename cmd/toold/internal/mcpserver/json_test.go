package mcpserver

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzMembers: the members of an object, its strings and what is written are those of encoding/json.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a": 1, "b\u0062" :{"c":[{"}":"\\"},"]"]} , "" : "\"" , "d":-1.5e3,"d":null}`))
	f.Add([]byte(` {"a":"\xff","b":{}} `))
	f.Add([]byte(`[1,{"a":2}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil {
			want = nil
		}
		got := map[string]json.RawMessage{}
		for key, value := range members(text) {
			var name string
			if err := json.Unmarshal(appendString(nil, key), &name); err != nil {
				t.Fatal(err)
			}
			got[name] = value
			var s string
			if word, is := unquoted(value); is {
				if err := json.Unmarshal(value, &s); err != nil {
					t.Fatal(err)
				}
				var back string
				if err := json.Unmarshal(appendString(nil, word), &back); err != nil || back != s && utf8.Valid(text) {
					t.Errorf("%q became %q, %v", value, back, err)
				}
			}
		}
		if len(want) == 0 && len(got) == 0 || !utf8.Valid(text) { // for what is not UTF-8 the two differ
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)", diff)
		}
	})
}
