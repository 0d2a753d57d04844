package dialect

// The tools that a model API or its models define themselves, and the calls of toold's tools that they stand for. What a call of
// theirs does is decided here alone: rules, hooks, scheduling and the record see the canonical call.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// agentToolUse is the type of the events in which a managed agent asks for a call.
const agentToolUse = "agent.tool_use"

// A NativeTool is a tool of a model's own.
type NativeTool struct {
	Definition string   // as a request to the API has it, as JSON
	For        []string // the tools that it stands for. It is offered if the first of them is there
}

// A table is the tools of one format.
type table struct {
	tools []NativeTool
	// calls has a mapping for each name, or for each name with a command behind it and a blank between.
	calls map[string]mapping
	// glossary explains the names that errors use, which the model does not know.
	glossary string
	relative bool // its paths may be relative to the first root
}

// A mapping is how a call of a native tool becomes one of a tool.
type mapping struct {
	tool   string
	fields []field
	set    string // fields that the call has besides, as JSON
	dir    string // the tool to call instead if the path is that of a directory; empty: none
}

// A field is one of the native tool, with its name in the tool.
type field struct {
	native, name string
	optional     bool
	isPath       bool
}

var tables = map[Format]table{AnthropicNative: anthropicTools, AgentToolset: agentTools}

// NativeTools returns the tools that the format has itself.
func NativeTools(f Format) []NativeTool { return tables[f].tools }

// As returns the format of items of the format item that their client calls f, which is Silent if it does not say. false: they
// are not of the format that it says.
func (f Format) As(item Format) (Format, bool) {
	switch {
	case f == Silent || f == item:
		return item, true
	case item == Anthropic && tables[f].calls != nil:
		return f, true
	}
	return item, false
}

// Canonical returns the call that a use in that format stands for. root is the session's first root. A tool that the format does
// not define is called by its own name. The error describes what is wrong with the input, for the model.
func Canonical(f Format, u Use, root string) (Use, error) {
	t := tables[f]
	var in map[string]json.RawMessage
	if _, native := commandsOf(t, u.Name); !native {
		return u, nil
	} else if err := json.Unmarshal([]byte(u.Input), &in); err != nil || in == nil {
		return u, errors.New("the input is not a JSON object")
	}
	m, err := t.mapping(u.Name, in)
	if err != nil {
		return u, err
	}
	out, err := m.translate(in, t.relative, root)
	if err != nil {
		return u, err
	}
	made := u
	made.Native, made.Name = u.Name, m.tool
	if made.Input, err = asText(out); err != nil || m.dir == "" {
		return made, err
	}
	listing := Use{Name: m.dir}
	listing.Input, err = asText(map[string]json.RawMessage{"path": out["file_path"], "ignore": json.RawMessage(`[".*","node_modules"]`)})
	made.Directory = &listing
	return made, err
}

func asText(fields map[string]json.RawMessage) (string, error) {
	text, err := Marshal(fields)
	return string(text), err
}

// commandsOf returns the commands of a native tool, none if it has none.
func commandsOf(t table, name string) (commands []string, native bool) {
	for key := range t.calls {
		tool, command, has := strings.Cut(key, " ")
		if tool != name {
			continue
		}
		if native = true; has {
			commands = append(commands, command)
		}
	}
	slices.Sort(commands)
	return commands, native
}

// renames reports whether a native tool has other names for what it does than the tools that it stands for.
func (t table) renames(name string) bool {
	_, native := commandsOf(t, name)
	return native && (t.calls[name].tool == "" || t.calls[name].fields != nil)
}

// mapping returns the mapping for an input, from which it takes the command.
func (t table) mapping(name string, in map[string]json.RawMessage) (mapping, error) {
	if m, ok := t.calls[name]; ok {
		return m, nil
	}
	var command string
	_ = json.Unmarshal(in["command"], &command) // what is not a text is no command
	m, ok := t.calls[name+" "+command]
	if commands, _ := commandsOf(t, name); !ok {
		return m, fmt.Errorf("command is %s, and is one of %s", shownJSON(in["command"]), strings.Join(commands, ", "))
	}
	delete(in, "command")
	return m, nil
}

func shownJSON(text json.RawMessage) string {
	if text == nil {
		return "missing"
	}
	return excerpt(text)
}

// translate returns the input of the tool.
func (m mapping) translate(in map[string]json.RawMessage, relative bool, root string) (out map[string]json.RawMessage, err error) {
	if m.fields == nil {
		return in, nil
	}
	out = map[string]json.RawMessage{}
	if m.set != "" {
		if err := json.Unmarshal([]byte(m.set), &out); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	for _, f := range m.fields {
		value, given := in[f.native]
		delete(in, f.native)
		switch {
		case !given && f.isPath && f.optional:
			value, err = Marshal(root)
		case !given && f.optional, given && f.optional && string(value) == "null":
			continue
		case !given:
			return nil, fmt.Errorf("%s is missing", f.native)
		case f.native == "view_range":
			err = putRange(out, value)
		case f.isPath && relative:
			value, err = below(root, value)
		}
		if err != nil {
			return nil, err
		}
		if f.name != "" {
			out[f.name] = value
		}
	}
	if len(in) > 0 {
		return nil, fmt.Errorf("there is no field %s", strings.Join(slices.Sorted(maps.Keys(in)), ", "))
	}
	return out, nil
}

// below returns a path, as JSON, that is relative to root.
func below(root string, value json.RawMessage) (json.RawMessage, error) {
	var name string
	if json.Unmarshal(value, &name) != nil || name == "" || path.IsAbs(name) {
		return value, nil // the tool reports what is wrong with it
	}
	return Marshal(path.Join(root, name))
}

// toEnd is the limit of a Read that goes to the end of the file.
const toEnd = 1_000_000_000

// putRange puts the first and the last line of a view_range into the input of a Read.
func putRange(out map[string]json.RawMessage, value json.RawMessage) error {
	var lines []int64
	if err := json.Unmarshal(value, &lines); err != nil || len(lines) != 2 && len(lines) != 0 {
		return fmt.Errorf("view_range is %s, and should be the numbers of the first and the last line, such as [1, 20] or [20, -1]", excerpt(value))
	}
	if len(lines) == 0 {
		return nil
	}
	first, count := max(1, lines[0]), int64(toEnd)
	if lines[1] > 0 {
		count = lines[1] - first + 1
	}
	if count <= 0 {
		return fmt.Errorf("view_range ends with line %d, before it begins", lines[1])
	}
	out["offset"], out["limit"] = json.RawMessage(fmt.Sprint(first)), json.RawMessage(fmt.Sprint(count))
	return nil
}
