package main

// Questions over a real daemon: who answers them, in which order, what an answer decides, and what becomes of them where
// no client can.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// questions waits for that many, and returns them by their calls.
func (c *talk) questions(n int) map[string]*tooldv1.Question {
	c.t.Helper()
	found := map[string]*tooldv1.Question{}
	for len(found) < n {
		if q := c.until("").GetQuestion(); q != nil {
			found[q.GetToolUseId()] = q
		}
	}
	return found
}

// write asks for a new file of that name in the first root.
func (c *talk) write(name string) {
	c.t.Helper()
	c.use(name, "Write", writeCall(c.t, filepath.Join(c.attached.GetRoots()[0], name), name))
}

// beside answers from beside the stream, and returns what became of it.
func (h *house) beside(t *testing.T, session string, a *tooldv1.Answer) string {
	t.Helper()
	_, err := h.link.Sessions.Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: session, Answer: a})
	return refusal(err)
}

// TestAnswersFromAllSides: three questions of one turn, asked at once, answered in another order by three hands.
func TestAnswersFromAllSides(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "sides", nil)
	c := h.attach(t, in(root, nil))
	for _, name := range []string{"a", "b", "c"} {
		c.write(name)
	}
	c.endTurn()
	questions := c.questions(3)
	watched := h.watch(t, "sides").questions(3) // another client sees the same
	for id, q := range questions {
		if watched[id].GetInputDigest() != q.GetInputDigest() || q.GetInputDigest() == "" {
			t.Errorf("the question for %s has the digest %q, and from beside %q", id, q.GetInputDigest(), watched[id].GetInputDigest())
		}
	}

	// The last one first, from beside; a yes for another input than the one that was shown is none.
	altered := answer(watched["c"], yes)
	altered.InputDigest = questions["a"].GetInputDigest()
	holds(t, "the refusal", h.beside(t, "sides", altered), "FailedPrecondition digest_mismatch")
	if got := h.beside(t, "sides", answer(watched["c"], yes)); got != "OK" {
		t.Errorf("the answer is not taken: %s", got)
	}
	c.until("c withdrawn: answered: allowed")

	// The first one on the stream, also once in vain.
	c.answer(&tooldv1.Answer{QuestionId: questions["a"].GetQuestionId(), InputDigest: "x", Decision: yes})
	c.until("notice digest_mismatch")
	c.answer(answer(questions["a"], yes))
	c.until("a OK")

	// The one between on another terminal, where no other is open.
	x := apart(t, h.environ, root, "attach", "sides")
	x.expect(`\? Write`)
	x.expect(`Run it\?`)
	x.typed("n leave that file alone\n")
	holds(t, "the result", textIn(c.until("b DENIED client_denied").GetToolResult()), "leave that file alone")
	x.hangsUp()

	// A late yes changes nothing.
	holds(t, "the refusal", h.beside(t, "sides", answer(questions["b"], yes)), "FailedPrecondition question_closed")
	c.until("turn ended")
	c.answer(answer(questions["b"], yes))
	c.until("notice question_closed")
	for name, want := range map[string]string{"a": "a", "b": "", "c": "c"} {
		if got := content(t, filepath.Join(root, name)); got != want {
			t.Errorf("the file %s holds %q, want %q", name, got, want)
		}
	}
}

// TestAttachKeepsThePromptFree: what happens while a question stands on a terminal is shown there behind it, not into it.
func TestAttachKeepsThePromptFree(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "prompt", nil)
	c := h.attach(t, in(root, nil))
	c.write("a")
	c.question("a")
	x := apart(t, h.environ, root, "attach", "prompt")
	x.expect(`\[e\]dit, \?: `)
	c.write("b")
	c.question("b")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: "a"}}})
	x.expect(`^\r\nThe question is withdrawn`)
	x.expect(`\? Write`)
	x.expect(`\[e\]dit, \?: `)
	x.typed("n\n")
	x.expect(" accepted: Write")
	x.expect(" asks: Write")
	x.hangsUp()
}

// A kept is where an answer's rule is kept, and what the file is before and after.
type kept struct {
	name          string
	scope         tooldv1.Scope
	file          string // below the room; with a / in front below the house
	before, after string
}

