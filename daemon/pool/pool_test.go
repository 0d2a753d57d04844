package pool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toold/toold/tools"
)

type noInput struct{}

// tool makes one that does nothing.
func tool(origin tools.Origin, name string, change ...func(*tools.Spec)) tools.Tool {
	spec := tools.Spec{Name: name, Description: "Does the thing that is called " + name + ".", Origin: origin}
	for _, f := range change {
		f(&spec)
	}
	return tools.New(spec, tools.Funcs[noInput]{Effects: func(noInput) tools.Effects { return tools.Effects{} }})
}

func entries(list ...tools.Tool) []Entry { return Offer(list, Conditions{}) }

// TestOnDemand: a tool that is used on demand can be called, and no list has it unless the client names it.
func TestOnDemand(t *testing.T) {
	list := []tools.Tool{tool(tools.BuiltIn, "Notes", func(s *tools.Spec) { s.OnDemand = true }), tool(tools.BuiltIn, "Read")}
	for _, c := range []struct {
		named []string
		names string
	}{{nil, "Read"}, {[]string{"Notes"}, "Notes"}, {[]string{"Read", "Notes"}, "Notes Read"}} {
		p := Assemble(Offer(list, Conditions{Named: c.named}), Deferral{Named: []string{"Notes"}})
		definitions, err := p.Definitions(Anthropic)
		if got := strings.Join(p.Names(), " "); got != c.names || !p.Find("Notes").Has() || err != nil || strings.Contains(definitions, `"Notes"`) != strings.Contains(c.names, "Notes") {
			t.Errorf("named %q: %s is listed, %s, %v", c.named, got, definitions, err)
		}
	}
}

// many are as many tools of a server.
func many(n int) (list []tools.Tool) {
	for i := range n {
		list = append(list, tool(tools.MCP, fmt.Sprintf("mcp__s__t%02d", i)))
	}
	return list
}

// searcher is what activates deferred tools.
func searcher() tools.Tool { return tool(tools.BuiltIn, "ToolSearch") }

// TestOffer: what leaves a tool out, and what is said of it.
func TestOffer(t *testing.T) {
	list := []tools.Tool{
		tool(tools.BuiltIn, "Read"), tool(tools.BuiltIn, "Grep"), tool(tools.Program, "Lint"), tool(tools.MCP, "mcp__a__b"), tool(tools.MCP, "mcp__ab__c"),
		tool(tools.BuiltIn, "LSP", func(s *tools.Spec) { s.Available = func(*tools.Env) string { return "There is no server." } }),
	}
	for _, c := range []struct {
		name       string
		conditions Conditions
		has        string
	}{
		{"all", Conditions{}, "Read Grep Lint mcp__a__b mcp__ab__c"},
		{"simple", Conditions{Preset: Simple}, "Read Lint mcp__a__b mcp__ab__c"},
		{"named", Conditions{Named: []string{"Grep", "LSP", "mcp__a"}}, "Grep mcp__a__b"},
		{"named server", Conditions{Named: []string{"mcp__a__*"}}, "mcp__a__b"},
		{"named tool", Conditions{Named: []string{"mcp__ab__c"}}, "mcp__ab__c"},
		{"named part of a server", Conditions{Named: []string{"mcp__a*", "mcp__*", "mcp__ab__*c"}}, ""},
		{"none", Conditions{Named: []string{}}, ""},
		{"removed", Conditions{Removed: func(name string) string {
			if name == "Read" {
				return "A rule."
			}
			return ""
		}}, "Grep Lint mcp__a__b mcp__ab__c"},
	} {
		var has []string
		for _, e := range Offer(list, c.conditions) {
			if e.Has() {
				has = append(has, e.Spec.Name)
			} else if e.Unavailable == "" || e.Forbidden != (c.name == "removed" && e.Spec.Name == "Read") {
				t.Errorf("%s: %s is missing and it is said %q, forbidden %t", c.name, e.Spec.Name, e.Unavailable, e.Forbidden)
			}
		}
		if got := strings.Join(has, " "); got != c.has {
			t.Errorf("%s: %s, want %s", c.name, got, c.has)
		}
	}
}

