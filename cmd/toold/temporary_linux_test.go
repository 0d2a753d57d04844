package main

// Temporary files: what one tool makes below /tmp is there for the others, whatever confines the calls. How they are confined
// is not known here.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A tempCall is one call of a session. want: what the result has in it; after "!", of a call that does not end well; after "?",
// of one that asked. The others must not ask.
type tempCall struct{ tool, input, want string }

// numbered counts calls, so that each has an id of its own.
var numbered atomic.Int64

func bashed(command string) string {
	text, _ := json.Marshal(map[string]string{"command": command})
	return string(text)
}

// calls makes the calls one after the other, each in a turn of its own.
func (c *talk) calls(places *strings.Replacer, calls []tempCall) {
	c.t.Helper()
	for _, call := range calls {
		if call.tool == "Bash" {
			call.input = bashed(call.input)
		}
		id, before := fmt.Sprint("call", numbered.Add(1)), len(c.heard)
		c.use(id, call.tool, places.Replace(call.input))
		r := c.finish(id, yes)
		want, fails := strings.CutPrefix(call.want, "!")
		want, asks := strings.CutPrefix(want, "?")
		if failed := r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK; failed != fails {
			c.t.Errorf("%s %s\nends %s:\n%s", call.tool, call.input, outcome(r), textIn(r))
		}
		asked := false
		for _, event := range c.heard[before:] {
			asked = asked || event.GetQuestion() != nil
		}
		if asked != asks {
			c.t.Errorf("%s %s\nasked: %t\n%v", call.tool, call.input, asked, story(c.heard[before:]))
		}
		holds(c.t, call.tool+" "+call.input, textIn(r), places.Replace(want))
	}
}

