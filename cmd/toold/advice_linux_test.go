package main

// Where no client can answer, a denial names what to change where. These tests do just that, word for word, and send the call again.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An unasked is a call that needs an answer, in a session where no client answers.
type unasked struct {
	name    string
	user    string // the user's settings; empty: {}
	options *tooldv1.Options
	command string // or TOOL INPUT
	denied  string // empty: cannot_ask
	then    string // what comes of it once the advice was followed; empty: OK
	answer  bool   // no settings help: the advice is to answer
}

var unaskeds = []unasked{
	{name: "a command", command: "sh make.sh"},
	{name: "a command with a star", command: "find . -name '*.o' -delete"},
	{name: "a quoted command", command: `sh -c 'echo "a  b" > made'`},
	{name: "an assignment", command: "X=1 sh make.sh"},
	{name: "a loop", command: "for f in a b; do echo x > $f; done"},
	{name: "an eval", command: `eval "$(cat make.sh)"`},
	{name: "an unknown program", command: "$TOOL x; true"},
	{name: "a suggested rule", command: "make; true"},
	{name: "a write in the root", command: "echo x > f"},
	{name: "a write outside", command: "echo x > OUT/f"},
	{name: "a write in home", command: "echo x > HOME/f"},
	{name: "a removal outside", command: "rm OUT/there"},
	{name: "a removal by find", command: "find OUT/there -delete"},
	{name: "a program elsewhere", command: "cd OUT && sh -c 'touch f'"},
	{name: "a removal in home", command: "rm HOME/note"},
	{name: "a change in home", command: "sed -i s/x/y/ HOME/note"},
	{name: "a read outside", command: "cat OUT/there"},
	{name: "a read in home", command: "cat HOME/note; sh make.sh"},
	{name: "a read of what is hidden", command: "cat HOME/.ssh/id"},
	{name: "a write into what is hidden", command: "echo x >> HOME/.ssh/known_hosts"},
	{name: "all of home", command: "grep -rl x HOME/more"},
	{name: "a host", command: "curl -s https://host.invalid/x; true"},
	{name: "a page", command: `WebFetch {"url":"https://host.invalid/x"}`, then: "ERROR"},
	{name: "a file outside", command: `Write {"file_path":"OUT/f","content":"x"}`},
	{name: "a file in the root", command: `Write {"file_path":"ROOT/f","content":"x"}`},
	{name: "a protected file", command: "echo '{}' > .mcp.json"},
	{name: "a protected file by Write", command: `Write {"file_path":"ROOT/.mcp.json","content":"x"}`},
	{name: "a git setting", command: "git config core.pager cat"},
	{name: "a repository elsewhere", command: "git -C OUT/r commit -q --allow-empty -m x"},
	{name: "outside the sandbox", command: `Bash {"command":"mkdir HOME/made","dangerouslyDisableSandbox":true}`},
	{name: "an ask rule", user: `{"permissions":{"ask":["Bash(sh *)"]}}`, command: "sh make.sh"},
	{name: "an ask rule beside an allow rule", user: `{"permissions":{"ask":["Bash(sh *)"],"allow":["Bash"]}}`, command: "sh make.sh"},
	{name: "an ask rule for a path", user: `{"permissions":{"ask":["Read(make.sh)"]}}`, command: "cat make.sh"},
	{name: "a hook", user: `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"permissionDecision\":\"ask\"}}'"}]}]}}`, command: "ls"},
	{name: "dontAsk", user: `{"permissions":{"defaultMode":"dontAsk"}}`, command: "rm OUT/there", denied: "DENIED mode_denied"},
	{name: "dontAsk, of the client", options: mode(tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK), command: "rm OUT/there", denied: "DENIED mode_denied"},
	{name: "dontAsk, protected", user: `{"permissions":{"defaultMode":"dontAsk"}}`, command: "touch .npmrc", denied: "DENIED mode_denied"},
	{name: "plan", user: `{"permissions":{"defaultMode":"plan"}}`, command: "touch f", denied: "DENIED mode_denied"},
	{name: "acceptEdits", user: `{"permissions":{"defaultMode":"acceptEdits"}}`, command: "touch OUT/f"},
	{name: "bypassPermissions", user: `{"permissions":{"defaultMode":"bypassPermissions"}}`, command: "mv HOME/note HOME/letter"},
	{name: "a critical command", command: "chmod -R u+w ROOT", answer: true},
	{name: "a critical command in bypassPermissions", user: `{"permissions":{"defaultMode":"bypassPermissions"}}`, command: "rm -rf ROOT", answer: true},
}

func mode(m tooldv1.PermissionMode) *tooldv1.Options {
	return &tooldv1.Options{PermissionMode: m.Enum()}
}

func TestAdviceWorks(t *testing.T) {
	h := ordinary(t)
	for i, x := range unaskeds {
		if !chosen(i, 2) {
			continue
		}
		t.Run(x.name, func(t *testing.T) { x.do(t, h, i) })
	}
}

func TestAdviceWorksAsNobody(t *testing.T) { asNobody(t, "testdata/ordinary", "^TestAdviceWorks$") }

