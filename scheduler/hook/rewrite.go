// Joining inputs that several hooks have rewritten. All of them received the same input, so each
// counts for the fields that it changed, added or removed.

package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/ellipsis"
)

// rewrite returns the input with all changes of the hooks; nil: none. Two hooks that set a field to
// different values conflict, which denies the call.
func rewrite(original json.RawMessage, hooks []*Hook, all []heard) (json.RawMessage, *permission.Opinion) {
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
			by[name], result[name] = hooks[i], one.input[name]
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	maps.DeleteFunc(result, func(_ string, value json.RawMessage) bool { return value == nil }) // a hook has removed it
	text, err := encoded(result)
	if err != nil {
		panic("BUG: values that were read as JSON cannot be written: " + err.Error())
	}
	return bytes.TrimSpace(text), nil
}

// changed returns the names of the fields in which two objects differ, sorted.
func changed(from, to object) (names []string) {
	for _, o := range []object{from, to} {
		for name := range o {
			if !equal(from, to, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// equal reports whether a field is the same in two objects: absent in both, or the same value in
// any notation. Programs reformat numbers, so numbers are compared as floating point.
func equal(a, b object, name string) bool {
	var left, right any
	return bytes.Equal(a[name], b[name]) ||
		json.Unmarshal(a[name], &left) == nil && json.Unmarshal(b[name], &right) == nil && reflect.DeepEqual(left, right)
}

func conflict(name string, first, second *Hook, one, other object) *permission.Opinion {
	value := func(o object) string { return cmp.Or(ellipsis.Bytes(string(o[name]), 200), "none") }
	return new(Deny.opinion(second, capped(fmt.Sprintf(
		"Two hooks give the field %q of the input different values: %s by the %s, and %s by the %s. Only one of them may change it.",
		ellipsis.Bytes(name, 200), value(one), first, value(other), second))))
}
