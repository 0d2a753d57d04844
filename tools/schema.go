// Validation of a tool's input against its schema. Every violation is reported, in words that a
// model can act on.

package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/toold/toold/tools/fault"
)

// A Violation is one way in which an input does not fit its schema. The details of an
// "invalid_input" fault list all of them.
type Violation struct {
	Field    string `json:"field"`    // JSON pointer
	Expected string `json:"expected"` // what the schema requires there
}

// Violations are the details of an "invalid_input" error.
type Violations struct {
	Violations []Violation `json:"violations"`
}

// Violated returns the fault "invalid_input" with all violations of an input of the tool. found
// must not be empty.
func Violated(tool string, found []Violation) *fault.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "Invalid input for %s:", tool)
	for _, v := range found {
		fmt.Fprintf(&text, "\n- %s: %s", cmp.Or(v.Field, "the input"), v.Expected)
	}
	return fault.Invalidf("invalid_input", "%s", text.String()).At(found[0].Field).With(Violations{found})
}

type inputSchema struct {
	tool     string
	compiled *jsonschema.Schema
	external bool // not ours: the cost of a check is limited
	plain    *plainSchema
}

func compile(tool string, text json.RawMessage) *inputSchema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		var schema *jsonschema.Schema
		if schema, err = compiled(document); err == nil {
			return &inputSchema{tool: tool, compiled: schema, plain: plainOf(text)}
		}
	}
	panic(fmt.Sprintf("BUG: schema of tool %s: %v", tool, err))
}

// compiled compiles a schema that refers to no other document.
func compiled(document any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource("input.json", document); err != nil {
		return nil, err
	}
	return compiler.Compile("input.json")
}

// validate returns the input in canonical form: keys are sorted, and whole numbers are written
// without a fraction, so that 50.0 is accepted where the schema requires an integer. The error is a
// *fault.Error.
func (s *inputSchema) validate(input json.RawMessage) (json.RawMessage, error) {
	if s.plain.accepts(input) {
		return input, nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil, fault.Invalidf("invalid_input", "The input of %s is not JSON: %v. Send one JSON object.", s.tool, err)
	}
	if members(input) != keysIn(value) {
		key := repeated(input)
		return nil, fault.Invalidf("invalid_input", "The input of %s has the key %q twice, and parsers disagree on which one counts. Send each key once.", s.tool, key)
	}
	if s.external && !(&expansion{left: maxChecks + checksPerByte*len(input)}).visit(s.compiled, value, nil) {
		return nil, fault.Invalidf("invalid_input", "The input of %s is nested too deeply: checking it against its schema would take too many steps. Send a flatter input.", s.tool)
	}
	if err := s.compiled.Validate(value); err != nil {
		return nil, s.violations(err)
	}
	if IsCanonical(input) {
		return input, nil
	}
	canonical, err := json.Marshal(whole(value))
	if err != nil {
		return nil, fault.Invalidf("invalid_input", "The input of %s cannot be read: %v.", s.tool, err)
	}
	return canonical, nil
}

// members counts the members of all objects in valid JSON: each has a colon. If there are more than
// keysIn counts in its value, an object has a key twice.
func members(input []byte) (count int) {
	quoted := false
	for i := 0; i < len(input); i++ {
		switch input[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ':':
			if !quoted {
				count++
			}
		}
	}
	return count
}

// keysIn counts the keys of all objects in a value.
func keysIn(value any) (count int) {
	switch value := value.(type) {
	case map[string]any:
		count = len(value)
		for _, member := range value {
			count += keysIn(member)
		}
	case []any:
		for _, element := range value {
			count += keysIn(element)
		}
	}
	return count
}

// repeated returns a key that an object in valid JSON has twice; empty: the key is, or there is
// none. The user, a hook and the tool must all see the same value.
func repeated(input json.RawMessage) (key string) {
	tokens := json.NewDecoder(bytes.NewReader(input))
	tokens.UseNumber()
	type object struct {
		keys  map[string]bool // nil in a list
		value bool            // the next token is a value, not a key
	}
	open := []object{{}}
	for {
		token, err := tokens.Token()
		if err != nil {
			return ""
		}
		in := &open[len(open)-1]
		if name, ok := token.(string); ok && in.keys != nil && !in.value {
			if in.keys[name] {
				return name
			}
			in.keys[name], in.value = true, true
			continue
		}
		in.value = false
		switch token {
		case json.Delim('{'):
			open = append(open, object{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// longestNumber limits the digits that whole writes: 1e999999999 is a whole number too.
const longestNumber = 32

// whole rewrites numbers such as 50.0 and 5e1 as 50.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = whole(value[key])
		}
	case []any:
		for i := range value {
			value[i] = whole(value[i])
		}
	case json.Number:
		if strings.ContainsAny(string(value), ".eE") && len(value) <= longestNumber {
			if f, _, err := big.ParseFloat(string(value), 10, 128, big.ToNearestEven); err == nil && f.IsInt() && f.MantExp(nil) < 64 {
				return json.Number(f.Text('f', 0))
			}
		}
	}
	return value
}

func (s *inputSchema) violations(err error) *fault.Error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return fault.Invalidf("invalid_input", "The input of %s does not fit its schema: %v.", s.tool, err)
	}
	english := message.NewPrinter(language.English)
	var found []Violation
	leaves(invalid, func(leaf *jsonschema.ValidationError) {
		if of, is := leaf.ErrorKind.(*kind.Enum); is { // the empty text is tolerated, not proposed
			leaf.ErrorKind = &kind.Enum{Got: of.Got, Want: slices.DeleteFunc(slices.Clone(of.Want), func(v any) bool { return v == "" })}
		}
		found = append(found, Violation{pointer(leaf.InstanceLocation), leaf.ErrorKind.LocalizedString(english)})
	})
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Field, b.Field) })
	return Violated(s.tool, found)
}

func leaves(err *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	if len(err.Causes) == 0 {
		visit(err)
	}
	for _, cause := range err.Causes {
		leaves(cause, visit)
	}
}

// pointer writes a location as a JSON pointer (RFC 6901).
func pointer(location []string) string {
	var text strings.Builder
	for _, part := range location {
		text.WriteByte('/')
		text.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return text.String()
}
