// Checks a tool's input against its schema and puts every violation into words.

package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/toold/toold/tools/fault"
)

// A Violation is one way in which an input does not fit its schema. Details of "invalid_input" hold all of them.
type Violation struct {
	Field    string `json:"field"`    // JSON pointer
	Expected string `json:"expected"` // what the schema wants there
}

// Violations are the details of an "invalid_input" error.
type Violations struct {
	Violations []Violation `json:"violations"`
}

// Violated returns the fault "invalid_input" that lists all that is wrong with an input of the tool; found is not empty.
func Violated(tool string, found []Violation) *fault.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "The input of %s is not what it should be:", tool)
	for _, v := range found {
		fmt.Fprintf(&text, "\n- %s: %s", cmp.Or(v.Field, "the input"), v.Expected)
	}
	return fault.Invalidf("invalid_input", "%s", text.String()).At(found[0].Field).With(Violations{found})
}

type inputSchema struct {
	tool     string
	compiled *jsonschema.Schema
	external bool // not ours: the cost of a check is limited
}

func compile(tool string, text json.RawMessage) *inputSchema {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		compiler := jsonschema.NewCompiler()
		if err = compiler.AddResource("input.json", document); err == nil {
			var compiled *jsonschema.Schema
			if compiled, err = compiler.Compile("input.json"); err == nil {
				return &inputSchema{tool: tool, compiled: compiled}
			}
		}
	}
	panic(fmt.Sprintf("BUG: schema of tool %s: %v", tool, err))
}

// validate returns the input in canonical form: keys sorted, and numbers that are whole written as such, so that 50.0
// is an integer where the schema wants one. The error is a *fault.Error.
func (s *inputSchema) validate(input json.RawMessage) (json.RawMessage, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil, fault.Invalidf("invalid_input", "The input of %s is not JSON: %v. Send one JSON object.", s.tool, err)
	}
	if key, found := repeated(input); found {
		return nil, fault.Invalidf("invalid_input", "The input of %s has the key %q twice, and readers differ in which they take. Send each key once.", s.tool, key)
	}
	if s.external && !(&expansion{left: maxChecks + checksPerByte*len(input)}).visit(s.compiled, value, nil) {
		return nil, fault.Invalidf("invalid_input", "The input of %s is nested too deeply to be checked against its schema, which leads to its inner values in too many ways. Send a flatter one.", s.tool)
	}
	if err := s.compiled.Validate(value); err != nil {
		return nil, s.violations(err)
	}
	canonical, err := json.Marshal(whole(value))
	if err != nil {
		return nil, fault.Invalidf("invalid_input", "The input of %s cannot be read: %v.", s.tool, err)
	}
	return canonical, nil
}

// repeated returns a key that an object of valid JSON has twice. What a person, a hook and the tool see has to be the same.
func repeated(input json.RawMessage) (key string, found bool) {
	tokens := json.NewDecoder(bytes.NewReader(input))
	tokens.UseNumber()
	type object struct {
		keys  map[string]bool // nil: it is a list
		value bool            // a value comes next, no key
	}
	open := []object{{}}
	for {
		token, err := tokens.Token()
		if err != nil {
			return "", false
		}
		in := &open[len(open)-1]
		if name, ok := token.(string); ok && in.keys != nil && !in.value {
			if in.keys[name] {
				return name, true
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

// longestNumber bounds what whole expands: 1e999999999 is a whole number too.
const longestNumber = 32

// whole rewrites numbers like 50.0 and 5e1 as 50.
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
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fault.Invalidf("invalid_input", "The input of %s does not fit its schema: %v.", s.tool, err)
	}
	english := message.NewPrinter(language.English)
	var found []Violation
	leaves(invalid, func(leaf *jsonschema.ValidationError) {
		found = append(found, Violation{pointer(leaf.InstanceLocation), leaf.ErrorKind.LocalizedString(english)})
	})
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
