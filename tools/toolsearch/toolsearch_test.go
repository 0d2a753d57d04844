package toolsearch

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

func TestTool(t *testing.T) {
	tooltest.Check(t, Tool(), tooltest.Case{Name: "words", Input: `{"query": "issue"}`}, tooltest.Case{Name: "names", Input: `{"query": "select:a,b"}`})
}

// deferred is what can be found in the cases.
var deferred = []tools.Spec{
	{Name: "mcp__git__create_issue", Description: "Opens an issue in a repository.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	{Name: "mcp__git__list_issues", Description: "Lists what is open.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	{Name: "mcp__mail__send", Description: "Sends a message, about an issue for instance.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	{Name: "mcp__mail__search", Description: "Finds messages.", InputSchema: json.RawMessage(`{"type":"object"}`)},
}

func TestFinds(t *testing.T) {
	for _, c := range []struct {
		query     string
		most      int
		activated []string
		unknown   []string
		says      string
	}{
		{query: "select:mcp__mail__send", activated: []string{"mcp__mail__send"}, says: "Sends a message"},
		{query: " select: mcp__mail__send , mcp__git__list_issues,mcp__mail__send,", activated: []string{"mcp__mail__send", "mcp__git__list_issues"}},
		{query: "select:mcp__mail__sent,mcp__mail__search", activated: []string{"mcp__mail__search"}, unknown: []string{"mcp__mail__sent"}, says: "The nearest is mcp__mail__send"},
		{query: "select:nothing", unknown: []string{"nothing"}},
		{query: "issue", activated: []string{"mcp__git__create_issue", "mcp__git__list_issues", "mcp__mail__send"}},
		{query: "ISSUE", most: 1, activated: []string{"mcp__git__create_issue"}},
		{query: "+mail issue", activated: []string{"mcp__mail__send", "mcp__mail__search"}},
		{query: "+mail +issue", activated: []string{"mcp__mail__send"}},
		{query: "+ messages", activated: []string{"mcp__mail__search"}},
		{query: "weather", says: "None of the 4 tools"},
	} {
		input, _ := json.Marshal(input{c.query, c.most})
		action, err := Tool().Parse(input)
		if err != nil {
			t.Errorf("%q: %v", c.query, err)
			continue
		}
		result, err := action.Run(t.Context(), &tools.Env{Deferred: func() []tools.Spec { return deferred }})
		if err != nil {
			t.Errorf("%q: %v", c.query, err)
			continue
		}
		structured := result.Structured.(Structured)
		var found []string
		for _, f := range structured.Activated {
			found = append(found, f.Name)
		}
		if diff := cmp.Diff(c.activated, result.Changes.Activated) + cmp.Diff(c.activated, found) + cmp.Diff(c.unknown, structured.Unknown); diff != "" {
			t.Errorf("%q: want (-), got (+):\n%s", c.query, diff)
		}
		if text := result.Content[0].Text; !strings.Contains(text, c.says) {
			t.Errorf("%q: %q, want %q in it", c.query, text, c.says)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, input := range []string{
		`{}`, `{"query": ""}`, `{"query": "select:"}`, `{"query": "x", "max_results": 26}`, `{"query": "x", "max_results": -1}`,
		`{"query": "` + strings.Repeat("x", maxQuery+1) + `"}`,
	} {
		if _, err := Tool().Parse(json.RawMessage(input)); tooltest.Code(err) != "invalid_input" {
			t.Errorf("%.60s: %v, want invalid_input", input, err)
		}
	}
}

// FuzzQuery: whatever is asked for, what is found is there, once each, and no more than was asked for.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"select:mcp__mail__send", "+mail issue", "++", "select:,,", "\x00"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, query string, most int) {
		text, err := json.Marshal(input{query, most})
		if err != nil {
			t.Skip()
		}
		action, err := Tool().Parse(text)
		if err != nil {
			return
		}
		result, err := action.Run(t.Context(), &tools.Env{Deferred: func() []tools.Spec { return deferred }})
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Clone(result.Changes.Activated)
		slices.Sort(names)
		if len(slices.Compact(names)) != len(result.Changes.Activated) || len(names) > len(deferred) {
			t.Errorf("%q activates %v", query, result.Changes.Activated)
		}
	})
}
