package permission_test

// docs/permissions.md is the specification that people read. Its tables are held against the function here, row by row.

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/shell/damage"
	"github.com/toold/toold/tools/fs/memstore"
)

const (
	root = "/work/app"
	home = "/home/me"
)

var (
	anchors = permission.Anchors{Home: home, Roots: []string{root}}
	origin  = permission.Origin{File: root + "/.toold/settings.json", Line: 7, Base: root}
	modes   = []permission.Mode{permission.Default, permission.AcceptEdits, permission.Plan, permission.DontAsk, permission.BypassPermissions}
)

// table returns the rows of one of the page's tables, without its head.
func table(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- "+name+" -->\n")
	rest, _, found := strings.Cut(rest, "<!-- end -->")
	if !found {
		t.Fatalf("docs/permissions.md has no table %q", name)
	}
	for _, line := range strings.Split(strings.TrimSpace(rest), "\n")[2:] {
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
		for i, cell := range cells {
			cells[i] = strings.Trim(strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"), "`")
		}
		rows = append(rows, cells)
	}
	return rows
}

// A situation is one combination of everything that a verdict depends on.
type situation struct {
	kind                                      string
	denyRule, denyHook                        bool
	critical, askRule, unconfined             bool
	askHook, protected, check                 bool
	allowRule, allowHook, insideReadablePlace bool
}

func (s situation) facts() (*permission.Facts, *permission.Rules) {
	f := &permission.Facts{Tool: "Probe", Unconfined: s.unconfined}
	switch s.kind {
	case "only reads":
		f.Accesses = []permission.Access{{Named: "/srv/x", Real: "/srv/x", Inside: s.insideReadablePlace}}
	case "edits inside the roots":
		f.Accesses = []permission.Access{{Named: root + "/x", Real: root + "/x", Write: true, Inside: true}}
	default:
		f.Opaque, f.Reason = true, "it runs something"
	}
	if s.protected {
		f.Accesses = append(f.Accesses, permission.Access{Named: root + "/.envrc", Real: root + "/.envrc", Write: true, Inside: true})
	}
	if s.critical {
		f.Critical = "It could destroy the disk."
	}
	if s.check {
		f.Check = "The file has other names."
	}
	var rules []permission.Rule
	for list, given := range map[permission.List]bool{permission.DenyList: s.denyRule, permission.AskList: s.askRule, permission.AllowList: s.allowRule} {
		if given {
			rule, err := permission.ParseRule(list, "Probe", origin)
			if err != nil {
				panic(err)
			}
			rules = append(rules, rule)
		}
	}
	for decision, given := range map[permission.Decision]bool{permission.Deny: s.denyHook, permission.Ask: s.askHook, permission.Allow: s.allowHook} {
		if given {
			f.Opinions = append(f.Opinions, permission.Opinion{Decision: decision, Reason: "so it is", Origin: origin})
		}
	}
	return f, permission.Compile(rules, anchors)
}

// reason is the row of the page's table that the situation belongs to.
func (s situation) reason() string {
	switch {
	case s.denyRule || s.denyHook:
		return "denied"
	case s.critical || s.askRule || s.unconfined:
		return "must be asked"
	case s.askHook || s.protected || s.check:
		return "should be asked"
	case s.allowRule || s.allowHook || s.kind == "only reads" && s.insideReadablePlace:
		return "allowed"
	}
	return "nothing said"
}

// TestVerdictTable goes over every combination of reasons, for every kind of call, in every mode.
func TestVerdictTable(t *testing.T) {
	t.Parallel()
	want := map[[2]string][]string{}
	for _, row := range table(t, "verdict") {
		want[[2]string{row[0], row[1]}] = row[2:]
	}
	for bits := range 1 << 11 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		for _, kind := range []string{"only reads", "edits inside the roots", "anything else"} {
			s := situation{kind, on(0), on(1), on(2), on(3), on(4), on(5), on(6), on(7), on(8), on(9), on(10)}
			row := want[[2]string{s.reason(), s.row()}]
			if row == nil {
				t.Fatalf("the page has no row for %+v", s)
			}
			facts, rules := s.facts()
			for i, mode := range modes {
				got := permission.Decide(facts, permission.Policy{Rules: rules, Mode: mode})
				if got.Decision.String() != row[i] {
					t.Fatalf("%+v in mode %s: %s (%s), and the page says %s", s, mode, got.Decision, got.Text, row[i])
				}
				if got.Text == "" || got.Level == 0 || len(got.Reasons) == 0 {
					t.Fatalf("%+v in mode %s: no reason, level or ground in %+v", s, mode, got)
				}
				if (got.Level == permission.Forbidden) != (s.denyRule || s.denyHook) {
					t.Fatalf("%+v: level %d", s, got.Level)
				}
			}
		}
	}
}

// row is the kind of call as the table has it: what also writes a protected file, or leaves the sandbox, is no longer one
// that only reads.
func (s situation) row() string {
	switch {
	case s.kind == "only reads" && s.unconfined:
		return "anything else"
	case s.kind == "only reads" && s.protected && s.insideReadablePlace:
		return "edits inside the roots"
	case s.kind == "only reads" && s.protected:
		return "anything else"
	}
	return s.kind
}

// TestRuleTable holds every example of the page against the function.
func TestRuleTable(t *testing.T) {
	t.Parallel()
	rows := table(t, "rules")
	for _, row := range rows {
		list, rule, call, want := row[0], row[1], row[2], row[3]
		if got := matches(t, list, rule, call); got != (want == "yes") {
			t.Errorf("%s rule %s and the call %s: matches %v, and the page says %s", list, rule, call, got, want)
		}
	}
	if len(rows) < 40 {
		t.Errorf("the page has %d examples", len(rows))
	}
}

// matches reports whether a rule of a list decides a call that nothing else is said about.
func matches(t *testing.T, list, text, call string) bool {
	t.Helper()
	which := map[string]permission.List{"deny": permission.DenyList, "ask": permission.AskList, "allow": permission.AllowList}[list]
	rule, err := permission.ParseRule(which, text, origin)
	if err != nil {
		t.Errorf("%v", err)
		return false
	}
	facts := factsOf(t, call)
	got := permission.Decide(facts, permission.Policy{Rules: permission.Compile([]permission.Rule{rule}, anchors)})
	return slices.ContainsFunc(got.Reasons, func(g permission.Reason) bool { return g.Rule != nil && !g.Doubtful() }) &&
		got.Decision == map[permission.List]permission.Decision{permission.DenyList: permission.Deny, permission.AskList: permission.Ask, permission.AllowList: permission.Allow}[which]
}

// factsOf reads "Tool subject {fields}" as the pipeline would find it in a workspace without links.
func factsOf(t *testing.T, call string) *permission.Facts {
	t.Helper()
	tool, subject, _ := strings.Cut(call, " ")
	f := &permission.Facts{Tool: tool}
	if at := strings.Index(subject, " {\""); at >= 0 {
		var fields map[string]any
		if err := json.Unmarshal([]byte(subject[at+1:]), &fields); err != nil {
			t.Fatal(err)
		}
		f.Input = map[string]string{}
		for name, value := range fields {
			text, _ := json.Marshal(value)
			f.Input[name] = strings.Trim(string(text), `"`)
		}
		subject = subject[:at]
	}
	switch tool {
	case "Bash":
		addScript(t, f, subject)
	case "Memory":
		f.Memory = []memstore.Touch{{Path: subject, Write: true}}
	case "WebFetch":
		f.Hosts = []string{subject}
	case "Read", "Grep":
		f.Accesses = []permission.Access{access(tools.Path{Name: subject}, false)}
	case "Edit", "Write", "ApplyPatch":
		for path := range strings.FieldsSeq(subject) {
			f.Accesses = append(f.Accesses, access(tools.Path{Name: path}, true))
		}
	default:
		f.Opaque, f.Reason = true, "what it does is not known"
	}
	return f
}

func addScript(t testing.TB, f *permission.Facts, script string) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": script})
	if err != nil {
		t.Fatal(err)
	}
	action, err := bash.Tool().Parse(input)
	if err != nil {
		t.Fatal(err)
	}
	e := action.Effects()
	f.Commands, f.Hosts, f.Opaque, f.Reason, f.Unknown, f.Dir = e.Commands, e.Hosts, e.Opaque, e.Reason, e.Unknown, root
	for _, p := range e.Reads {
		if p.Unnamed && p.By > 0 && !e.Commands[p.By-1].ReadOnly {
			continue // as the pipeline does
		}
		f.Accesses = append(f.Accesses, access(p, false))
	}
	for _, p := range e.Writes {
		f.Accesses = append(f.Accesses, access(p, true))
	}
}

func access(p tools.Path, write bool) permission.Access {
	name := p.Name
	if !path.IsAbs(name) {
		name = path.Join(root, name)
	}
	return permission.Access{
		Named: name, Real: name, Write: write, Tree: p.Tree, Names: p.Names, Unnamed: p.Unnamed, By: p.By, Part: p.Part,
		Inside: name == root || strings.HasPrefix(name, root+"/"),
	}
}

// TestCriticalTable holds the page's examples against the function.
func TestCriticalTable(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: root + "/sub", Home: home, Roots: []string{root}}
	for _, row := range table(t, "critical") {
		found := shell.Analyze(row[0])
		if got := damage.Find(found.Commands, found.Writes, around); (got != "") != (row[1] == "yes") {
			t.Errorf("%s: %q, and the page says %s", row[0], got, row[1])
		}
	}
}
