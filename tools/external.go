// Tools whose schema comes from outside the tree, such as from an MCP server or a settings file. The schema is not trusted:
// references are not loaded, and the cost of checking an input is limited. Models see a flat schema, which model APIs accept: an
// object without anyOf, oneOf and allOf at its root. It accepts everything that the original accepts, and maybe more. Inputs are
// checked against the original.

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits on the cost of an external schema. The numbers are our own: the largest schema of the
// servers that we have seen has 40 kB. maxBranches is the number of subschemas that an empty object
// may be checked against. An input, with all values in it, may be checked against maxChecks
// subschemas, and against checksPerByte more for each of its bytes.
const (
	maxExternalSchema = 128 << 10
	maxBranches       = 2000
	maxChecks         = 100_000
	checksPerByte     = 16
)

// NewExternal makes a Tool whose input is checked against full, an external JSON Schema. The input
// is passed on with its keys sorted and otherwise unchanged. A spec without an InputSchema shows
// models the result of Flat. The error describes what is wrong with the schema.
func NewExternal(spec Spec, full json.RawMessage, funcs Funcs[json.RawMessage]) (Tool, error) {
	compiled, err := compileExternal(full)
	if err != nil {
		return nil, err
	}
	check := &inputSchema{tool: spec.Name, compiled: compiled, external: true}
	if len(spec.InputSchema) == 0 {
		if spec.InputSchema, err = shown(full); err != nil {
			return nil, err
		}
	}
	return &typed[json.RawMessage]{spec: spec, check: check, funcs: funcs}, nil
}

// shown returns the schema that models see instead of full, which compiles.
func shown(full json.RawMessage) (json.RawMessage, error) {
	object := map[string]any{}
	if err := json.Unmarshal(full, &object); err != nil {
		return nil, fmt.Errorf("its schema is not a JSON object: %w", err)
	}
	text, err := json.Marshal(Flat(object))
	if err == nil && len(text) > 2*maxExternalSchema {
		err = errors.New("its schema becomes too long without the choices at its root")
	}
	return text, err
}

// compileExternal compiles a schema of an object.
func compileExternal(text json.RawMessage) (*jsonschema.Schema, error) {
	if len(text) > maxExternalSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than the limit of %d", len(text), maxExternalSchema)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("its schema is not JSON: %w", err)
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is not a JSON object")
	}
	if kind, typed := object["type"]; typed && kind != "object" {
		return nil, fmt.Errorf("its schema has the type %v, but an input is always an object", kind)
	}
	object["type"] = "object"
	schema, err := compiled(document)
	if err != nil {
		return nil, fmt.Errorf("its schema is not valid: %w", err)
	}
	if !(&expansion{left: maxBranches}).visit(schema, map[string]any{}, nil) {
		return nil, fmt.Errorf("its schema has more than %d branches for one value", maxBranches)
	}
	return schema, nil
}

// nowhere is a loader that loads no schema: a reference to a file would be read with the daemon's
// permissions.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and references to other documents are not loaded", url)
}

// An expansion counts the checks of one value against a schema: each subschema as often as a
// validator applies it. A schema that refers to itself in two places is applied 2^n times n levels
// down. A short schema with references that fork at each step can take practically forever.
type expansion struct {
	left int // checks that are left before the limit
}

// visit counts the checks of value against s and reports whether they are within the limit. A
// reference back to a schema above it, for the same value, costs nothing: the validator notices the
// cycle and stops.
func (e *expansion) visit(s *jsonschema.Schema, value any, above []*jsonschema.Schema) bool {
	if s == nil || slices.Contains(above, s) {
		return true
	}
	if e.left--; e.left < 0 {
		return false
	}
	above = append(above, s)
	if !e.visitAll(sameValue(s), value, above) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if !e.visitAll(ofProperty(s, name), inner, nil) || !e.visit(s.PropertyNames, name, nil) {
				return false
			}
		}
	case []any:
		for i, inner := range value {
			if !e.visitAll(ofItem(s, i), inner, nil) {
				return false
			}
		}
	}
	return true
}

func (e *expansion) visitAll(parts []*jsonschema.Schema, value any, above []*jsonschema.Schema) bool {
	return !slices.ContainsFunc(parts, func(part *jsonschema.Schema) bool { return !e.visit(part, value, above) })
}

// ofProperty returns the subschemas that the named property is checked against. Some may be nil.
func ofProperty(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	own, named := s.Properties[name]
	parts := []*jsonschema.Schema{own, s.UnevaluatedProperties}
	for pattern, part := range s.PatternProperties {
		if pattern.MatchString(name) {
			parts = append(parts, part)
		}
	}
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !named {
		parts = append(parts, more)
	}
	return parts
}

// ofItem returns the subschemas that the item at index is checked against. Some may be nil.
func ofItem(s *jsonschema.Schema, index int) []*jsonschema.Schema {
	parts := []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems}
	places := s.PrefixItems
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		parts = append(parts, items)
	case []*jsonschema.Schema:
		places = items
	}
	if index < len(places) {
		return append(parts, places[index])
	}
	if more, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		parts = append(parts, more)
	}
	return parts
}

// sameValue returns the subschemas that the value itself is checked against. Some may be nil.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	parts := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		parts = append(parts, s.DynamicRef.Ref)
	}
	for _, several := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		parts = append(parts, several...)
	}
	for _, part := range s.DependentSchemas {
		parts = append(parts, part)
	}
	for _, part := range s.Dependencies {
		if part, ok := part.(*jsonschema.Schema); ok {
			parts = append(parts, part)
		}
	}
	return parts
}

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
