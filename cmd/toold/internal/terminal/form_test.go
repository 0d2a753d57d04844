package terminal

import (
	"encoding/json"
	"testing"
)

// TestFields: what is typed becomes a value of the field's type, or is asked for again.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		field field
		typed string
		want  string // JSON; empty: it does not fit
	}{
		{field{Type: "string"}, "a b ", `"a b "`},
		{field{}, "x", `"x"`},
		{field{Type: "integer"}, " 7 ", "7"},
		{field{Type: "integer"}, "7.5", ""},
		{field{Type: "number"}, "7.5", "7.5"},
		{field{Type: "boolean"}, "Yes", "true"},
		{field{Type: "boolean"}, "no", "false"},
		{field{Type: "boolean"}, "perhaps", ""},
		{field{Type: "string", Enum: []any{"red", "green"}}, "green", `"green"`},
		{field{Type: "string", Enum: []any{"red", "green"}}, "blue", ""},
		{field{Type: "integer", Enum: []any{1.0, 2.0}}, "2", "2"},
	} {
		value, ok := c.field.read(c.typed)
		text, err := json.Marshal(value)
		if err != nil || ok != (c.want != "") || ok && string(text) != c.want {
			t.Errorf("%+v, %q: %s, %t, want %s", c.field, c.typed, text, ok, c.want)
		}
	}
}
