package tools_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/toold/toold/tools"
)

func TestIsCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: true, `{"todos":[]}`: true, `{"file_path":"/a b/c.txt","limit":10}`: true, `{"a":true,"b":false,"c":null,"d":{},"e":-1,"f":""}`: true,
		``: false, `{`: false, `[]`: false, `{ }`: false, `{"b":1,"a":2}`: false, `{"a":1,"a":2}`: false, `{"a":1.0}`: false, `{"a":1e2}`: false,
		`{"a":"\n"}`: false, `{"a":"<"}`: false, `{"a":"é"}`: false, `{"a": 1}`: false, `{"a":1} `: false, `{"a":[1]}`: false, `{"a":{"b":1}}`: false,
	} {
		if got := tools.IsCanonical([]byte(text)); got != want {
			t.Errorf("%s is canonical: %v, want %v", text, got, want)
		}
	}
}

func FuzzIsCanonical(f *testing.F) {
	f.Add(`{"a":"x","b":-1,"c":[]}`)
	f.Add(`{"a":{},"b":{}}}`)
	f.Add(`{"":0}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !tools.IsCanonical([]byte(text)) {
			t.Skip()
		}
		var value map[string]any
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%q is no object: %v", text, err)
		}
		if written, err := json.Marshal(value); string(written) != text || err != nil {
			t.Errorf("%q is written as %q (%v)", text, written, err)
		}
	})
}
