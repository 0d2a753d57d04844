// What hooks are not told: secrets, in whose place they read marks. A hook that rewrites an input gives the marks back with
// it, and what stands behind them is put in again here. What looks like a secret is package redact's to say.

package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toold/toold/tools/ellipsis"
	"github.com/toold/toold/tools/redact"
)

// A telling is an event as a hook is told it.
type telling struct {
	text  []byte
	err   error // why it cannot be told
	input veil
}

// input returns what each of the hooks is told.
func (r Runner) input(in Input, hooks []*Hook) func(*Hook) telling {
	as := func(secrets *redact.Redactor) telling {
		told := in
		if !r.Plain {
			told = in.without(secrets)
		}
		text, err := told.encode()
		return telling{text, err, veil{in.ToolInput, told.ToolInput}}
	}
	all := as(redact.New(r.Filter.Secrets(r.Environ), r.Patterns))
	managed := all
	if !r.Plain && slices.ContainsFunc(hooks, func(h *Hook) bool { return h.Origin.Managed }) {
		managed = as(redact.New(nil, r.ManagedPatterns))
	}
	return func(h *Hook) telling {
		if h.Origin.Managed {
			return managed
		}
		return all
	}
}

// without returns the event with marks in place of secrets. Names and places stay: hooks find things by them.
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

// A veil is a call's input, and what hooks are told of it.
type veil struct{ given, told json.RawMessage }

// lift makes a rewritten input one of what was given: fields that came back as they were told are those that were given. It
// says as a clause why that cannot be; empty: it can. A mark in any other field would be written in the place of a secret.
func (v veil) lift(input object) string {
	if input == nil || bytes.Equal(v.given, v.told) {
		return ""
	}
	var given, told object
	_, _ = json.Unmarshal(v.given, &given), json.Unmarshal(v.told, &told) // an input that is no object has no fields
	for _, name := range slices.Sorted(maps.Keys(input)) {
		switch {
		case told[name] != nil && equal(told, input, name):
			input[name] = given[name]
		case redact.Marked(string(input[name])) && (!bytes.Equal(given[name], told[name]) || !redact.Marked(string(given[name]))):
			return fmt.Sprintf("gives the field %q of the input a value with a mark in it that begins with %q: hooks are not told the secret behind it, and the mark would be written in its place; "+
				"a field that holds one has to come back as it was told, unless the user's settings say \"redactHooks\": false", ellipsis.Bytes(name, 200), "[redacted: ")
		}
	}
	return ""
}
