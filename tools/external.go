// Tools whose schema comes from outside the tree, such as from an MCP server or a settings file.
// The schema is not trusted: references are not loaded, and the cost of checking an input is
// limited.

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err = compiler.AddResource("input.json", document); err != nil {
		return nil, fmt.Errorf("its schema is not valid: %w", err)
	}
	compiled, err := compiler.Compile("input.json")
	if err != nil {
		return nil, fmt.Errorf("its schema is not valid: %w", err)
	}
	if !(&expansion{left: maxBranches}).visit(compiled, map[string]any{}, nil) {
		return nil, fmt.Errorf("its schema has more than %d branches for one value", maxBranches)
	}
	return compiled, nil
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
	for _, part := range sameValue(s) {
		if !e.visit(part, value, above) {
			return false
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if !e.visitAll(ofProperty(s, name), inner) || !e.visit(s.PropertyNames, name, nil) {
				return false
			}
		}
	case []any:
		for i, inner := range value {
			if !e.visitAll(ofItem(s, i), inner) {
				return false
			}
		}
	}
	return true
}

func (e *expansion) visitAll(parts []*jsonschema.Schema, value any) bool {
	return !slices.ContainsFunc(parts, func(part *jsonschema.Schema) bool { return !e.visit(part, value, nil) })
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
