// Flattening of a schema into one that model APIs accept: an object without anyOf, oneOf and allOf
// at its root. The flat schema accepts everything that the original accepts, and maybe more. Inputs
// are checked against the original.

package tools

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// deepest limits how far choices within choices, and references, are followed. most limits their
// total number.
const (
	deepest = 8
	most    = 1000
)

// Flat returns the schema that models see instead of full.
func Flat(full map[string]any) map[string]any {
	shown := maps.Clone(full)
	f := flattener{root: full, properties: map[string]any{}}
	required := f.gather(full, 0)
	for _, key := range []string{"anyOf", "oneOf", "allOf", "$ref"} {
		if _, has := shown[key]; has {
			f.changed = true
			delete(shown, key)
		}
	}
	shown["type"] = "object"
	if !f.changed {
		if _, has := shown["properties"]; !has {
			shown["properties"] = map[string]any{}
		}
		return shown
	}
	// A branch's own properties are unknown to the root and to the other branches.
	delete(shown, "additionalProperties")
	delete(shown, "unevaluatedProperties")
	delete(shown, "required")
	shown["properties"] = f.properties
	if len(required) > 0 {
		shown["required"] = required
	}
	return shown
}

type flattener struct {
	root       map[string]any
	properties map[string]any
	changed    bool
	looked     int // schemas visited
}

// gather adds the properties of a schema and of its branches, and returns the names of those that
// every input needs, sorted.
func (f *flattener) gather(s map[string]any, depth int) []string {
	if f.looked++; depth > deepest || f.looked > most {
		return nil
	}
	f.add(s)
	required := texts(s["required"])
	if ref, ok := s["$ref"].(string); ok {
		required = append(required, f.gather(f.resolve(ref), depth+1)...)
	}
	for _, branch := range branches(s["allOf"]) {
		required = append(required, f.gather(branch, depth+1)...)
	}
	for _, choice := range []string{"anyOf", "oneOf"} {
		var common []string
		for i, branch := range branches(s[choice]) {
			needs := f.gather(branch, depth+1)
			if i == 0 {
				common = needs
				continue
			}
			common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(needs, name) })
		}
		required = append(required, common...)
	}
	slices.Sort(required)
	return slices.Compact(required)
}

// add adds the properties of one schema. Where two schemas define the same property, either
// definition may hold.
func (f *flattener) add(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		there, has := f.properties[name]
		switch {
		case !has:
			f.properties[name] = properties[name]
		case !same(there, properties[name]):
			f.properties[name] = either(there, properties[name])
		}
	}
}

// either returns a schema that accepts what a or b accepts.
func either(a, b any) any {
	if choice, ok := a.(map[string]any); ok && len(choice) == 1 {
		if list, ok := choice["anyOf"].([]any); ok {
			if slices.ContainsFunc(list, func(known any) bool { return same(known, b) }) {
				return a
			}
			return map[string]any{"anyOf": append(slices.Clone(list), b)}
		}
	}
	return map[string]any{"anyOf": []any{a, b}}
}

func same(a, b any) bool {
	first, err := json.Marshal(a)
	second, other := json.Marshal(b)
	return err == nil && other == nil && string(first) == string(second)
}

// resolve follows a reference within the schema. It returns nil for any other reference.
func (f *flattener) resolve(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := f.root
	for part := range strings.SplitSeq(path, "/") {
		at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)].(map[string]any)
	}
	return at
}

func branches(list any) (all []map[string]any) {
	several, _ := list.([]any)
	for _, one := range several {
		branch, _ := one.(map[string]any) // the schemas true and false define no properties
		all = append(all, branch)
	}
	return all
}

func texts(list any) (all []string) {
	several, _ := list.([]any)
	for _, one := range several {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
