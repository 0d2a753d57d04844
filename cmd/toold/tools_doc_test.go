package main

// Whether docs/tools.md is true of the built-in tools: its fields, limits and codes are compared with them. Its examples are
// run in tools_doc_run_test.go.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/lsp"
	"github.com/toold/toold/tools/memory"
	"github.com/toold/toold/tools/notebook"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/toolsearch"
	"github.com/toold/toold/tools/webfetch"
	"github.com/toold/toold/tools/websearch"
	"github.com/toold/toold/tools/write"
)

const toolsDocument = "../../docs/tools.md"

// A chapter is what stands under a heading of the second level.
type chapter struct{ name, text string }

func chapters(t *testing.T) (sections []chapter) {
	t.Helper()
	parts := strings.Split("\n"+content(t, toolsDocument), "\n## ")
	for _, part := range parts[1:] {
		name, text, _ := strings.Cut(part, "\n")
		sections = append(sections, chapter{name, text})
	}
	return sections
}

func chapterOf(t *testing.T, name string) string {
	t.Helper()
	for _, s := range chapters(t) {
		if s.name == name {
			return s.text
		}
	}
	t.Errorf("docs/tools.md has no section %q", name)
	return ""
}

// listedTool is a tool as "toold tools --json" lists it.
type listedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema string `json:"input_schema_json"`
}

// fieldSchema is what the checks look at of a schema.
type fieldSchema struct {
	Type        string                 `json:"type"`
	Description string                 `json:"description"`
	Properties  map[string]fieldSchema `json:"properties"`
	Items       *fieldSchema           `json:"items"`
	Required    []string               `json:"required"`
}

// undescribed returns the fields, at any depth, of which nothing is said.
func (s fieldSchema) undescribed(at string) (fields []string) {
	for name, property := range s.Properties {
		if len(strings.Fields(property.Description)) == 0 {
			fields = append(fields, at+"/"+name)
		}
		fields = append(fields, property.undescribed(at+"/"+name)...)
	}
	if s.Items != nil {
		fields = append(fields, s.Items.undescribed(at+"/*")...)
	}
	return fields
}

// TestToolsAreDescribed: every tool that is listed has a section in docs/tools.md, whose table of fields is its schema, and
// says enough of itself and of each field.
func TestToolsAreDescribed(t *testing.T) {
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"webSearch": {"backend": "searxng", "url": "http://127.0.0.1:9"}}`})
	out, err := self(t, t.Context(), h.environ, h.dir, "tools", "--json", "--all").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []listedTool `json:"tools"`
	}
	if err := json.Unmarshal(out, &list); err != nil || len(list.Tools) < len(toolset(settingsFiles{})) {
		t.Fatalf("%d tools, %v, of %s", len(list.Tools), err, out)
	}
	for _, tool := range list.Tools {
		t.Run(tool.Name, func(t *testing.T) {
			if words := len(strings.Fields(tool.Description)); words < 10 {
				t.Errorf("its description has %d words", words)
			}
			var schema fieldSchema
			if err := json.Unmarshal([]byte(tool.InputSchema), &schema); err != nil {
				t.Fatal(err)
			}
			if fields := schema.undescribed(""); len(fields) > 0 {
				t.Errorf("nothing is said of %v", fields)
			}
			same(t, "the table of fields", fieldsTold(chapterOf(t, tool.Name)), fieldsOf(schema)...)
		})
	}
}

var fieldRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ((?:string|integer|boolean|array)(?:, required)?) \\|.* \\|$")

func fieldsTold(text string) (rows []string) {
	for _, row := range fieldRow.FindAllStringSubmatch(text, -1) {
		rows = append(rows, row[1]+": "+row[2])
	}
	slices.Sort(rows)
	return rows
}

// fieldsOf returns what the rows should be. What is in the entries of a list is named edits[].old_string.
func fieldsOf(s fieldSchema) (rows []string) {
	for name, property := range s.Properties {
		row := name + ": " + property.Type
		if slices.Contains(s.Required, name) {
			row += ", required"
		}
		rows = append(rows, row)
		if property.Items != nil {
			for _, inner := range fieldsOf(*property.Items) {
				rows = append(rows, name+"[]."+inner)
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// TestToolsTable: the table of the tools says what their specs say.
func TestToolsTable(t *testing.T) {
	var want []string
	for _, tool := range toolset(settingsFiles{}) {
		spec := tool.Spec()
		limit := "none"
		if spec.TimeLimit > 0 {
			limit = fmt.Sprintf("%g s", spec.TimeLimit.Seconds())
		}
		if spec.MaxTime > 0 {
			limit += fmt.Sprintf(", at most %g s", spec.MaxTime.Seconds())
		}
		want = append(want, fmt.Sprintf("%s | %s | %s | %d", spec.Name, limit, map[tools.Interrupt]string{tools.Stop: "stopped", tools.Finish: "ends"}[spec.OnInterrupt], cmp.Or(spec.MaxResultChars, 30_000)))
	}
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[(\w+)\]\(#\w+\) \| [^|]+ \| ([^|]+ \| [^|]+) \| ([\d,]+) \|$`).FindAllStringSubmatch(content(t, toolsDocument), -1) {
		told = append(told, row[1]+" | "+row[2]+" | "+strings.ReplaceAll(row[3], ",", ""))
	}
	slices.Sort(want)
	slices.Sort(told)
	same(t, "the table", told, want...)
}

