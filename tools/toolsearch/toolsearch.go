// Package toolsearch is the ToolSearch tool: it finds deferred tools and has the session activate
// them. It does not know why a tool is deferred, nor how it is activated.
package toolsearch

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/nearest"
)

//go:embed description.md
var description string

const (
	someResults = 5    // that words activate unless the call has max_results
	maxQuery    = 1000 // characters
	selecting   = "select:"
)

type input struct {
	Query      string `json:"query" jsonschema:"select:NAME,NAME for tools by their names, or words that say what is needed; +word has to occur"`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"how many tools words may activate" minimum:"0" maximum:"25" default:"5"`
}

// Structured is the structured result.
type Structured struct {
	Activated []Found  `json:"activated"`
	Unknown   []string `json:"unknown,omitempty"` // names after select: that no deferred tool has
	Deferred  int      `json:"deferred"`          // how many tools can be found in all
}

// Found is a tool that was activated, now or before.
type Found struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Tool returns the ToolSearch tool.
func Tool() tools.Tool {
	return tools.New(tools.Spec{
		Name: "ToolSearch", Description: description, ReadOnly: true, MaxResultChars: 100_000,
	}, tools.Funcs[input]{Validate: validate, Effects: func(input) tools.Effects { return tools.Effects{State: "activated tools"} }, Run: run})
}

func validate(in *input) error {
	switch {
	case strings.TrimSpace(strings.TrimPrefix(in.Query, selecting)) == "":
		return fault.Invalidf("invalid_input", "The query names no tool and has no word. Write select:NAME, or words for what is needed.").At("/query")
	case len(in.Query) > maxQuery:
		return fault.Invalidf("invalid_input", "The query has %d characters, more than the limit of %d.", len(in.Query), maxQuery).At("/query")
	}
	return nil
}

func run(_ context.Context, env *tools.Env, in input) (tools.Result, error) {
	all := env.Deferred()
	var found []tools.Spec
	var unknown []string
	if names, by := strings.CutPrefix(strings.TrimSpace(in.Query), selecting); by {
		found, unknown = selected(all, names)
	} else {
		found = ranked(all, in.Query, cmp.Or(in.MaxResults, someResults))
	}
	result := tools.Text(told(found, unknown, all))
	structured := Structured{Activated: []Found{}, Unknown: unknown, Deferred: len(all)}
	for _, spec := range found {
		structured.Activated = append(structured.Activated, Found{spec.Name, spec.Description, spec.InputSchema})
		result.Changes.Activated = append(result.Changes.Activated, spec.Name)
	}
	result.Structured = structured
	return result, nil
}

// selected returns the tools with those names, each once, and the names that no tool has.
func selected(all []tools.Spec, names string) (found []tools.Spec, unknown []string) {
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(all, func(s tools.Spec) bool { return s.Name == name })
		switch {
		case name == "":
		case at < 0:
			unknown = append(unknown, name)
		case !slices.ContainsFunc(found, func(s tools.Spec) bool { return s.Name == name }):
			found = append(found, all[at])
		}
	}
	return found, unknown
}

// The weight of a word that occurs in a tool. Our own: a name counts most, and a whole word more
// than a part of one.
const (
	wordOfName = 8
	partOfName = 4
	wordOfText = 2
	partOfText = 1
)

// ranked returns at most count tools, the best first, that contain a word of the query and all its
// required words.
func ranked(all []tools.Spec, query string, count int) []tools.Spec {
	worth := map[string]int{}
	var found []tools.Spec
	for _, spec := range all {
		if w := worthOf(spec, strings.Fields(strings.ToLower(query))); w > 0 {
			worth[spec.Name] = w
			found = append(found, spec)
		}
	}
	slices.SortStableFunc(found, func(a, b tools.Spec) int {
		return cmp.Or(cmp.Compare(worth[b.Name], worth[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	return found[:min(count, len(found))]
}

func worthOf(spec tools.Spec, words []string) (sum int) {
	name, text := strings.ToLower(spec.Name), strings.ToLower(spec.Description)
	inName, inText := wordsIn(name), wordsIn(text)
	for _, word := range words {
		word, required := strings.CutPrefix(word, "+")
		worth := 0
		switch {
		case word == "":
		case slices.Contains(inName, word):
			worth = wordOfName
		case strings.Contains(name, word):
			worth = partOfName
		case slices.Contains(inText, word):
			worth = wordOfText
		case strings.Contains(text, word):
			worth = partOfText
		}
		if required && word != "" && worth == 0 {
			return 0
		}
		sum += worth
	}
	return sum
}

func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// told returns the text for a model about the tools that it can use now.
func told(found []tools.Spec, unknown []string, all []tools.Spec) string {
	var b strings.Builder
	for _, name := range unknown {
		fmt.Fprintf(&b, "No tool that can be activated is named %q.%s\n", name, hint(name, all))
	}
	switch {
	case len(all) == 0:
		b.WriteString("There is no tool to activate: all tools of the session can be called already.\n")
	case len(found) == 0 && len(unknown) == 0:
		fmt.Fprintf(&b, "None of the %d tools that can be activated matches. Try other words, or fewer with a + before them.\n", len(all))
	case len(found) > 0:
		b.WriteString("These tools can be called from now on:\n")
	}
	for _, spec := range found {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nInput schema: %s\n", spec.Name, strings.TrimSpace(spec.Description), spec.InputSchema)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// hint returns a sentence with the deferred tool whose name is most like one that does not exist.
func hint(name string, all []tools.Spec) string {
	if len(all) == 0 {
		return ""
	}
	best := slices.MinFunc(all, func(a, b tools.Spec) int {
		return cmp.Compare(nearest.Distance(name, a.Name), nearest.Distance(name, b.Name))
	})
	return fmt.Sprintf(" The nearest is %s.", best.Name)
}
