// The call of "toold call", as its arguments have it. Which form is meant is told by the arguments alone; what type a
// field has, the daemon tells.

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// readCallArgs reads NAME, NAME JSON, NAME -, NAME FIELD=VALUE... or NAME(VALUE).
func (s *app) readCallArgs(ctx context.Context, args []string, session string) (use, error) {
	dir, err := os.Getwd()
	if err != nil {
		return use{}, err
	}
	name, rest := args[0], args[1:]
	if strings.HasSuffix(name, ")") && len(rest) == 0 {
		return readWholeCall(name, dir)
	}
	u := use{name: name, input: "{}"}
	switch {
	case len(rest) == 1 && rest[0] == "-":
		text, err := io.ReadAll(s.stdin)
		if err != nil {
			return use{}, misused("standard input cannot be read: %v", err)
		}
		u.input = string(text)
	case len(rest) == 1 && !isField(rest[0]):
		u.input = rest[0]
	case len(rest) > 0:
		u.input, err = s.fields(ctx, name, rest, session, dir)
	}
	if err != nil {
		return use{}, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(u.input), &object); err != nil {
		return use{}, misused("the input is not a JSON object: %v. In a shell, put it in single quotes: toold call Bash '{\"command\":\"ls\"}'; or name the fields: toold call Bash command='ls'", err)
	}
	return u, nil
}

// readWholeCall reads NAME(VALUE), if the value is all that the tool needs.
func readWholeCall(text, dir string) (use, error) {
	name, _, _ := strings.Cut(text, "(")
	if lacks := blanks[name].lacks; lacks != "" {
		return use{}, misused("%s needs %s too: name the fields, as in toold call %s FIELD=VALUE..., or give its input as JSON", name, lacks, name)
	}
	return readCall(text, dir)
}

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// isField reports whether an argument is FIELD=VALUE and not JSON.
func isField(text string) bool {
	name, _, found := strings.Cut(text, "=")
	return found && fieldName.MatchString(name)
}

// pathFields are the fields that hold a path; a relative one is meant from where the person is.
var pathFields = []string{"file_path", "notebook_path", "path"}

// fields makes an input of FIELD=VALUE arguments. A field that is a string to the tool takes its value as it is; any
// other takes it as JSON.
func (s *app) fields(ctx context.Context, tool string, args []string, session, dir string) (string, error) {
	types, err := s.fieldTypes(ctx, tool, session)
	if err != nil {
		return "", err
	}
	input := map[string]any{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		if !isField(arg) {
			return "", misused("%q is not FIELD=VALUE", arg)
		}
		if _, twice := input[name]; twice {
			return "", misused("the field %q is given twice", name)
		}
		var other any
		switch {
		case types[name] != "" && types[name] != "string" && json.Unmarshal([]byte(value), &other) == nil:
			input[name] = json.RawMessage(value)
		case slices.Contains(pathFields, name):
			input[name] = pathFrom(dir, value)
		default:
			input[name] = value
		}
	}
	text, err := json.Marshal(input)
	return string(text), err
}

// fieldTypes returns the JSON type of each field of a tool's input that has one; nothing for a tool that is not known,
// which the daemon refuses.
func (s *app) fieldTypes(ctx context.Context, tool, session string) (map[string]string, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list, err := l.tools.ListTools(ctx, &tooldv1.ListToolsRequest{SessionId: session})
	if err != nil && session != "" { // it may be about to be made
		list, err = l.tools.ListTools(ctx, &tooldv1.ListToolsRequest{})
	}
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	for _, t := range list.GetTools() {
		if t.GetName() != tool {
			continue
		}
		var schema struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		_ = json.Unmarshal([]byte(t.GetInputSchemaJson()), &schema) // without it, all are strings
		for name, property := range schema.Properties {
			types[name], _ = property.Type.(string)
		}
	}
	return types, nil
}
