// Package callargs reads a call from the arguments of "toold call" and "toold explain": as a rule is written, Bash(git push),
// as a name with a JSON input, or as a name with fields. It finds the main field of a tool's input and asks the daemon for the
// types of fields; the daemon decides what a valid input is.
package callargs

import (
	"context"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Place is where a call is to run.
type Place struct {
	Session string // empty: a new one
	Dir     string // that relative paths are meant from
	// Schema returns the schema of a tool's input, for a place of which the daemon cannot be asked; nil: it can.
	Schema func(tool string) json.RawMessage
}

// Read returns the call that the arguments of "toold call" describe: NAME, NAME JSON, NAME -, NAME FIELD=VALUE... or
// NAME(VALUE). For fields it asks the daemon for their types.
func Read(ctx context.Context, s *connect.Finder, args []string, at Place) (turn.Use, error) {
	var err error
	name, rest := args[0], args[1:]
	if strings.HasSuffix(name, ")") && len(rest) == 0 {
		tool, _, _ := strings.Cut(name, "(")
		if lacks := blanks[tool].lacks; lacks != "" { // the value is not all that the tool needs
			return turn.Use{}, cli.Misused("%s needs %s too: name the fields, as in toold call %s FIELD=VALUE..., or give its input as JSON", tool, lacks, tool)
		}
		return Parse(name, at.Dir)
	}
	u := turn.Use{Name: name, Input: "{}"}
	switch {
	case len(rest) == 1 && rest[0] == "-":
		text, err := io.ReadAll(s.Stdin)
		if err != nil {
			return turn.Use{}, cli.Misused("standard input cannot be read: %v", err)
		}
		u.Input = string(text)
	case len(rest) == 1 && !isField(rest[0]):
		u.Input = rest[0]
	case len(rest) > 0:
		u.Input, err = fields(ctx, s, name, rest, at)
	}
	if err != nil {
		return turn.Use{}, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(u.Input), &object); err != nil {
		return turn.Use{}, cli.Misused("the input is not a JSON object: %v. In a shell, put it in single quotes: toold call Bash '{\"command\":\"ls\"}'; or name the fields: toold call Bash command='ls'", err)
	}
	return u, nil
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
func fields(ctx context.Context, s *connect.Finder, tool string, args []string, at Place) (string, error) {
	types, err := fieldTypes(ctx, s, tool, at)
	if err != nil {
		return "", err
	}
	input := map[string]any{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		if !isField(arg) {
			return "", cli.Misused("%q is not FIELD=VALUE", arg)
		}
		if _, twice := input[name]; twice {
			return "", cli.Misused("the field %q is given twice", name)
		}
		var other any
		switch {
		case types[name] != "" && types[name] != "string" && json.Unmarshal([]byte(value), &other) == nil:
			input[name] = json.RawMessage(value)
		case slices.Contains(pathFields, name):
			input[name] = pathFrom(at.Dir, value)
		default:
			input[name] = value
		}
	}
	text, err := json.Marshal(input)
	return string(text), err
}

// fieldTypes returns the JSON type of each field of a tool's input that has one; nothing for a tool that is not known,
// which the daemon refuses.
func fieldTypes(ctx context.Context, s *connect.Finder, tool string, at Place) (map[string]string, error) {
	if at.Schema != nil {
		return typesIn(at.Schema(tool)), nil
	}
	l, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	list, err := l.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{SessionId: at.Session})
	if err != nil && at.Session != "" { // it may be about to be made
		list, err = l.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{})
	}
	if err != nil {
		return nil, err
	}
	for _, t := range list.GetTools() {
		if t.GetName() == tool {
			return typesIn(json.RawMessage(t.GetInputSchemaJson())), nil
		}
	}
	return nil, nil
}

// typesIn returns the JSON type of each field in a schema that has one.
func typesIn(text json.RawMessage) map[string]string {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(text, &schema) // without it, all are strings
	types := map[string]string{}
	for name, property := range schema.Properties {
		types[name], _ = property.Type.(string)
	}
	return types
}
