// Tools made of a Go type and functions: the type defines the schema, the functions do the rest.

package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toold/toold/tools/fault"
)

// Funcs are the functions that make a tool of a typed input. Effects and Run are required.
type Funcs[In any] struct {
	// Validate checks what a schema cannot express; pure. Its error is a *fault.Error, usually
	// "invalid_input".
	Validate func(*In) error
	Effects  func(In) Effects
	// Situate returns the input completed with the session's state. If nil, the input is used as it
	// was parsed.
	Situate func(*Env, In) In
	Check   func(context.Context, *Env, In) (Preview, error)
	// TimeLimit returns the limit that the input asks for; 0: none.
	TimeLimit func(In) time.Duration
	Run       func(context.Context, *Env, In) (Result, error)
}

// New makes a Tool from a typed input and its functions. The input's JSON Schema is derived from
// In: `json` tags give the names, `omitempty` or `omitzero` makes a field optional, a `jsonschema`
// tag describes it. The tags `enum` (values separated by commas), `default`, `minimum` and `maximum` are
// the keywords of that name: Parse refuses what they exclude, but takes an empty text of an optional
// field as left out. New panics when In has no schema, because that is a programming error.
func New[In any](spec Spec, funcs Funcs[In]) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("BUG: tool %s: %v", spec.Name, err))
	}
	plain(schema)
	bound(schema, reflect.TypeFor[In]())
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	text := written(spec.Name, schema)
	if len(schema.Properties) == 0 { // some model APIs require the key
		text = append([]byte(`{"properties":{},`), text[1:]...)
	}
	spec.InputSchema = text
	tolerate(schema)
	return &typed[In]{spec: spec, check: compile(spec.Name, written(spec.Name, schema)), funcs: funcs}
}

func written(tool string, schema *jsonschema.Schema) json.RawMessage {
	text, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("BUG: tool %s: %v", tool, err))
	}
	return text
}

// tolerate lets an optional text be empty, as models send it for a field that they leave out.
func tolerate(s *jsonschema.Schema) {
	for name, property := range s.Properties {
		if property.Enum != nil && !slices.Contains(s.Required, name) {
			property.Enum = append(property.Enum, "")
		}
	}
}

// plain removes "null" from the types of pointer and slice fields: a model omits such a field
// instead of sending null.
func plain(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, property := range s.Properties {
		plain(property)
	}
	if s.Items != nil {
		plain(s.Items)
	}
}

// bound adds what the tags of a struct's fields say about their values.
func bound(s *jsonschema.Schema, of reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice {
			s = s.Items
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || s == nil {
		return
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.Properties[name]
		if property == nil {
			continue
		}
		bound(property, field.Type)
		if list, is := field.Tag.Lookup("enum"); is {
			for value := range strings.SplitSeq(list, ",") {
				property.Enum = append(property.Enum, value)
			}
		}
		property.Minimum, property.Maximum = number(field, "minimum"), number(field, "maximum")
		if value, is := field.Tag.Lookup("default"); is {
			if property.Type == "string" {
				value = strconv.Quote(value)
			}
			property.Default = json.RawMessage(value)
		}
	}
}

// number returns the number in a tag of a field; nil: the field has none.
func number(field reflect.StructField, tag string) *float64 {
	text, is := field.Tag.Lookup(tag)
	if !is {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("BUG: the tag %s of %s: %v", tag, field.Name, err))
	}
	return &n
}

type typed[In any] struct {
	spec  Spec
	check *inputSchema
	funcs Funcs[In]
}

func (t *typed[In]) Spec() Spec { return t.spec }

func (t *typed[In]) Parse(input json.RawMessage) (Action, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	canonical, err := t.check.validate(input)
	if err != nil {
		return nil, err
	}
	var in In
	if err := json.Unmarshal(canonical, &in); err != nil {
		return nil, unbound(t.spec.Name, err)
	}
	if t.funcs.Validate != nil {
		if err := t.funcs.Validate(&in); err != nil {
			return nil, err
		}
	}
	return &action[In]{in: in, effects: t.funcs.Effects(in), funcs: t.funcs}, nil
}

// unbound returns the fault for an input that fits the schema but not In, usually because a number
// is out of range.
func unbound(tool string, err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return fault.Invalidf("invalid_input", "The input of %s cannot be read: %v.", tool, err)
	}
	field := "/" + strings.ReplaceAll(wrong.Field, ".", "/")
	return fault.Invalidf("invalid_input", "The input of %s does not fit its schema:\n- %s: the %s is out of range", tool, field, wrong.Value).
		At(field).With(Violations{[]Violation{{Field: field, Expected: "a number within range"}}})
}

type action[In any] struct {
	in      In
	effects Effects
	funcs   Funcs[In]
}

func (a *action[In]) At(env *Env) Action {
	if a.funcs.Situate == nil {
		return a
	}
	in := a.funcs.Situate(env, a.in)
	return &action[In]{in: in, effects: a.funcs.Effects(in), funcs: a.funcs}
}

func (a *action[In]) Effects() Effects { return a.effects }

func (a *action[In]) TimeLimit() time.Duration {
	if a.funcs.TimeLimit == nil {
		return 0
	}
	return a.funcs.TimeLimit(a.in)
}

func (a *action[In]) Check(ctx context.Context, env *Env) (Preview, error) {
	if a.funcs.Check == nil {
		return Preview{}, nil
	}
	return a.funcs.Check(ctx, env, a.in)
}

func (a *action[In]) Run(ctx context.Context, env *Env) (Result, error) {
	return a.funcs.Run(ctx, env, a.in)
}
