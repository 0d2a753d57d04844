package hook

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/toold/toold/tools/text/redact"
)

// Whatever a hook makes of an input that it was told with marks: what is taken of it has none where a secret was, and fields
// that came back as they were told are those that were given.
func FuzzVeil(f *testing.F) {
	f.Add(`{"a":"my-secret-1 x","b":"[redacted: jwt]","c":1}`, `{"a":"[redacted: value] x","b":"[redacted: jwt]","c":1.0}`)
	f.Add(`{"a":"my-secret-1","n":{"token":"hunter22"}}`, `{"n":{"token":"[redacted: credential]"},"b":"[redacted: value]"}`)
	f.Add(`["my-secret-1"]`, `{"a":"[redacted: value]"}`)
	f.Add(`{"a":"my-secret-1 [redacted: jwt]"}`, `{"a":"x [redacted: jwt]"}`)
	f.Add(`{"a":null}`, `{"a":null,"A":"my-secret-1"}`)
	secrets := redact.New([]string{"my-secret-1"}, nil)
	f.Fuzz(func(t *testing.T, text, rewritten string) {
		var given, input object
		if json.Unmarshal([]byte(rewritten), &input) != nil || !json.Valid([]byte(text)) {
			return
		}
		_ = json.Unmarshal([]byte(text), &given)
		v := veil{json.RawMessage(text), secrets.JSON([]byte(text))}
		var told object
		_ = json.Unmarshal(v.told, &told)
		before := maps.Clone(input)
		why := v.lift(input)
		for name, value := range input {
			switch {
			case why != "", bytes.Equal(v.given, v.told):
			case told[name] != nil && equal(told, before, name):
				if !bytes.Equal(value, given[name]) {
					t.Errorf("the field %q came back as it was told, and became %s instead of %s", name, value, given[name])
				}
			case redact.Marked(string(value)) && strings.Contains(string(given[name]), "my-secret-1"):
				t.Errorf("the field %q would be written with a mark: %s", name, value)
			}
		}
	})
}