func (x unasked) do(t *testing.T, h *house, number int) {
	t.Helper()
	root, out, home := h.room(t, fmt.Sprint("unasked", number), map[string]string{"make.sh": "echo x > made\n", "Makefile": "all:\n"}), filepath.Join(h.dir, "out"), filepath.Join(h.dir, "home")
	places := strings.NewReplacer("ROOT", root, "OUT", out, "HOME", home)
	for _, name := range []string{filepath.Join(out, "there"), filepath.Join(home, "note"), filepath.Join(home, "more", "x")} {
		put(t, name, "x\n")
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(out, "f")); _ = os.RemoveAll(filepath.Join(home, "made")) })
	if text, code := h.inShell(t, root, places.Replace("git init -q . && git init -q OUT/r")); code != 0 {
		t.Fatal(text)
	}
	put(t, h.user(), "{}")
	if x.user != "" {
		put(t, h.user(), x.user)
	}
	send := func(session string) *tooldv1.ToolResult {
		a := in(root, x.options)
		a.SessionId, a.Capabilities = fmt.Sprint(session, number), nil
		c := h.attach(t, a)
		tool, input, found := strings.Cut(places.Replace(x.command), " {")
		if !found {
			c.bash("1", places.Replace(x.command))
			return c.finish("1", no)
		}
		c.use("1", tool, "{"+input)
		return c.finish("1", no)
	}
	first := send("first")
	if x.denied == "" {
		x.denied = "DENIED cannot_ask"
	}
	expect(t, textIn(first), outcome(first), x.denied)
	if x.answer {
		x.answered(t, h, root, fmt.Sprint("first", number), places.Replace(x.command), first)
		return
	}
	heed(t, first)
	second := send("second")
	if x.then == "" {
		x.then = "OK"
	}
	if got := outcome(second); !strings.HasPrefix(got, x.then) {
		t.Errorf("%s\nwith %s\nends %s: %s\nat first it was denied:\n%s", x.command, content(t, h.user()), got, textIn(second), textIn(first))
	}
}

// answered follows the other advice: a terminal that answers, and the call once more.
func (x unasked) answered(t *testing.T, h *house, root, session, command string, denied *tooldv1.ToolResult) {
	t.Helper()
	found := regexp.MustCompile("run `toold (attach [^`]+)` on a terminal and send the call again").FindStringSubmatch(textIn(denied))
	if found == nil || denied.GetError().GetDetails().AsMap()["advice"] != nil {
		t.Fatalf("the advice is not to answer: %s", textIn(denied))
	}
	a := &tooldv1.Attach{SessionId: session}
	c := h.attach(t, a)
	user := apart(t, h.environ, root, strings.Fields(found[1])...)
	id := ""
	for n := 2; ; n++ { // until the terminal is there
		id = fmt.Sprint(n)
		c.bash(id, command)
		c.endTurn()
		if c.until(id + " accepted"); c.until(id+" ").GetQuestion() != nil {
			break
		}
		c.until("turn ended")
	}
	user.expect(`Run it\?`)
	user.typed("y\n")
	c.until(id + " started")
	c.until(id + " OK")
}

// heed does what a denial advises.
func heed(t *testing.T, denied *tooldv1.ToolResult) {
	t.Helper()
	text, err := json.Marshal(denied.GetError().GetDetails().AsMap()["advice"])
	if err != nil {
		t.Fatal(err)
	}
	var advice struct {
		File     string
		Settings map[string]any
		Drop     []struct{ Rule, List, File string }
	}
	if err := json.Unmarshal(text, &advice); err != nil || advice.Settings == nil && advice.Drop == nil {
		t.Fatalf("there is no advice: %s\n%s", text, textIn(denied))
	}
	for _, d := range advice.Drop {
		holds(t, "the denial", textIn(denied), "take the rule "+d.Rule+" out of permissions."+d.List+" in "+d.File)
		change(t, d.File, func(settings map[string]any) {
			permissions := settings["permissions"].(map[string]any)
			permissions[d.List] = slices.DeleteFunc(permissions[d.List].([]any), func(rule any) bool { return rule == d.Rule })
		})
	}
	if advice.Settings == nil {
		return
	}
	said := regexp.MustCompile(`add (\{.*\}) to ` + regexp.QuoteMeta(advice.File)).FindStringSubmatch(textIn(denied))
	var words map[string]any
	if said == nil || json.Unmarshal([]byte(said[1]), &words) != nil || !reflect.DeepEqual(words, advice.Settings) {
		t.Fatalf("the text has no %v: %s", advice.Settings, textIn(denied))
	}
	change(t, advice.File, func(settings map[string]any) { merge(settings, words) })
}

// change rewrites a settings file.
func change(t *testing.T, file string, how func(settings map[string]any)) {
	t.Helper()
	settings := map[string]any{}
	if err := json.Unmarshal([]byte(content(t, file)), &settings); err != nil {
		t.Fatal(err)
	}
	how(settings)
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, string(text))
}

// merge adds settings to others: lists grow, the rest is set.
func merge(to, from map[string]any) {
	for key, value := range from {
		switch value := value.(type) {
		case map[string]any:
			if _, ok := to[key].(map[string]any); !ok {
				to[key] = map[string]any{}
			}
			merge(to[key].(map[string]any), value)
		case []any:
			list, _ := to[key].([]any)
			to[key] = append(list, value...)
		default:
			to[key] = value
		}
	}
}
