package tools

import (
	"encoding/json"
	"testing"
)

// TestRepeatedKeys: a key that is there twice is found, wherever it is and however it is written, and nothing else is.
func TestRepeatedKeys(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"a":1}`: false, `{"a":{"a":[{"a":1},{"a":2}]}}`: false, `{"a:b":"c:d","\\":":","\"":"\":"}`: false,
		`{"a":1,"a":2}`: true, `{"":1,"":2}`: true, `{"a":[{"b":1,"b":1}]}`: true, `{"a":1,"\u0061":2}`: true, `{"a":{"x":1},"a":{}}`: true,
	} {
		if got := repeats(t, text); got != want {
			t.Errorf("%s: a key is there twice: %v, want %v", text, got, want)
		}
	}
}

// FuzzRepeatedKeys: counting finds the same as looking at each key.
func FuzzRepeatedKeys(f *testing.F) {
	f.Add(`{"a":1,"a":{"b":[":"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if json.Valid([]byte(text)) {
			repeats(t, text)
		}
	})
}

// repeats reports whether an object in text has a key twice.
func repeats(t *testing.T, text string) bool {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return false // a number that is too large
	}
	counted := members([]byte(text)) != keysIn(value)
	if key := repeated(json.RawMessage(text)); key != "" && !counted {
		t.Errorf("%s: %q is there twice, and was not counted so", text, key)
	}
	return counted
}