// aTemporary house is outside of the temporary directories, with a file in the machine's /tmp that no other test has.
func aTemporaryHouse(t *testing.T) (h *house, places *strings.Replacer) {
	t.Helper()
	nobodyElses(t)
	h = ordinary(t)
	shot, err := os.MkdirTemp("/tmp", "toold-shot-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shot) })
	_ = os.Chmod(shot, 0o755) //nolint:gosec // others may look
	put(t, filepath.Join(shot, "shot.txt"), "of the machine\n")
	return h, strings.NewReplacer("PIC", shot, "STATE", filepath.Join(h.dir, "state"), "HOME", filepath.Join(h.dir, "home"))
}

// usedNames are those below /tmp and /var/tmp that the tests use, and that the machine must not have.
var usedNames = strings.Fields("x y z s.py sub g here other repo copied mine up down notes state above root secret .mcp.json toold-none byscript")

func nobodyElses(t *testing.T) {
	t.Helper()
	for _, name := range usedNames {
		for _, dir := range []string{"/tmp", "/var/tmp"} {
			if path := filepath.Join(dir, name); exists(path) {
				skip(t, "remove "+path+", which some program has left there")
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// editing are options of a session in which edits need no answer.
func editing(rules string) *tooldv1.Options {
	o := allowing(rules)
	o.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS.Enum()
	return o
}

// sameTemporary are calls that come out the same with every means of confinement. T stands for the name of the directory.
var sameTemporary = []tempCall{
	{"Bash", "echo hi > T/x", ""},
	{"Read", `{"file_path":"T/x"}`, "hi"},
	{"Bash", "cat T/x", "hi"},
	{"Bash", "cat T/x; true", "hi"},
	{"Bash", "for f in T/x; do wc -c < $f; done", "3"},
	{"Bash", "tail -n 1 T/x", "hi"},
	{"Edit", `{"file_path":"T/x","old_string":"hi","new_string":"ho"}`, ""},
	{"Bash", "cat T/x", "ho"},
	{"Write", `{"file_path":"T/s.py","content":"print(6*7)\n"}`, "STATE/toold/temp"},
	{"Bash", "python3 T/s.py", "42"},
	{"Bash", "sh -c 'cat T/s.py'", "print"},
	{"Grep", `{"pattern":"print","path":"T","output_mode":"content"}`, "print(6*7)"},
	{"Glob", `{"pattern":"*.py","path":"T"}`, "s.py"},
	{"LS", `{"path":"T"}`, "s.py"},
	{"Bash", "ls T", "s.py"},
	{"Bash", "mkdir -p T/sub && cd T/sub && echo y > f && cat f", "y"},
	{"Bash", "pwd", "T/sub"},
	{"Read", `{"file_path":"T/sub/f"}`, "y"},
	{"Bash", "cat f", "y"},
	{"Bash", "cd T && echo z > g; cat g sub/f", "z\ny"},
	{"Bash", "rm -r sub && ls", "g"},
	{"Bash", "cd ROOT && pwd", "ROOT"},
}

const tempRules = `"Bash(cat *)", "Bash(echo *)", "Bash(python3 *)", "Bash(sh -c *)", "Bash(git *)", "Bash(mktemp *)", "Bash(mktemp)", "Bash(cd *)", "Bash(ln *)"`

// inTheSandbox are calls that come out so where the machine's names can be given to the session's own directories.
var inTheSandbox = []tempCall{
	{"Bash", "mktemp", "/tmp/tmp."},
	{"Bash", "echo ${TMPDIR-none}", "/tmp"},
	{"Bash", "echo ${TMPDIR-none}; true", "/tmp"},
	{"Bash", "cat <<END > /tmp/here\na $((1+1))\nEND", "is a temporary file of this session. Outside of it, it is STATE/toold/temp"},
	{"Edit", `{"file_path":"/tmp/here","old_string":"a 2","new_string":"b"}`, ""},
	{"Bash", "cat <<END\n$(cat /tmp/here)\nEND", "b"},
	{"Bash", "stat -c %a /tmp /var/tmp", "1777\n1777"},
	{"Bash", "echo x > /var/tmp/other; ls /tmp", "here"},
	{"Bash", "cat /tmp/other", "!No such file"},
	{"Bash", "git init -q /tmp/repo && cd /tmp/repo && echo a > a && git add a && git commit -qm made", ""},
	{"Bash", "git log --oneline", "made"},
	{"Bash", "git -C /tmp/repo status --short; cd ROOT", ""},
	{"Bash", "git -C /tmp/repo show --stat", "made"},
	{"Bash", "cat PIC/shot.txt", "?of the machine"},
	{"Read", `{"file_path":"PIC/shot.txt"}`, "?of the machine"},
	{"Bash", "cat PIC/shot.txt; touch there", "?of the machine"},
	{"Bash", "ls /tmp | grep -c toold-shot", "0"},
	{"Bash", "cat PIC/shot.txt > /tmp/copied; cat /tmp/copied", "?of the machine"},
	{"Bash", "echo more >> PIC/shot.txt", "?"},
	{"Bash", "cat PIC/shot.txt", "?of the machine\nmore"},
	{"Bash", "echo planted > /tmp/mine; cat /tmp/mine", "planted"},
	{"Bash", "ln -s ../etc/hostname /tmp/up; ln -s /tmp/here /tmp/down; cat /tmp/down", "?b"},
	{"Read", `{"file_path":"/tmp/down"}`, "b"},
}

// TestTemporary: in the sandbox the session has a /tmp and a /var/tmp of its own, the same for all tools.
func TestTemporary(t *testing.T) {
	h, places := aTemporaryHouse(t)
	for i, dir := range []string{"/tmp", "/var/tmp"} {
		root := h.room(t, fmt.Sprint("temporary", i), nil)
		h.attach(t, in(root, editing(tempRules))).calls(places, inDirectory(dir, root, sameTemporary))
	}
	root := h.room(t, "sandbox", nil)
	h.attach(t, in(root, editing(tempRules))).calls(places, inDirectory("/tmp", root, inTheSandbox))
}

// inDirectory returns the calls with the name of a directory for temporary files, and the root.
func inDirectory(dir, root string, calls []tempCall) (named []tempCall) {
	at := strings.NewReplacer("ROOT", root, "T/", dir+"/", `T"`, dir+`"`, "cd T", "cd "+dir, "ls T", "ls "+dir)
	for _, call := range calls {
		named = append(named, tempCall{call.tool, at.Replace(call.input), at.Replace(call.want)})
	}
	return named
}

// TestTemporaryAsNobody: the same for a user without rights.
func TestTemporaryAsNobody(t *testing.T) {
	asNobody(t, "testdata/ordinary", "^TestTemporary(Links|Kept|Asked)?$")
}

// TestTemporaryWithoutNamespaces: where nothing can be mounted, the file tools keep the names, commands have the directory as
// TMPDIR, and one that names it otherwise is told by which path to name it.
func TestTemporaryWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	h, _ := aTemporaryHouse(t)
	root := h.room(t, "fallback", nil)
	own := filepath.Join(h.dir, "state", "toold", "temp", "fallback", "tmp")
	places := strings.NewReplacer("OWN", own)
	h.attach(t, in(root, editing(tempRules+`, "Bash(tee *)"`))).calls(places, []tempCall{
		{"Bash", "echo ${TMPDIR-none}", "OWN"},
		{"Bash", "mktemp", "OWN/tmp."},
		{"Write", `{"file_path":"/tmp/s.py","content":"print(6*7)\n"}`, "OWN/s.py"},
		{"Bash", "python3 /tmp/s.py", "!OWN/s.py"},
		{"Bash", "cat /tmp/s.py", "!OWN/s.py"},
		{"Bash", "ls /tmp", "!OWN"},
		{"Bash", "echo hi > /tmp/x", "!OWN/x"},
		{"Bash", "cd /tmp && echo hi > x", "!OWN"},
		{"Bash", "echo hi | tee /tmp/x", "!OWN/x"},
		{"Bash", "python3 OWN/s.py", "42"},
		{"Bash", "python3 $TMPDIR/s.py", "42"},
		{"Bash", "cat OWN/s.py", "print"},
		{"Bash", "echo hi > $TMPDIR/x; cat $TMPDIR/x", "?hi"},
		{"Read", `{"file_path":"/tmp/x"}`, "hi"},
		{"Edit", `{"file_path":"/tmp/x","old_string":"hi","new_string":"ho"}`, ""},
		{"Grep", `{"pattern":"print","path":"/tmp","output_mode":"content"}`, "print(6*7)"},
		{"Bash", "cat OWN/x", "ho"},
	})
}

// TestTemporaryShared: a setting gives calls the machine's own directories instead; of the user's file, not of a session's.
func TestTemporaryShared(t *testing.T) {
	inLasting(t)
	const shared = `{"sandbox": {"sharedTmp": true}}`
	h := newHouse(t, map[string]string{"config/toold/settings.json": shared})
	dir, err := os.MkdirTemp("/tmp", "toold-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	places := strings.NewReplacer("DIR", dir)
	h.attach(t, in(h.room(t, "shared", nil), editing(tempRules))).calls(places, []tempCall{
		{"Bash", "echo hi > DIR/x", ""},
		{"Bash", "cat DIR/x", "hi"},
		{"Bash", "cat DIR/x; true", "hi"},
		{"Edit", `{"file_path":"DIR/x","old_string":"hi","new_string":"ho"}`, ""},
		{"Bash", "cd DIR && echo y > y", ""},
		{"Bash", "pwd", "DIR"},
	})
	if got := content(t, filepath.Join(dir, "x")) + content(t, filepath.Join(dir, "y")); got != "ho\ny\n" {
		t.Errorf("the machine's files hold %q", got)
	}
	other := newHouse(t, nil)
	o := editing(tempRules)
	o.SettingsJson = proto.String(strings.Replace(o.GetSettingsJson(), "{", `{"sandbox": {"sharedTmp": true}, `, 1))
	c := other.attach(t, in(other.room(t, "unshared", nil), o))
	told := tempCall{"Bash", "echo z > DIR.z", "state/toold/temp"}
	if other.tier(t) != tooldv1.SandboxTier_SANDBOX_TIER_FULL { // where that path is the one to use
		told.want = "!" + told.want
	}
	c.calls(places, []tempCall{told})
	if _, err := os.Lstat(dir + ".z"); err == nil {
		t.Error("a session's own settings have opened the machine's files")
	}
	holds(t, "the warnings", strings.Join(c.attached.GetWarnings(), "\n"), "sharedTmp")
}

// The same where there are no namespaces.
func TestTemporarySharedWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("shared", TestTemporaryShared)
}

// TestTemporaryOutside: a command outside of the sandbox sees what the machine has, and where the sandbox is off everything
// does.
func TestTemporaryOutside(t *testing.T) {
	h, places := aTemporaryHouse(t)
	o := editing(tempRules)
	o.SettingsJson = proto.String(strings.Replace(o.GetSettingsJson(), "{", `{"sandbox": {"excludedCommands": ["wc *"]}, `, 1))
	h.attach(t, in(h.room(t, "excluded", nil), o)).calls(places, []tempCall{
		{"Bash", "echo hi > /tmp/toold-none", ""},
		{"Bash", "wc -c /tmp/toold-none", "!?temp/excluded/tmp/toold-none"},
		{"Bash", "wc -c PIC/shot.txt", "?15"},
	})
	o = editing(tempRules)
	o.SettingsJson = proto.String(strings.Replace(o.GetSettingsJson(), "{", `{"sandbox": {"enabled": false}, `, 1))
	h.attach(t, in(h.room(t, "off", nil), o)).calls(places, []tempCall{
		{"Bash", "echo hi > PIC/x", "?"},
		{"Read", `{"file_path":"PIC/x"}`, "?hi"},
	})
}

// TestTemporaryLinks: what a command plants among its temporary files leads the daemon nowhere else than the command.
func TestTemporaryLinks(t *testing.T) {
	h, places := aTemporaryHouse(t)
	put(t, filepath.Join(h.dir, "home", "notes"), "private\n")
	put(t, filepath.Join(h.dir, "state", "toold", "temp", "other", "tmp", "x"), "of another session\n")
	c := h.attach(t, in(h.room(t, "links", map[string]string{"plant.sh": places.Replace(`set -e
		ln -s HOME/notes /tmp/notes; ln -s STATE/toold /tmp/state; ln -s ../.. /tmp/above
		ln -s STATE/toold/temp/links/../other/tmp /tmp/other; ln -s / /tmp/root; echo own > /tmp/x`)}), editing(tempRules+`, "Bash(sh *)"`)))
	c.calls(places, []tempCall{{"Bash", "sh plant.sh", ""}, {"Read", `{"file_path":"/tmp/above/etc/passwd"}`, "root"}, {"Bash", "cat /tmp/above/etc/passwd", "root"}})
	for i, path := range []string{"/tmp/state/journal.db", "/tmp/other/x", "/tmp/above/STATE/toold/temp/other/tmp/x", "/tmp/root/STATE/toold/temp/links/tmp/../../other/tmp/x", "STATE/toold/temp/links/tmp/../../other/tmp/x", "STATE/toold/temp/other/tmp/x"} {
		for _, use := range [][2]string{
			{"Read", fmt.Sprintf(`{"file_path":%q}`, places.Replace(path))},
			{"Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, places.Replace(path))},
			{"Grep", fmt.Sprintf(`{"pattern":"session","path":%q,"output_mode":"content"}`, places.Replace(path))},
			{"Bash", bashed("cat " + places.Replace(path))},
			{"Bash", bashed("echo x >> " + places.Replace(path))},
		} {
			id := fmt.Sprint("links", i, use)
			c.use(id, use[0], use[1])
			if r := c.finish(id, yes); r.GetOutcome() == tooldv1.Outcome_OUTCOME_OK || strings.Contains(textIn(r), "of another session") {
				t.Errorf("%v ends %s:\n%s", use, outcome(r), textIn(r))
			}
		}
	}
	for _, use := range [][2]string{{"Read", `{"file_path":"/tmp/notes"}`}, {"Write", `{"file_path":"/tmp/root/PIC/made","content":"x"}`}, {"Bash", bashed("cat /tmp/notes")}, {"Bash", bashed("echo x > /tmp/root/PIC/made")}} {
		id := "asks" + use[0] + use[1]
		c.use(id, use[0], strings.ReplaceAll(places.Replace(use[1]), "/tmp/root/tmp/", "/tmp/root/var/../tmp/"))
		before := len(c.heard)
		if c.finish(id, no); !asks(c.heard[before:]) {
			t.Errorf("%v did not ask: %v", use, story(c.heard[before:]))
		}
	}
	if got := content(t, filepath.Join(h.dir, "state", "toold", "temp", "other", "tmp", "x")); got != "of another session\n" {
		t.Errorf("the other session's file holds %q", got)
	}
}

func asks(events []*tooldv1.ExecuteResponse) bool {
	return slices.ContainsFunc(events, func(event *tooldv1.ExecuteResponse) bool { return event.GetQuestion() != nil })
}

// TestTemporaryKept: a session's temporary files last as long as it, also over a restart of the daemon, and no other has them.
func TestTemporaryKept(t *testing.T) {
	h, places := aTemporaryHouse(t)
	root := h.room(t, "kept", nil)
	h.attach(t, in(root, editing(tempRules))).calls(places, []tempCall{{"Bash", "cd /tmp && echo hi > x && echo x > /var/tmp/y", ""}})
	other := in(root, editing(tempRules))
	other.SessionId = "kept-other"
	h.attach(t, other).calls(places, []tempCall{{"Bash", "ls /tmp /var/tmp", "/tmp:\n\n/var/tmp:"}, {"Read", `{"file_path":"/tmp/x"}`, "!does not exist"}})
	if out, err := self(t, t.Context(), h.environ, root, "stop", "--now").CombinedOutput(); err != nil {
		t.Fatalf("toold stop: %v\n%s", err, out)
	}
	h.start(t, root)
	h.attach(t, in(root, editing(tempRules))).calls(places, []tempCall{
		{"Bash", "pwd; cat x", "/tmp\nhi"},
		{"Read", `{"file_path":"/var/tmp/y"}`, "x"},
		{"Edit", `{"file_path":"/tmp/x","old_string":"hi","new_string":"ho"}`, ""},
		{"Bash", `python3 -c 'import os; os.makedirs("/tmp/closed/in"); os.chmod("/tmp/closed", 0o555)'`, ""},
	})
	own := filepath.Join(h.dir, "state", "toold", "temp", "kept")
	if _, err := os.Stat(own); err != nil {
		t.Fatal(err)
	}
	if _, err := h.link.Sessions.CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "kept"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("the files of a closed session are still there (%v)", err)
	}
}

// TestTemporaryAsked: a write among the temporary files needs what the command and the mode need, and no more.
func TestTemporaryAsked(t *testing.T) {
	h, places := aTemporaryHouse(t)
	for i, x := range []struct {
		options *tooldv1.Options
		calls   []tempCall
	}{
		{allowing(`"Bash(echo *)"`), []tempCall{
			{"Bash", "echo hi > /tmp/x", ""},
			{"Bash", "echo hi > x", "?"},
			{"Bash", "echo hi > /tmp/x; touch /tmp/y", "?"},
			{"Bash", "cat /tmp/x", "hi"},
			{"Write", `{"file_path":"/tmp/z","content":"z"}`, "?"},
			{"Edit", `{"file_path":"/tmp/x","old_string":"hi","new_string":"ho"}`, "?"},
		}},
		{allowing(`"Edit(//tmp/**)"`), []tempCall{
			{"Write", `{"file_path":"/tmp/z","content":"z"}`, ""},
			{"Bash", "echo hi > /tmp/x", ""},
			{"Write", `{"file_path":"/var/tmp/z","content":"z"}`, "?"},
		}},
		{allowing(""), []tempCall{{"Bash", "echo hi > /tmp/x", "?"}, {"Bash", "touch /tmp/x", "?"}, {"Bash", "cat /tmp/x; ls /tmp", "hi"}}},
		{editing(""), []tempCall{{"Bash", "touch /tmp/x", ""}, {"Write", `{"file_path":"/tmp/z","content":"z"}`, ""}, {"Bash", "rm /tmp/z", ""}, {"Write", `{"file_path":"/tmp/.mcp.json","content":"z"}`, "?"}}},
		{&tooldv1.Options{SettingsJson: proto.String(`{"permissions": {"allow": ["Bash"], "deny": ["Read(//tmp/secret)"]}}`)}, []tempCall{
			{"Bash", "sh -c 'echo of the machine > /tmp/$(echo secret)'", ""},
			{"Bash", "cat /tmp/secret", "!denies"},
			{"Read", `{"file_path":"/tmp/secret"}`, "!denies"},
			{"Read", `{"file_path":"STATE/toold/temp/asked4/tmp/secret"}`, "!denies"},
			{"Bash", "sh -c 'cat /tmp/$(echo secret)'", "!?denied"},
			{"Bash", "sh -c 'cat STATE/toold/temp/asked4/tmp/$(echo secret)'", "!?denied"},
			{"Grep", `{"pattern":"machine","path":"/tmp","output_mode":"content"}`, "No matches"},
		}},
	} {
		h.attach(t, in(h.room(t, fmt.Sprint("asked", i), nil), x.options)).calls(places, x.calls)
	}
}
