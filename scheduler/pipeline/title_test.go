package pipeline

import (
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"town":"Oslo","days":3,"brief":true}`:      "weather(town: Oslo, days: 3, brief: true)",
		`{"list":[1],"of":{"a":"b"},"none":null}`:    "weather",
		`{"note":"two\nlines"}`:                      "weather(note: two lines)",
		`{"password":"hunter22"}`:                    "weather(password: [redacted: credential])",
		`{"note":"` + strings.Repeat("x", 99) + `"}`: "weather(note: " + strings.Repeat("x", 34) + "…)",
		`{"command":["a"]}`:                          "weather", `{}`: "weather", `{`: "weather", `{"a":1`: "weather(a: 1)", `["a"]`: "weather",
	} {
		if got := label("weather", members(input)); got != want {
			t.Errorf("%s is called %q, want %q", input, got, want)
		}
	}
}

func TestAbout(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"file_path":"/a b.txt","limit":3}`: "/a b.txt", `{"file_path": "/a b.txt", "limit": 3}`: "/a b.txt", `{"file_path":"/\u00e4"}`: "/ä",
		`{"path":"/x","pattern":"*.go"}`: "*.go", `{"pattern":"","path":"/x"}`: "/x", `{"path":"/x","pattern":""}`: "/x", `{"file\u005fpath":"/x"}`: "/x",
		`{"command":"view","path":"/x"}`: "view /x", `{"command":"rename","old_path":"/x"}`: "rename", `{"command": "view", "p\u0061th":"/x"}`: "view /x",
		`{"command":["a"],"path":"/x"}`: "/x", `{"path":null,"url":"u"}`: "u", `{"path":1}`: "", `{"todos":[]}`: "", `{"todos":"path"}`: "", `{}`: "", `{`: "",
	} {
		if got := about(input); got != want {
			t.Errorf("%s is about %q, want %q", input, got, want)
		}
	}
}