var keptCases = []kept{
	{name: "session", scope: tooldv1.Scope_SCOPE_SESSION},
	{
		name: "local", scope: tooldv1.Scope_SCOPE_LOCAL, file: ".toold/settings.local.json",
		after: "{\"permissions\": {\"allow\": [\"Bash(cp *)\"]}}\n",
	},
	{
		name: "project", scope: tooldv1.Scope_SCOPE_PROJECT, file: ".toold/settings.json",
		before: "{ \"permissions\" : {\"deny\":[\"Bash(curl *)\"],\n\t\"allow\":[\"Bash(make *)\",\n\t\t\"Bash(go test *)\"] },\n\"limits\":{}}",
		after:  "{ \"permissions\" : {\"deny\":[\"Bash(curl *)\"],\n\t\"allow\":[\"Bash(make *)\",\n\t\t\"Bash(go test *)\",\n\t\t\"Bash(cp *)\"] },\n\"limits\":{}}",
	},
	{
		name: "user", scope: tooldv1.Scope_SCOPE_USER, file: "/config/toold/settings.json",
		before: "{\"env\": {\"A\": \"b\"}}", after: "{\"env\": {\"A\": \"b\"}, \"permissions\": {\"allow\": [\"Bash(cp *)\"]}}",
	},
}

// TestAlwaysSettlesTheOthers: a rule that comes with an answer is kept where the answer says, counts at once for the open
// questions that it covers, and for no other.
func TestAlwaysSettlesTheOthers(t *testing.T) {
	t.Parallel()
	for _, k := range keptCases {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil) // since one of them is for all sessions
			root := h.room(t, "keeps-"+k.name, map[string]string{"x": ""})
			file := filepath.Join(root, k.file)
			if strings.HasPrefix(k.file, "/") {
				file = filepath.Join(h.dir, k.file)
			}
			if k.before != "" {
				put(t, file, k.before)
			}
			h.trust(t, root)
			c := h.attach(t, in(root, nil))
			c.bash("other", "mkdir d") // the others wait behind it
			c.bash("one", "cp x 1")
			c.bash("two", "cp x 2 && cp x 3")
			c.endTurn()
			questions := c.questions(3)
			const rule = "Bash(cp *)"
			c.answer(answer(questions["one"], yes, &tooldv1.Remember{Rule: rule, List: "allow", Scope: k.scope}))
			c.until("two withdrawn: it is allowed now")
			c.answer(answer(questions["other"], no))
			c.until("turn ended")
			asked := 0
			for _, event := range c.heard {
				if event.GetQuestion() != nil {
					asked++
				}
			}
			told := story(c.heard)
			if asked != 3 || !slices.Contains(told, "one OK") || !slices.Contains(told, "two OK") || !slices.Contains(told, "other DENIED client_denied") {
				t.Errorf("%d questions: %q", asked, told)
			}
			if k.file != "" && content(t, file) != k.after {
				t.Errorf("the file holds\n%s, want\n%s", content(t, file), k.after)
			}
			// From now on, and as far as the rule is kept.
			c.endsWithout(t, "later")
			another := in(root, nil)
			another.SessionId = "another"
			if b := h.attach(t, another); k.scope != tooldv1.Scope_SCOPE_SESSION {
				b.endsWithout(t, "elsewhere")
			} else {
				b.bash("elsewhere", "cp x elsewhere")
				b.question("elsewhere")
			}
		})
	}
}

// endsWithout makes a call that the kept rule covers, and wants no question.
func (c *talk) endsWithout(t *testing.T, id string) {
	t.Helper()
	from := len(c.heard)
	c.run(id, "cp x "+id)
	same(t, "the story", story(c.heard[from:]), id+" accepted", id+" started", id+" OK", "turn ended")
}

// TestNeverSettlesTheOthers: the same with a rule that denies, which comes with a no.
func TestNeverSettlesTheOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "never", map[string]string{"x": ""})
	c := h.attach(t, in(root, nil))
	c.bash("other", "mkdir d") // the others wait behind it
	c.bash("one", "cp x 1")
	c.bash("two", "cp x 2")
	c.endTurn()
	questions := c.questions(3)
	c.answer(answer(questions["one"], no, &tooldv1.Remember{Rule: "Bash(cp *)", List: "deny", Scope: tooldv1.Scope_SCOPE_LOCAL}))
	c.until("two withdrawn: it is denied now")
	c.answer(answer(questions["other"], yes))
	c.until("turn ended")
	told := story(c.heard)
	if !slices.Contains(told, "one DENIED client_denied") || !slices.Contains(told, "two DENIED rule_denied") || !slices.Contains(told, "other OK") {
		t.Errorf("%q", told)
	}
	holds(t, "the file", content(t, filepath.Join(root, ".toold", "settings.local.json")), `"Bash(cp *)"`)
}

