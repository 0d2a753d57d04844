package terminal

import (
	"fmt"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestPick(t *testing.T) {
	offered := []*tooldv1.Suggestion{{Rule: "A", List: "allow"}, {Rule: "B", List: "allow"}, {Rule: "C", List: "ask"}}
	for _, c := range []struct {
		of          int // so many are offered
		typed, want string
	}{
		{3, "1", "SESSION allow A"},
		{3, "3 u", "USER ask C"},
		{3, "2,1 L", "LOCAL allow A, LOCAL allow B"},
		{3, " 1 1  2 project ", "PROJECT allow A, PROJECT allow B"},
		{1, "s", "SESSION allow A"},
		{1, "user", "USER allow A"},
		{3, "u", "! Which of the 3"},
		{3, "0", "! no rule 0"},
		{3, "4 u", "! no rule 4"},
		{3, "u 1", `! "u" is not understood`},
		{3, "1 everywhere", `! "everywhere" is not understood`},
		{3, "1 s u", `! "s" is not understood`},
		{3, "99999999999999999999", "! is not understood"},
		{3, "1 \x1b[2J", "! ␛[2j"},
	} {
		picked, wrong := pick(offered[:c.of], c.typed, Keepers, false)
		var got []string
		for _, r := range picked {
			got = append(got, fmt.Sprintf("%s %s %s", strings.TrimPrefix(r.GetScope().String(), "SCOPE_"), r.GetList(), r.GetRule()))
		}
		if part, ok := strings.CutPrefix(c.want, "! "); ok {
			if len(got) > 0 || !strings.Contains(wrong, part) {
				t.Errorf("pick(%q) = %v, %q; want a complaint with %q", c.typed, got, wrong, part)
			}
		} else if wrong != "" || strings.Join(got, ", ") != c.want {
			t.Errorf("pick(%q) = %v, %q; want %s", c.typed, got, wrong, c.want)
		}
	}
}

// A rule that opens a host to programs is kept for the session or the user, and offered so.
func TestPickForHost(t *testing.T) {
	q := &tooldv1.Question{Connection: &tooldv1.Connection{Host: "a.example", Port: 443}}
	offered := []*tooldv1.Suggestion{{Rule: "WebFetch(domain:a.example)", List: "allow"}}
	for typed, want := range map[string]string{"s": "", "1 user": "", "1 l": "s or u", "project": "s or u"} {
		picked, wrong := pick(offered, typed, KeepersFor(q, Keepers), false)
		if !strings.Contains(wrong, want) || (len(picked) == 1) != (want == "") {
			t.Errorf("pick(%q) = %v, %q", typed, picked, wrong)
		}
	}
	if text := suggestionText(offered, KeepersFor(q, Keepers), Ink{}); strings.Contains(text, "project, for") || !strings.Contains(text, "also for commands") {
		t.Errorf("it offers\n%s", text)
	}
}

// The true reason is said where there is nothing to keep.
func TestNoSuggestion(t *testing.T) {
	for want, grounds := range map[string][]*tooldv1.Ground{
		"the ask rule A in /s.json:1 is about this call":              {{Code: "no_rule_command", Text: "No rule allows `x`."}, {Code: "rule", Text: "The rule A asks about `x`.", Rule: "A", List: "ask", File: "/s.json", Line: 1}},
		"the deny rule D in /s.json:1 may be about this call":         {{Code: "rule_doubtful", Text: "The rule D in /s.json:1 may be about `x`: so.", Rule: "D", List: "deny", File: "/s.json", Line: 1}},
		"none passes what asks here. What it would do cannot be seen": {{Code: "unseen", Text: "What it would do cannot be seen in full."}},
		"none that covers this call is both narrow":                   {{Code: "no_rule_command", Text: "No rule allows `x`."}, {Code: "writes_outside", Text: "It writes /x, which is outside the roots."}, {Code: "reads_unnamed", Text: "`x` may read files that it does not name."}},
		"none that covers this call":                                  nil,
	} {
		if got := NoSuggestion(&tooldv1.Question{Grounds: grounds}); !strings.Contains(got, want) || !strings.HasPrefix(got, "There is no rule to keep") {
			t.Errorf("%v: %q, want %q in it", grounds, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for rule, want := range map[string]string{
		"Bash(npm run test *)":           `"npm run test", alone or with anything behind it`,
		"Bash(ls:*)":                     `"ls", alone or with anything behind it`,
		"Bash(git * main)":               "commands of this form",
		"Bash(git * main *)":             "commands of this form",
		"Bash(make)":                     "this very command",
		"Bash(echo (x))":                 "this very command",
		"Bash":                           "every call of Bash",
		"mcp__github__get_issue":         "every call of mcp__github__get_issue",
		"Read(~/notes/**)":               "reading everything below ~/notes",
		"Read(//var/log/**)":             "reading everything below /var/log",
		"Edit(./*)":                      "reading and changing what stands directly in the root",
		"Edit(./src/**)":                 "reading and changing everything below ./src",
		"Read(./*.txt)":                  "reading ./*.txt",
		"WebFetch(domain:example.com)":   "every page of example.com, also for commands",
		"WebFetch(domain:*.example.com)": "every page of the hosts below example.com, also for commands",
		"Strange(x)":                     "",
		"":                               "every call of ",
	} {
		if got := Covers(rule); got != want {
			t.Errorf("covers(%s) = %q, want %q", rule, got, want)
		}
	}
}
