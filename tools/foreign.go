// Makes a tool whose schema somebody else has written, such as an MCP server or a settings file. It trusts that schema with
// nothing: none is fetched, and none may make a check of an input costly. It does not know who carries the tool out.

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What a foreign schema may be. All are ours: the largest schema of the servers that we know has 40 kB; maxBranches counts how
// often one value of an input is held against some part of the schema, and maxPath how often all values are that enclose one.
const (
	maxForeignSchema = 128 << 10
	maxBranches      = 2000
	maxPath          = 100_000
)

// NewForeign makes a Tool whose input is checked against full, a JSON Schema that is not ours, and handed on as it is: with
// its keys sorted, and nothing else done to it. A spec without an InputSchema shows it as Flat makes it. The error says what is wrong with
// the schema.
func NewForeign(spec Spec, full json.RawMessage, funcs Funcs[json.RawMessage]) (Tool, error) {
	compiled, err := compileForeign(full)
	if err != nil {
		return nil, err
	}
	check := &inputSchema{tool: spec.Name, compiled: compiled, depth: (&pather{known: map[step]int{}}).depth(compiled)}
	if len(spec.InputSchema) == 0 {
		if spec.InputSchema, err = shown(full); err != nil {
			return nil, err
		}
	}
	return &typed[json.RawMessage]{spec: spec, check: check, funcs: funcs}, nil
}

// shown gives the schema that models are given for full, which compiles.
func shown(full json.RawMessage) (json.RawMessage, error) {
	object := map[string]any{}
	if err := json.Unmarshal(full, &object); err != nil {
		return nil, fmt.Errorf("its schema is no JSON object: %w", err)
	}
	return json.Marshal(Flat(object))
}

// compileForeign compiles a schema of an object.
func compileForeign(text json.RawMessage) (*jsonschema.Schema, error) {
	if len(text) > maxForeignSchema {
		return nil, fmt.Errorf("its schema has %d bytes, and no more than %d are taken", len(text), maxForeignSchema)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("its schema is no JSON: %w", err)
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is no JSON object")
	}
	if kind, typed := object["type"]; typed && kind != "object" {
		return nil, fmt.Errorf("its schema wants the type %v, and an input is always an object", kind)
	}
	object["type"] = "object"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err = compiler.AddResource("input.json", document); err != nil {
		return nil, fmt.Errorf("its schema is none: %w", err)
	}
	compiled, err := compiler.Compile("input.json")
	if err != nil {
		return nil, fmt.Errorf("its schema is none: %w", err)
	}
	if w := (weigher{of: map[*jsonschema.Schema]int{}}); w.weigh(compiled) > maxBranches {
		return nil, fmt.Errorf("its schema has more than %d branches for one value", maxBranches)
	}
	return compiled, nil
}

// nowhere loads no schema: a reference to a file would be read with the daemon's rights.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and schemas are not loaded from anywhere", url)
}

// A weigher counts how often one value is held against parts of a schema. References that fork at each step make of a short
// schema one that takes longer than the universe.
type weigher struct {
	of map[*jsonschema.Schema]int
}

// weigh is at most a little over maxBranches. A reference that comes back to where it began for the same value weighs nothing:
// the validator sees it and goes no further.
func (w weigher) weigh(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	if known, ok := w.of[s]; ok {
		return known
	}
	w.of[s] = 0
	total := 1
	for _, part := range sameValue(s) {
		if total += w.weigh(part); total > maxBranches {
			break
		}
	}
	inner, others := innerValues(s) // other values; they only have to be light by themselves
	for _, part := range inner {
		others = append(others, part.schema)
	}
	for _, part := range others {
		if weight := w.weigh(part); weight > maxBranches {
			total = weight
		}
	}
	w.of[s] = total
	return total
}

// sameValue are the parts of a schema that the value itself is held against.
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