// TestAssemble: four blocks, each by name, a name once, and the built-in tool wins.
func TestAssemble(t *testing.T) {
	p := Assemble(entries(
		tool(tools.Client, "Ask"), tool(tools.Client, "Read"), tool(tools.MCP, "mcp__b__x"), tool(tools.MCP, "mcp__a__x"), tool(tools.Program, "Lint"),
		tool(tools.BuiltIn, "Write"), tool(tools.BuiltIn, "Read"), tool(tools.Client, "Lint"),
	), Deferral{Above: 30})
	want := []string{"Read", "Write", "Lint", "mcp__a__x", "mcp__b__x", "Ask"}
	if diff := cmp.Diff(want, p.Names()); diff != "" {
		t.Error(diff)
	}
	var dropped []string
	for _, e := range p.Dropped {
		dropped = append(dropped, e.Spec.Name+": "+e.Unavailable)
	}
	if diff := cmp.Diff([]string{"Lint: Its name is taken by a tool of the settings.", "Read: Its name is taken by a tool that is built in."}, dropped); diff != "" {
		t.Error(diff)
	}
}

// TestPostpone: above the bound MCP tools are deferred, and nothing else is.
func TestPostpone(t *testing.T) {
	list := append(many(5), searcher(), tool(tools.Program, "Lint"), tool(tools.BuiltIn, "Read"),
		tool(tools.MCP, "mcp__z__always", func(s *tools.Spec) { s.AlwaysLoad = true }))
	for _, c := range []struct {
		above    int
		active   []string
		deferred int
	}{{9, nil, 0}, {8, nil, 5}, {0, nil, 5}, {-1, nil, 0}, {8, []string{"mcp__s__t01", "mcp__s__t04", "gone"}, 3}} {
		p := Assemble(entries(list...), Deferral{Above: c.above, Active: c.active})
		if got := len(list) - len(p.Names()); got != c.deferred {
			t.Errorf("above %d, active %v: %d are deferred, want %d", c.above, c.active, got, c.deferred)
		}
		if got := strings.Count(p.Prompt(), "\n- "); got != c.deferred {
			t.Errorf("above %d: the prompt names %d:\n%s", c.above, got, p.Prompt())
		}
		if got := len(p.Deferrable()); c.deferred > 0 && got != 5 {
			t.Errorf("above %d: %d can be activated", c.above, got)
		}
	}
}

// TestNamedDeferred: what settings name is deferred however few tools there are, whoever brings it, and does not count for
// the others.
func TestNamedDeferred(t *testing.T) {
	list := append(many(2), searcher(), tool(tools.BuiltIn, "Read"), tool(tools.BuiltIn, "WebFetch"), tool(tools.Program, "Lint"), tool(tools.Client, "Ask"),
		tool(tools.MCP, "mcp__z__always", func(s *tools.Spec) { s.AlwaysLoad = true }))
	for _, c := range []struct {
		name string
		d    Deferral
		has  string
	}{
		{"built in", Deferral{Above: 30, Named: []string{"WebFetch"}}, "Read ToolSearch Lint mcp__s__t00 mcp__s__t01 mcp__z__always Ask"},
		{"of any kind", Deferral{Above: 30, Named: []string{"Lint", "Ask", "mcp__z__always", "mcp__s__*"}}, "Read ToolSearch WebFetch"},
		{"not what activates", Deferral{Above: 30, Named: []string{"ToolSearch", "None"}}, "Read ToolSearch WebFetch Lint mcp__s__t00 mcp__s__t01 mcp__z__always Ask"},
		{"activated", Deferral{Above: 30, Named: []string{"Read", "WebFetch"}, Active: []string{"Read"}}, "Read ToolSearch Lint mcp__s__t00 mcp__s__t01 mcp__z__always Ask"},
		{"they do not count", Deferral{Above: 6, Named: []string{"WebFetch"}}, "Read ToolSearch Lint mcp__s__t00 mcp__s__t01 mcp__z__always Ask"},
		{"the rest is too much", Deferral{Above: 5, Named: []string{"WebFetch"}}, "Read ToolSearch Lint mcp__z__always Ask"},
		{"never", Deferral{Above: -1, Named: []string{"WebFetch"}}, "Read ToolSearch WebFetch Lint mcp__s__t00 mcp__s__t01 mcp__z__always Ask"},
	} {
		if got := strings.Join(Assemble(entries(list...), c.d).Names(), " "); got != c.has {
			t.Errorf("%s: %s, want %s", c.name, got, c.has)
		}
	}
}