// toolPackages are where the tools' own code is.
var toolPackages = map[string][]string{
	"Read": {"read", "media/pdf"}, "Write": {"write"}, "Edit": {"edit"}, "MultiEdit": {"edit"}, "ApplyPatch": {"edit"}, "NotebookEdit": {"notebook"},
	"Glob": {"glob"}, "Grep": {"grep"}, "LS": {"ls"}, "Bash": {"bash"}, "BashOutput": {"bash"}, "BashInput": {"bash"}, "KillShell": {"bash"}, "Shell": {"bash"},
	"WebFetch": {"webfetch", "net/web"}, "WebSearch": {"websearch", "net/web"}, "TodoWrite": {"todo"}, "Memory": {"memory"}, "ToolSearch": {"toolsearch"}, "LSP": {"lsp", "exec/language"},
}

var (
	codeGiven  = regexp.MustCompile(`fault\.(?:Invalidf|Failedf|Deniedf)\("([a-z_]+)"`)
	errorsTold = regexp.MustCompile(`(?m)^Errors[^:\n]*:(?:.+\n)+`)
	codeTold   = regexp.MustCompile("`([a-z]+(?:_[a-z]+)*)`")
)

// TestToolsErrors: a code that a tool's source returns stands in the section of a tool of that code, or among those that all
// share; each code that is named is one that docs/errors.md explains.
func TestToolsErrors(t *testing.T) {
	explained := content(t, "../../docs/errors.md")
	shared := codesTold(t, chapterOf(t, "What all share"))
	given, told := map[string]map[string]bool{}, map[string][]string{}
	for tool, packages := range toolPackages {
		codes := codesTold(t, chapterOf(t, tool))
		for _, code := range append(codes, shared...) {
			if !strings.Contains(explained, "\n| `"+code+"` |") {
				t.Errorf("%s: docs/errors.md has no code %s", tool, code)
			}
		}
		for _, name := range packages {
			given[name] = codesGiven(t, filepath.Join("../../tools", name))
			told[name] = append(told[name], codes...)
		}
	}
	for name, codes := range given {
		for code := range codes {
			if !slices.Contains(told[name], code) && !slices.Contains(shared, code) {
				t.Errorf("tools/%s gives %s, and docs/tools.md does not say so", name, code)
			}
		}
	}
}

func codesTold(t *testing.T, text string) (codes []string) {
	t.Helper()
	for _, paragraph := range errorsTold.FindAllString(text, -1) {
		for _, match := range codeTold.FindAllStringSubmatch(paragraph, -1) {
			codes = append(codes, match[1])
		}
	}
	return codes
}

func codesGiven(t *testing.T, dir string) map[string]bool {
	t.Helper()
	codes := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range codeGiven.FindAllStringSubmatch(content(t, file), -1) {
			codes[match[1]] = true
		}
	}
	return codes
}

// structuredTypes are what the tools put into structured.
var structuredTypes = map[string][]any{
	"Read":  {read.Structured{}, read.Image{}, read.Document{}, read.Notebook{}},
	"Write": {write.Structured{}}, "Edit": {edit.Structured{}}, "MultiEdit": {edit.Structured{}}, "ApplyPatch": {edit.Patched{}}, "NotebookEdit": {notebook.Structured{}},
	"Glob": {glob.Found{}}, "Grep": {grep.Found{}}, "LS": {ls.Listing{}}, "Bash": {bash.Structured{}}, "BashOutput": {bash.Structured{}}, "BashInput": {bash.Structured{}},
	"KillShell": {bash.Structured{}}, "Shell": {bash.Commands{}}, "WebFetch": {webfetch.Fetched{}}, "WebSearch": {websearch.Found{}}, "TodoWrite": {todo.Written{}}, "Memory": {memory.Structured{}},
	"ToolSearch": {toolsearch.Structured{}}, "LSP": {lsp.Found{}},
}

// TestToolsStructured: what can be in a tool's structured is named where the document describes it, or the tool that it
// refers to as "as of X".
func TestToolsStructured(t *testing.T) {
	for _, tool := range toolset(settingsFiles{}) {
		name := tool.Spec().Name
		told := structuredTold(t, name)
		for _, value := range structuredTypes[name] {
			for _, field := range jsonFields(reflect.TypeOf(value), nil) {
				if !strings.Contains(told, "`"+field+"`") {
					t.Errorf("%s: docs/tools.md does not name %s, which structured may hold", name, field)
				}
			}
		}
		if len(structuredTypes[name]) == 0 {
			t.Errorf("nobody has said what %s puts into structured", name)
		}
	}
}

var (
	structuredForm = regexp.MustCompile("(?m)^`structured`(?:.+\n)+")
	referenceForm  = regexp.MustCompile(`as of (\w+)`)
)

func structuredTold(t *testing.T, name string) string {
	t.Helper()
	told := structuredForm.FindString(chapterOf(t, name))
	if other := referenceForm.FindStringSubmatch(told); other != nil {
		told += structuredTold(t, other[1])
	}
	return told
}

// jsonFields returns the names of a type's fields in JSON, at any depth.
func jsonFields(of reflect.Type, names []string) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return jsonFields(of.Elem(), names)
	case reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag == "-" {
				continue
			}
			if tag != "" {
				names = append(names, tag)
			}
			names = jsonFields(field.Type, names)
		}
	}
	return names
}
