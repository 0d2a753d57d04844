// Joining inputs that several hooks have rewritten. All of them received the same input, so each
// counts for the fields that it changed, added or removed.

package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/toold/toold/tools/text/ellipsis"
)

// rewrite returns the input with all changes of the hooks; nil: none. Two hooks that set a field to
// different values conflict, which denies the call.
func rewrite(original json.RawMessage, hooks []*Hook, all []heard) (json.RawMessage, *Reason) {
	if !slices.ContainsFunc(all, func(one heard) bool { return one.input != nil }) {
		return nil, nil
	}
	var given object
	_ = json.Unmarshal(original, &given) // an input that is not an object has no fields
	result, by := maps.Clone(given), map[string]*Hook{}
	if result == nil {
		result = object{}
	}
	for i, one := range all {
		if one.input == nil {
			continue
		}
		for _, name := range changed(given, one.input) {
			if first := by[name]; first != nil && !equal(result, one.input, name) {
				return nil, conflict(name, first, hooks[i], result, one.input)
			}
			by[name] = hooks[i]
			set(result, one.input, name)
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	return encoded(result), nil
}

// changed returns the names of the fields in which two objects differ, sorted.
func changed(from, to object) (names []string) {
	for name := range from {
		if !equal(from, to, name) {
			names = append(names, name)
		}
	}
	for name := range to {
		if _, there := from[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// set copies a field from one object to another, or removes it if it is absent there.
func set(in, from object, name string) {
	if value, there := from[name]; there {
		in[name] = value
	} else {
		delete(in, name)
	}
}

// equal reports whether a field is the same in two objects: absent in both, or the same value in
// any notation. Programs reformat numbers, so numbers are compared as floating point.
func equal(a, b object, name string) bool {
	one, inOne := a[name]
	other, inOther := b[name]
	if inOne != inOther || bytes.Equal(one, other) {
		return inOne == inOther
	}
	var left, right any
	if json.Unmarshal(one, &left) != nil || json.Unmarshal(other, &right) != nil {
		return false
	}
	return reflect.DeepEqual(left, right)
}

func conflict(name string, first, second *Hook, one, other object) *Reason {
	return &Reason{Decision: Deny, Origin: second.Origin, Text: capped(fmt.Sprintf(
		"Two hooks give the field %q of the input different values: %s by the %s, and %s by the %s. Only one of them may change it.",
		ellipsis.Bytes(name, 200), valueIn(one, name), first, valueIn(other, name), second))}
}

// valueIn returns the value of a field for messages.
func valueIn(o object, name string) string {
	value, there := o[name]
	if !there {
		return "none"
	}
	return ellipsis.Bytes(string(value), 200)
}

// encoded returns an object as JSON, its fields sorted by name.
func encoded(o object) json.RawMessage {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	if err := to.Encode(o); err != nil {
		panic("BUG: values that were read as JSON cannot be written: " + err.Error())
	}
	return bytes.TrimSpace(text.Bytes())
}