// TestUsersPaths: what was suggested about a path of this workspace and is kept for the user holds in this workspace alone.
// What was not suggested is kept as it came.
func TestUsersPaths(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root, other := h.room(t, "mine", map[string]string{"tests/x": ""}), h.room(t, "others", map[string]string{"tests/x": ""})
	c := h.attach(t, in(root, nil))
	c.bash("u", "echo hi > tests/z.ts")
	q := c.question("u")
	if len(q.GetSuggestions()) != 1 || q.GetSuggestions()[0].GetRule() != "Edit(./tests/**)" {
		t.Errorf("suggested: %v", q.GetSuggestions())
	}
	user := tooldv1.Scope_SCOPE_USER
	c.answer(answer(q, yes, &tooldv1.Remember{Rule: "Edit(./tests/**)", List: "allow", Scope: user}, &tooldv1.Remember{Rule: "Read(./docs/**)", List: "deny", Scope: user}))
	c.until("u OK")
	c.bash("again", "echo hi > tests/y.ts")
	c.until("again OK")
	b := h.attach(t, in(other, nil))
	b.bash("elsewhere", "echo hi > tests/z.ts")
	b.question("elsewhere")
	text := content(t, filepath.Join(h.dir, "config", "toold", "settings.json"))
	holds(t, "the user's file", text, `"Edit(/`+root+`/tests/**)"`, `"Read(./docs/**)"`)
}

// TestNobodyAnswers: where no client is asked, or none can answer, a call ends at once and names what would allow it.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dontAsk := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK.Enum()}
	rule := `The rule "Bash(cp x y)" in permissions.allow of the settings would allow the like of it`
	for _, x := range []struct {
		name, command string
		options       *tooldv1.Options
		mute          bool
		want          string
		says          []string
		silent        string // about
	}{
		{name: "dontAsk", command: "cp x y", options: dontAsk, want: "DENIED mode_denied", says: []string{"The permission mode dontAsk does not allow this call", "cp x y"}},
		{name: "dontAsk, ask rule", command: "touch y", options: dontAsk, want: "DENIED mode_denied", says: []string{"Bash(touch *) in WS/.toold/settings.json:1"}},
		{name: "mute", command: "cp x y", mute: true, want: "DENIED cannot_ask", says: []string{"no attached client can give one", "cp x y", rule}},
		{name: "mute, ask rule", command: "touch y", mute: true, want: "DENIED cannot_ask", says: []string{"Bash(touch *) in WS/.toold/settings.json:1"}, silent: "would allow"},
		{name: "mute, nothing to allow it", command: "rm -r WS", mute: true, want: "DENIED cannot_ask", says: []string{"A user must answer, on a terminal or by a client that attaches with capabilities.answers"}, silent: "would allow"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			root := h.room(t, strings.NewReplacer(",", "", " ", "-").Replace(x.name), map[string]string{
				"x": "", ".toold/settings.json": `{"permissions": {"ask": ["Bash(touch *)"]}}`,
			})
			a := in(root, x.options)
			a.Capabilities.Answers = !x.mute
			c := h.attach(t, a)
			result := c.run("u", strings.ReplaceAll(x.command, "WS", root))
			same(t, "the story", story(c.heard), "attached", "u accepted", "u "+x.want, "turn ended")
			for _, text := range x.says {
				holds(t, "the result", textIn(result), strings.ReplaceAll(text, "WS", root))
			}
			if x.silent != "" && strings.Contains(textIn(result), x.silent) {
				t.Errorf("the result promises what no rule can:\n%s", textIn(result))
			}
			if len(result.GetError().GetDetails().GetFields()["grounds"].GetListValue().GetValues()) == 0 {
				t.Errorf("the error has no grounds: %v", result.GetError())
			}
			if _, err := os.Stat(filepath.Join(root, "y")); err == nil {
				t.Error("it was run")
			}
		})
	}
}

// TestAnswererLeaves: a question ends with the last client that could answer it.
func TestAnswererLeaves(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "leaves", map[string]string{"x": ""})
	c := h.attach(t, in(root, nil))
	c.bash("u", "cp x y")
	q := c.question("u")
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	result := c.until("u DENIED cannot_ask").GetToolResult()
	holds(t, "the result", textIn(result), fmt.Sprintf("%q", "Bash(cp x y)"))
	holds(t, "the refusal", h.beside(t, "leaves", answer(q, yes)), "question_closed")
}
