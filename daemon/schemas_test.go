// What the schemas of tools say about values is what the tools do.

package daemon_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/lsp"
	"github.com/toold/toold/tools/notebook"
	"github.com/toold/toold/tools/toolsearch"
)

// A valueSchema is what a schema says about a value.
type valueSchema struct {
	Type       string                 `json:"type"`
	Enum       []string               `json:"enum"`
	Default    json.RawMessage        `json:"default"`
	Minimum    *int64                 `json:"minimum"`
	Maximum    *int64                 `json:"maximum"`
	Properties map[string]valueSchema `json:"properties"`
	Items      *valueSchema           `json:"items"`
	Required   []string               `json:"required"`
}

// example returns a value that fits.
func (s valueSchema) example() any {
	switch {
	case s.Enum != nil:
		return s.Enum[0]
	case s.Type == "string":
		return "/x"
	case s.Type == "array":
		return []any{s.Items.example()}
	case s.Type == "object":
		value := map[string]any{}
		for _, name := range s.Required {
			value[name] = s.Properties[name].example()
		}
		return value
	}
	return 1
}

// with returns an input that is an example but for the value at a path.
func (s valueSchema) with(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if s.Type == "array" {
		return []any{s.Items.with(path[1:], value)}
	}
	whole := s.example().(map[string]any)
	whole[path[0]] = s.Properties[path[0]].with(path[1:], value)
	return whole
}

// each visits all values below, with their paths.
func (s valueSchema) each(path []string, visit func([]string, valueSchema)) {
	visit(path, s)
	for name, property := range s.Properties {
		property.each(append(slices.Clone(path), name), visit)
	}
	if s.Items != nil {
		s.Items.each(append(slices.Clone(path), "0"), visit)
	}
}

func schemaOf(t *testing.T, tool tools.Tool) (s valueSchema) {
	t.Helper()
	if err := json.Unmarshal(tool.Spec().InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemasBind: what an enum or a bound excludes is refused, with the place; what they allow is not.
func TestSchemasBind(t *testing.T) {
	said := 0
	for _, tool := range append(toolset(), lsp.Tool(), notebook.Tool(), toolsearch.Tool()) {
		schema := schemaOf(t, tool)
		check := func(path []string, value any, fits bool) {
			said++
			input, err := json.Marshal(schema.with(path, value))
			if err != nil {
				t.Fatal(err)
			}
			_, err = tool.Parse(input)
			field := "/" + strings.Join(path, "/")
			wrong := err != nil && fault.From(err).Code == "invalid_input" && strings.Contains(err.Error(), "- "+field+": ")
			if wrong == fits {
				t.Errorf("%s %s: %v, want %s refused: %v", tool.Spec().Name, input, err, field, !fits)
			}
		}
		schema.each(nil, func(path []string, s valueSchema) {
			for _, value := range s.Enum {
				check(path, value, true)
			}
			if s.Enum != nil {
				check(path, "none of them", false)
			}
			if s.Minimum != nil {
				check(path, *s.Minimum, tool.Spec().Name != "LSP") // some questions need a place
				check(path, *s.Minimum-1, false)
			}
			if s.Maximum != nil {
				check(path, *s.Maximum, true)
				check(path, *s.Maximum+1, false)
			}
		})
	}
	if said < 50 {
		t.Errorf("the schemas say %d things about values", said)
	}
}

// TestSchemaDefaults: a call with a default in it does what the call without does.
func TestSchemaDefaults(t *testing.T) {
	h := prepare(t, notebook.Tool())
	h.start()
	c := h.join("s", free())
	lines := h.file("lines", strings.Repeat("line\n", 2100))
	h.file("book.ipynb", `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":["1"]}]}`)
	bases := map[string]string{
		"BashInput": `{"bash_id":"none"}`, // refused
		"Bash":      `{"command":"echo it"}`, "Shell": `{"commands":["echo it"]}`, "Read": `{"file_path":"` + lines + `"}`,
		"Grep":         `{"pattern":"line","path":"` + lines + `","output_mode":"content"}`,
		"Edit":         `{"file_path":"` + lines + `","old_string":"line","new_string":"word"}`, // refused: it is there more than once
		"MultiEdit":    `{"file_path":"` + lines + `","edits":[{"old_string":"line","new_string":"word"}]}`,
		"NotebookEdit": `{"notebook_path":"` + h.root + `/book.ipynb","cell_id":"a","new_source":"2"}`,
	}
	count := 0
	run := func(tool string, input map[string]any) string {
		text, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		count++
		id := fmt.Sprint(count)
		c.use(id, tool, string(text))
		c.endTurn()
		var told []string
		for _, content := range c.results()[id].GetContent() {
			told = append(told, content.GetText())
		}
		return strings.Join(told, "\n")
	}
	run("Read", map[string]any{"file_path": h.root + "/book.ipynb"})
	run("NotebookEdit", map[string]any{"notebook_path": h.root + "/book.ipynb", "cell_id": "a", "new_source": "2"}) // from now on it changes nothing
	for _, tool := range append(toolset(), notebook.Tool()) {
		name := tool.Spec().Name
		schemaOf(t, tool).each(nil, func(path []string, s valueSchema) {
			if s.Default == nil {
				return
			}
			base := map[string]any{}
			if err := json.Unmarshal([]byte(bases[name]), &base); err != nil {
				t.Errorf("%s has a default, and no call is tried: %v", name, err)
				return
			}
			if path[0] == "output_mode" {
				delete(base, "output_mode")
			}
			without := run(name, base)
			at := base
			if len(path) > 1 {
				at = base[path[0]].([]any)[0].(map[string]any)
			}
			at[path[len(path)-1]] = s.Default
			if with := run(name, base); with != without {
				t.Errorf("%s with %s %s:\n%.300s\nwithout:\n%.300s", name, path, s.Default, with, without)
			}
		})
	}
	if def := schemaOf(t, toolsearch.Tool()).Properties["max_results"].Default; string(def) != "5" {
		t.Errorf("max_results is %s, want what ranked takes", def)
	}
}
