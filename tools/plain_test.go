package tools

import (
	"testing"
)

// plainInput has members of each type, and some whose schema has more.
type plainInput struct {
	Path  string   `json:"path"`
	Other string   `json:"other,omitempty" jsonschema:"another one"`
	Limit int      `json:"limit,omitempty"`
	Exact bool     `json:"exact,omitempty"`
	Globs []string `json:"globs,omitempty"`
	Part  float64  `json:"part,omitempty"`
	Inner struct {
		A int `json:"a"`
	} `json:"inner,omitzero"`
	Maybe *string `json:"maybe,omitempty"`
	Mode  string  `json:"mode,omitempty" enum:"one,two" default:"one"`
	Count *int64  `json:"count,omitempty" minimum:"-1" maximum:"9"`
}

func plainInputSchema(t testing.TB) *inputSchema {
	t.Helper()
	return New(Spec{Name: "Plain"}, Funcs[plainInput]{Effects: func(plainInput) Effects { return Effects{} }}).(*typed[plainInput]).check
}

func TestPlainInputs(t *testing.T) {
	t.Parallel()
	s := plainInputSchema(t)
	for text, want := range map[string]bool{
		`{"path":"a"}`: true, `{"exact":true,"globs":[],"limit":-5,"other":"","path":"a"}`: true, `{"maybe":"a","path":"a"}`: true,
		`{"mode":"two","path":"a"}`: true, `{"mode":"","path":"a"}`: true, `{"mode":"three","path":"a"}`: false, `{"mode":1,"path":"a"}`: false,
		`{"count":-1,"path":"a"}`: true, `{"count":9,"path":"a"}`: true, `{"count":-2,"path":"a"}`: false, `{"count":10,"path":"a"}`: false,
		`{}`: false, `{"limit":1}`: false, `{"path":1}`: false, `{"limit":"1","path":"a"}`: false, `{"path":"a","unknown":1}`: false,
		`{"globs":["a"],"path":"a"}`: false, `{"part":1,"path":"a"}`: false, `{"inner":{},"path":"a"}`: false, `{"path":null}`: false, `{"path":"a","path":"a"}`: false,
	} {
		if got := s.plain.accepts([]byte(text)); got != want {
			t.Errorf("%s is accepted: %v, want %v", text, got, want)
		}
	}
	minimum := compile("Limited", []byte(`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"m":{"type":"integer"}}}`))
	if minimum.plain.accepts([]byte(`{"n":0}`)) || !minimum.plain.accepts([]byte(`{"m":0}`)) {
		t.Error("a member with a minimum is accepted, or one without is not")
	}
	for _, schema := range []string{`{"type":"object","minProperties":1}`, `{"type":"object","not":{}}`, `{"type":["object","null"]}`, `{}`} {
		if compile("Other", []byte(schema)).plain != nil {
			t.Errorf("%s is plain", schema)
		}
	}
}

// FuzzPlainInputs compares with the whole check.
func FuzzPlainInputs(f *testing.F) {
	s := plainInputSchema(f)
	for _, text := range []string{`{"path":"a"}`, `{"exact":true,"globs":[],"limit":-5,"other":"","path":"a"}`, `{"limit":123456789012345678901,"path":""}`, `{"limit":-0,"path":"a"}`, `{"count":9,"mode":"two","path":"a"}`} {
		f.Add(text)
	}
	whole := &inputSchema{tool: s.tool, compiled: s.compiled}
	f.Fuzz(func(t *testing.T, text string) {
		if !s.plain.accepts([]byte(text)) {
			t.Skip()
		}
		if canonical, err := whole.validate([]byte(text)); err != nil || string(canonical) != text {
			t.Errorf("%q is accepted, and the whole check returns %q, %v", text, canonical, err)
		}
	})
}