// big makes the tool's description longer.
func big(bytes int) func(*tools.Spec) {
	return func(s *tools.Spec) { s.Description = strings.Repeat("x", bytes) }
}

// TestPostponeWithout: what decides beside the number.
func TestPostponeWithout(t *testing.T) {
	always := func(s *tools.Spec) { s.AlwaysLoad = true }
	large := []tools.Tool{tool(tools.MCP, "mcp__l__a", big(500_000)), tool(tools.MCP, "mcp__l__b", big(500_000), always), tool(tools.MCP, "mcp__l__c", big(100_000))}
	for _, c := range []struct {
		name     string
		list     []tools.Tool
		offer    Conditions
		above    int
		deferred int
	}{
		{"nothing activates", many(5), Conditions{}, 1, 0},
		{"a client's tool has the name", append(many(5), tool(tools.Client, "ToolSearch")), Conditions{}, 1, 0},
		{"a rule removes it", append(many(5), searcher()), Conditions{Removed: func(name string) string { return map[string]string{"ToolSearch": "A rule."}[name] }}, 1, 0},
		{"options.tools leaves it out", append(many(5), searcher()), Conditions{Named: []string{"mcp__s"}}, 1, 0},
		{"the preset leaves it out", append(many(5), searcher()), Conditions{Preset: Simple}, 1, 0},
		{"later tools do not count", append(many(5), searcher(), tool(tools.Client, "A"), tool(tools.Client, "B", big(2<<20))), Conditions{}, 6, 0},
		{"large", append(large, searcher()), Conditions{}, 30, 3},
		{"large, but for a little", append(large[:2:2], searcher()), Conditions{}, 30, 0},
		{"large, but never", append(large, searcher()), Conditions{}, -1, 0},
	} {
		p := Assemble(Offer(c.list, c.offer), Deferral{Above: c.above})
		if got := len(p.Deferrable()); got != c.deferred {
			t.Errorf("%s: %d are deferred, want %d", c.name, got, c.deferred)
		}
	}
}

// TestMissing: what is named and not there is among the entries, each once, and what comes later takes its place.
func TestMissing(t *testing.T) {
	offer := func(list ...tools.Tool) *Pool {
		return Assemble(Offer(list, Conditions{Named: []string{"Deploy", "Read", "Deploy", "mcp__s__t", "mcp__s"}}), Deferral{Above: 30})
	}
	p := offer(tool(tools.BuiltIn, "Read"))
	if e := p.Find("Deploy"); len(p.Entries) != 2 || len(p.Dropped) != 0 || e.Has() || !strings.Contains(e.Unavailable, "there is no tool of that name") || p.Find("mcp__s__t") != nil {
		t.Errorf("%+v, dropped %+v", p.Entries, p.Dropped)
	}
	if p = offer(tool(tools.BuiltIn, "Read"), tool(tools.Client, "Deploy")); len(p.Entries) != 2 || !p.Find("Deploy").Has() {
		t.Errorf("%+v", p.Entries)
	}
}

// TestNames: what stands for a tool, and for all of a server.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		text  string
		is    bool
		names string
	}{
		{"Read", true, "Read"},
		{"mcp__git", true, "mcp__git__get mcp__git___x mcp__git__get__all"},
		{"mcp__git__*", true, "mcp__git__get mcp__git___x mcp__git__get__all"},
		{"mcp__git__get", true, "mcp__git__get"},
		{"mcp__my_git", true, "mcp__my_git__get"},
		{"mcp__*", false, ""},
		{"mcp__git*", false, ""},
		{"mcp__git__get*", false, ""},
		{"mcp__git__get_*", false, ""},
		{"*", false, ""},
		{"mcp__", false, ""},
		{"mcp____get", false, ""},
		{"mcp___git", false, ""},
		{"mcp__git__", false, ""},
		{"mcp__git_", false, ""},
		{"", false, ""},
		{"a b", false, ""},
		{strings.Repeat("x", 65), false, ""},
		{"mcp__git__" + strings.Repeat("x", 60), false, ""},
	} {
		if got := IsName(c.text); got != c.is {
			t.Errorf("%q is a name: %t", c.text, got)
		}
		var names []string
		for _, name := range []string{"Read", "mcp__git__get", "mcp__git___x", "mcp__git2__get", "mcp__my_git__get", "mcp__git__get__all"} {
			if Names(c.text, name) {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%q names %s, want %s", c.text, got, c.names)
		}
	}
}

