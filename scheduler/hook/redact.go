// Secrets in events: hooks receive marks instead. If a hook rewrites an input, the marks in it are
// replaced by the secrets again. Package redact decides what is a secret.

package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toold/toold/tools/text/ellipsis"
	"github.com/toold/toold/tools/text/redact"
)

// A telling is an event as a hook receives it.
type telling struct {
	text  []byte
	err   error // why it cannot be sent
	input veil
}

// telling returns the event as the administrator's hooks, or the others, receive it.
func (r Runner) telling(in Input, managed bool) telling {
	told, secrets := in, redact.New(nil, r.ManagedPatterns)
	if !managed {
		secrets = redact.New(r.Filter.Secrets(r.Environ), r.Patterns)
	}
	if !r.Plain {
		told = in.without(secrets)
	}
	text, err := encoded(&told)
	return telling{text, err, veil{in.ToolInput, told.ToolInput}}
}

// without returns the event with marks instead of secrets. Names and paths stay: hooks need them.
func (in Input) without(secrets *redact.Redactor) Input {
	in.ToolInput, in.Response = secrets.JSON(in.ToolInput), secrets.JSON(in.Response)
	in.Error, in.Reason, in.Message = secrets.Text(in.Error), secrets.Text(in.Reason), secrets.Text(in.Message)
	in.Calls = slices.Clone(in.Calls)
	for i := range in.Calls {
		call := &in.Calls[i]
		call.Input, call.Response = secrets.JSON(call.Input), secrets.JSON(call.Response)
	}
	in.Suggestions = slices.Clone(in.Suggestions)
	for i := range in.Suggestions {
		rules := slices.Clone(in.Suggestions[i].Rules)
		for j := range rules {
			rules[j].Content = secrets.Text(rules[j].Content)
		}
		in.Suggestions[i].Rules = rules
	}
	return in
}

// A veil is a call's input, and what hooks receive of it.
type veil struct{ given, told json.RawMessage }

// lift replaces the marks of a rewritten input: fields that are equal to what the hook received get
// their original values. It returns, as a clause, why that is impossible; empty: it is done. A mark
// in any other field would be written instead of the secret.
func (v veil) lift(input object) string {
	if input == nil || bytes.Equal(v.given, v.told) {
		return ""
	}
	var given, told object
	_, _ = json.Unmarshal(v.given, &given), json.Unmarshal(v.told, &told) // an input that is not an object has no fields
	for _, name := range slices.Sorted(maps.Keys(input)) {
		switch {
		case told[name] != nil && equal(told, input, name):
			input[name] = given[name]
		case redact.Marked(string(input[name])) && (!bytes.Equal(given[name], told[name]) || !redact.Marked(string(given[name]))):
			return fmt.Sprintf("gives the field %q of the input a value with a mark in it that begins with %q: hooks are not told the secret behind it, and the mark would be written in its place; "+
				"a field with a mark must be returned unchanged, unless the user's settings have \"redactHooks\": false", ellipsis.Bytes(name, 200), "[redacted: ")
		}
	}
	return ""
}