// TestRevision: it changes with what clients are told, and only then.
func TestRevision(t *testing.T) {
	three := append(many(3), searcher())
	base := Assemble(entries(three...), Deferral{Above: 30}).Revision
	for name, p := range map[string]*Pool{
		"one more": Assemble(entries(append(many(4), searcher())...), Deferral{Above: 30}),
		"deferred": Assemble(entries(three...), Deferral{Above: 2}),
		"active":   Assemble(entries(three...), Deferral{Above: 2, Active: []string{"mcp__s__t00"}}),
		"removed":  Assemble(Offer(three, Conditions{Named: []string{}}), Deferral{Above: 30}),
	} {
		if p.Revision == base {
			t.Errorf("%s: the revision is the same", name)
		}
	}
	list := slices.Clone(three)
	slices.Reverse(list)
	if Assemble(entries(list...), Deferral{Above: 30}).Revision != base {
		t.Error("another order of the same tools has another revision")
	}
}

// TestLaterBlocks: what comes into a later block changes no byte before it, in any format.
func TestLaterBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z][A-Za-z0-9_-]{0,12}`), 1, 12, rapid.ID[string])
		list, above := []tools.Tool{searcher()}, rapid.IntRange(-1, 12).Draw(t, "above")
		for _, name := range names.Draw(t, "names") {
			origin := tools.Origin(rapid.IntRange(int(tools.BuiltIn), int(tools.Client)).Draw(t, "origin"))
			list = append(list, tool(origin, name))
		}
		later := tools.Origin(rapid.IntRange(int(tools.Program), int(tools.Client)).Draw(t, "later"))
		before := slices.DeleteFunc(slices.Clone(list), func(x tools.Tool) bool { return x.Spec().Origin >= later })
		with := slices.DeleteFunc(slices.Clone(list), func(x tools.Tool) bool { return x.Spec().Origin > later })
		for _, format := range []Format{Anthropic, OpenAI, MCP} {
			short, _ := Assemble(entries(before...), Deferral{Above: above}).Definitions(format)
			long, _ := Assemble(entries(with...), Deferral{Above: above}).Definitions(format)
			if !strings.HasPrefix(long, strings.TrimSuffix(short, "]")) {
				t.Fatalf("%s\nis no beginning of\n%s", short, long)
			}
		}
	})
}

// What the APIs' published rules for tools come to, beside the form: a request that breaks one is refused as a whole.
var apiName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

type definition struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Function    *definition     `json:"function"`
	InputSchema json.RawMessage `json:"input_schema"`
	Parameters  json.RawMessage `json:"parameters"`
	Schema      json.RawMessage `json:"inputSchema"`
	Annotations map[string]bool `json:"annotations"`
}

// TestFormats: each API can take the definitions as they are, also of tools that others have described.
func TestFormats(t *testing.T) {
	foreign, err := tools.NewExternal(
		tools.Spec{Name: "mcp__s__choice", Description: strings.Repeat("A sentence of some words. ", 90), Origin: tools.MCP},
		json.RawMessage(`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}}}]}`),
		tools.Funcs[json.RawMessage]{Effects: func(json.RawMessage) tools.Effects { return tools.Effects{} }},
	)
	if err != nil {
		t.Fatal(err)
	}
	p := Assemble(entries(tool(tools.BuiltIn, "Read"), foreign), Deferral{Above: 30})
	for format, schema := range map[Format]func(definition) json.RawMessage{
		Anthropic: func(d definition) json.RawMessage { return d.InputSchema },
		OpenAI:    func(d definition) json.RawMessage { return d.Parameters },
		MCP:       func(d definition) json.RawMessage { return d.Schema },
	} {
		text, err := p.Definitions(format)
		if err != nil {
			t.Fatal(err)
		}
		var list []definition
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 2 {
			t.Fatalf("%v in %s", err, text)
		}
		for _, d := range list {
			if format == OpenAI {
				if d.Type != "function" || d.Function == nil {
					t.Fatalf("%s is no function", text)
				}
				d = *d.Function
				if utf8.RuneCountInString(d.Description) > 1024 || !strings.HasSuffix(d.Description, ".") {
					t.Errorf("the description ends with %q after %d characters", d.Description[len(d.Description)-10:], utf8.RuneCountInString(d.Description))
				}
			}
			if !apiName.MatchString(d.Name) || d.Description == "" || format == MCP && len(d.Annotations) != 3 {
				t.Errorf("%+v", d)
			}
			var root map[string]any
			if err := json.Unmarshal(schema(d), &root); err != nil || root["type"] != "object" || root["properties"] == nil {
				t.Errorf("format %d: schema %s, %v", format, schema(d), err)
			}
			for _, choice := range []string{"anyOf", "oneOf", "allOf"} {
				if root[choice] != nil {
					t.Errorf("format %d: %s at the root of %s", format, choice, schema(d))
				}
			}
		}
	}
}

// TestFind: by the exact name, whether the session has it or not.
func TestFind(t *testing.T) {
	p := Assemble(entries(append(many(3), searcher())...), Deferral{Above: 1, Active: []string{"mcp__s__t01"}})
	if p.Find("mcp__s__t00").Has() || !p.Find("mcp__s__t01").Has() || p.Find("MCP__s__t01").Has() || p.Find("x") != nil {
		t.Error("a deferred tool is there, or an active one is not, or a name in another case is found")
	}
}

// TestOwnDefinitions: the tools that the Responses API defines itself are listed as it has them there, and as functions elsewhere.
func TestOwnDefinitions(t *testing.T) {
	demand := func(s *tools.Spec) { s.OnDemand = true }
	list := []tools.Tool{tool(tools.BuiltIn, "ApplyPatch", demand), tool(tools.BuiltIn, "Shell", demand)}
	p := Assemble(Offer(list, Conditions{Named: []string{"ApplyPatch", "Shell"}}), Deferral{})
	if got, err := p.Definitions(Responses); err != nil || got != `[{"type":"apply_patch"},{"type":"shell","environment":{"type":"local"}}]` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := p.Definitions(OpenAI); err != nil || !strings.Contains(got, `"type":"function"`) || strings.Contains(got, "apply_patch") {
		t.Errorf("%s, %v", got, err)
	}
	p = Assemble(Offer(list, Conditions{}), Deferral{})
	if got, err := p.Definitions(Responses); err != nil || got != `[]` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLatest: pools of equal built-in tools are one, and everything that a pool is made of makes another.
func TestLatest(t *testing.T) {
	read, grep, search := tool(tools.BuiltIn, "Read"), tool(tools.BuiltIn, "Grep"), searcher()
	reasonable := func() ([]Entry, Deferral) {
		return entries(read, grep, search), Deferral{Above: 9, Named: []string{"Grep"}}
	}
	for name, change := range map[string]func(list *[]Entry, d *Deferral){
		"nothing":        func(*[]Entry, *Deferral) {},
		"another tool":   func(list *[]Entry, _ *Deferral) { (*list)[0].Tool = tool(tools.BuiltIn, "Read") },
		"one tool more":  func(list *[]Entry, _ *Deferral) { *list = append(*list, entries(tool(tools.BuiltIn, "LS"))...) },
		"unavailable":    func(list *[]Entry, _ *Deferral) { (*list)[0].Unavailable = "It is not there." },
		"forbidden":      func(list *[]Entry, _ *Deferral) { (*list)[0].Forbidden = true },
		"unlisted":       func(list *[]Entry, _ *Deferral) { (*list)[0].Unlisted = true },
		"another origin": func(list *[]Entry, _ *Deferral) { *list = append(*list, entries(many(1)...)...) },
		"above":          func(_ *[]Entry, d *Deferral) { d.Above = -1 },
		"named":          func(_ *[]Entry, d *Deferral) { d.Named = []string{"Read"} },
		"active":         func(_ *[]Entry, d *Deferral) { d.Active = []string{"Grep"} },
	} {
		var latest Latest
		first := latest.Assemble(reasonable())
		list, d := reasonable()
		change(&list, &d)
		second := latest.Assemble(list, d)
		if shared := first == second; shared != (name == "nothing") {
			t.Errorf("%s: shared is %v", name, shared)
		}
		if want := Assemble(list, d); second.Revision != want.Revision || !slices.Equal(second.Names(), want.Names()) {
			t.Errorf("%s: %v, want %v", name, second.Names(), want.Names())
		}
	}
}
