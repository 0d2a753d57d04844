package main

// Settings files that change while a session lives, what a session says for itself, and what settings do to modes, tools
// and places.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// ended runs a command, whose question is answered with no, and returns how that went.
func (c *talk) ended(id, command string) string {
	c.t.Helper()
	from := len(c.heard)
	c.bash(id, command)
	told := outcome(c.finish(id, no))
	for _, event := range c.heard[from:] {
		if event.GetQuestion() != nil {
			told = "asked"
		}
	}
	return told
}

// warnings are those of a new session over the same workspace.
func (c *talk) warnings(name string, options *tooldv1.Options) string {
	c.t.Helper()
	a := in(c.attached.GetRoots()[0], options)
	a.SessionId = name
	return strings.Join(c.house.attach(c.t, a).attached.GetWarnings(), "\n")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestSettingsReload: what is saved counts for the next call of a session that lives; a file that is broken is told of and
// counts as it was.
func TestSettingsReload(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, x := range []struct {
		name, file string
		options    *tooldv1.Options
		house      *house
	}{
		{name: "user", file: "config/toold/settings.json", house: h},
		{name: "managed", file: "managed/settings.d/10-more.json", house: newHouse(t, map[string]string{"managed/settings.d/00-first.json": "{}"})},
		{name: "workspace", file: "rooms/reload-workspace/.toold/settings.local.json", options: trusted(), house: newHouse(t, nil)},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			h, file := x.house, filepath.Join(x.house.dir, x.file)
			root := h.room(t, "reload-"+x.name, nil)
			c := h.attach(t, in(root, x.options))
			expect(t, "without a file", c.ended("none", "touch made"), "asked")
			put(t, file, `{"permissions": {"allow": ["Bash(touch *)"]}}`)
			expect(t, "with an allow rule", c.ended("allow", "touch made"), "OK")
			put(t, file, "{\"permissions\": {\"allow\": [\"Bash(touch *)\"],\n\"deny\": [\"Bash(touch made)\"]}}")
			expect(t, "with a deny rule", c.ended("deny", "touch made"), "DENIED rule_denied")
			holds(t, "the result", textIn(c.run("which", "touch made")), file+":2")
			put(t, file, "{\"permissions\": {\n\"allow\": [\"Bash(touch *)\"],\n,}}")
			expect(t, "broken", c.ended("broken", "touch made"), "DENIED rule_denied")
			expect(t, "broken, of what was allowed", c.ended("still", "touch other"), "OK")
			said := []string{file + ":3:", "it is not valid JSON", "Its earlier content stays in force"}
			holds(t, "what the session hears", strings.Join(c.notices("settings_warning"), "\n"), said...)
			holds(t, "the warnings", c.warnings("beside-"+x.name, x.options), said...)
			put(t, file, `{"permissions": {"allow": ["Bash(touch *)"]}}`)
			expect(t, "fixed", c.ended("fixed", "touch made"), "OK")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			expect(t, "removed", c.ended("removed", "touch made"), "asked")
		})
	}
}

// TestEnvironmentReload: what settings put into the environment is what they say when a call begins, also when they change
// while one runs.
func TestEnvironmentReload(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "env", nil)
	say := func(word string) {
		put(t, h.user(), fmt.Sprintf(`{"env": {"GREETING": %q}, "permissions": {"allow": ["Bash(touch *)"]}}`, word))
	}
	c := h.attach(t, in(root, nil))
	c.run("none", "touch x")
	for _, word := range []string{"hello", "good morning"} {
		say(word)
		expect(t, "GREETING of the next call", textIn(c.run(word, `touch x; echo "$GREETING"`)), word+"\n")
	}

	gate := filepath.Join(root, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	c.bash("slow", `touch x; cat gate; echo "$GREETING"`)
	c.until("slow started")
	say("good evening")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "GREETING of the call that ran", textIn(c.finish("slow", yes)), "good morning\n")
	expect(t, "GREETING of the one behind it", textIn(c.run("behind", `touch x; echo "$GREETING"`)), "good evening\n")
}

// TestOutputLimitReload: a smaller bound of a call's output is in force for the next call, and a workspace may set one.
func TestOutputLimitReload(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "bound", nil)
	c := h.attach(t, in(root, trusted()))
	expect(t, "without a bound", c.ended("none", "head -c 5000 /dev/zero"), "OK")
	put(t, h.user(), `{"limits": {"output_bytes": 4000}}`)
	expect(t, "with the user's", c.ended("user", "head -c 5000 /dev/zero"), "ERROR output_limit")
	put(t, filepath.Join(root, ".toold", "settings.json"), `{"limits": {"output_bytes": 2000}}`)
	expect(t, "with the workspace's", c.ended("workspace", "head -c 3000 /dev/zero"), "ERROR output_limit")
}

// TestOptions: what a session says for itself when it attaches.
func TestOptions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"allow": ["Bash(touch *)", "Bash(mkdir *)"], "defaultMode": "plan"}}`})
	root := h.room(t, "options", map[string]string{".toold/settings.json": `{"permissions": {"allow": ["Bash(cp *)"]}}`})
	with := func(o *tooldv1.Options) *tooldv1.Attach {
		a := in(root, o)
		a.SessionId = "options"
		return a
	}
	c := h.attach(t, with(nil))
	expect(t, "in the mode of the settings", c.ended("plan", "touch made"), "DENIED mode_denied")
	c = h.attach(t, with(&tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT.Enum()}))
	expect(t, "in the mode of the session", c.ended("mode", "touch made"), "OK")
	expect(t, "what the workspace allows", c.ended("before", "cp made copy"), "asked")
	c = h.attach(t, with(&tooldv1.Options{Trusted: proto.Bool(true)}))
	expect(t, "what the trusted workspace allows", c.ended("after", "cp made copy"), "OK")
	c = h.attach(t, with(&tooldv1.Options{SettingsJson: proto.String(`{"permissions": {"deny": ["Bash(touch *)"], "ask": ["Bash(cp *)"]}}`)}))
	expect(t, "what the session denies", c.ended("deny", "touch made"), "DENIED rule_denied")
	expect(t, "what the session asks about", c.ended("ask", "cp made copy"), "asked")
	expect(t, "what it says nothing of", c.ended("silent", "mkdir made.d"), "OK")
	holds(t, "the refusal", h.refused(t, with(&tooldv1.Options{SettingsJson: proto.String("{\n\"permissions\" 5}")})),
		"InvalidArgument invalid_settings", "options.settings_json:2")
	c = h.attach(t, with(nil))
	expect(t, "what was refused changes nothing", c.ended("same", "touch made"), "DENIED rule_denied")
	c = h.attach(t, with(&tooldv1.Options{SettingsJson: proto.String(""), Trusted: proto.Bool(false)}))
	expect(t, "what the session does not deny any more", c.ended("free", "touch made"), "OK")
	expect(t, "what the workspace allows, as before", c.ended("again", "cp made copy"), "asked")
}

// TestModes: the mode that files name, and what may keep a session from one.
func TestModes(t *testing.T) {
	t.Parallel()
	bypass := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	t.Run("loose", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"defaultMode": "acceptEdits"}}`})
		root := h.room(t, "loose", map[string]string{".toold/settings.json": `{"permissions": {"defaultMode": "bypassPermissions", "ask": ["Bash(rm *)"]}}`})
		c := h.attach(t, in(root, trusted()))
		expect(t, "an edit", c.ended("edit", "touch made"), "OK")
		expect(t, "a program", c.ended("program", "chmod +x made"), "asked")
		holds(t, "the warnings", strings.Join(c.attached.GetWarnings(), "\n"), "bypassPermissions", "a workspace can only make it stricter")
		c = h.attach(t, &tooldv1.Attach{SessionId: "loose", Options: bypass, Capabilities: &tooldv1.Capabilities{Answers: true}})
		expect(t, "a program in the mode of the session", c.ended("bypass", "chmod +x made"), "OK")
		expect(t, "what an ask rule is about", c.ended("rule", "rm made"), "asked")
		same(t, "the notices", c.notices("bypass_mode")[:1], c.notices("bypass_mode")...)
		// The user thinks better of it.
		put(t, h.user(), `{"permissions": {"defaultMode": "acceptEdits", "disableBypassPermissionsMode": "disable"}}`)
		expect(t, "a program, with the mode switched off", c.ended("off", "chmod +x made"), "asked")
	})
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, nil)
		root := h.room(t, "strict", map[string]string{".toold/settings.json": `{"permissions": {"defaultMode": "plan"}}`})
		expect(t, "in the mode of a workspace", h.attach(t, in(root, trusted())).ended("u", "touch made"), "DENIED mode_denied")
	})
	for name, file := range map[string]string{"user": "config/toold/settings.json", "managed": "managed/settings.json"} {
		t.Run("off by "+name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, map[string]string{file: "{\"permissions\": {\"defaultMode\": \"bypassPermissions\",\n\"disableBypassPermissionsMode\": \"disable\"}}"})
			root := h.room(t, "off", nil)
			holds(t, "the refusal", h.refused(t, in(root, bypass)), "FailedPrecondition bypass_disabled", filepath.Join(h.dir, file)+":2")
			expect(t, "in the mode of the file", h.attach(t, in(root, nil)).ended("u", "touch made"), "asked")
		})
	}
}

// TestBareDeny: a tool that a rule denies altogether is not there, from the moment the rule is.
func TestBareDeny(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "bare", nil)
	c := h.attach(t, in(root, nil))
	c.use("before", "LS", `{"path":"."}`)
	expect(t, "before", outcome(c.finish("before", no)), "OK")
	put(t, filepath.Join(root, ".toold", "settings.json"), `{"permissions": {"deny": ["LS", "Grep(*)"]}}`)
	c.use("after", "LS", `{"path":"."}`)
	gone := c.finish("after", no)
	expect(t, "after", outcome(gone), "INVALID unknown_tool")
	holds(t, "the result", textIn(gone), "The rule LS in "+root+"/.toold/settings.json:1")
	listed, err := h.link.Tools.ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "bare", IncludeUnavailable: true})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*tooldv1.Tool{}
	for _, tool := range listed.GetTools() {
		found[tool.GetName()] = tool
	}
	for _, name := range []string{"LS", "Grep"} {
		holds(t, name, found[name].GetUnavailable(), "The rule "+name, root+"/.toold/settings.json:1")
		expect(t, name, found[name].GetLevel().String(), "LEVEL_FORBIDDEN")
	}
	expect(t, "Glob", found["Glob"].GetUnavailable(), "")
	listed, err = h.link.Tools.ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range listed.GetTools() {
		if name := tool.GetName(); name == "LS" || name == "Grep" {
			t.Errorf("%s is listed", name)
		}
	}
}

// TestAdditionalDirectories: they may be read like a root, once a user, a session or a trusted workspace has named them.
func TestAdditionalDirectories(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]string{"home/notes/n.txt": "n\n", "far/f.txt": "f\n", "rooms/near/x.txt": "x\n"})
	root := h.room(t, "room", map[string]string{
		".toold/settings.json": fmt.Sprintf(`{"permissions": {"additionalDirectories": ["../near", "%s/far"]}}`, h.dir),
	})
	files := map[string]string{"notes": h.dir + "/home/notes/n.txt", "far": h.dir + "/far/f.txt", "near": h.dir + "/rooms/near/x.txt"}
	c := h.attach(t, in(root, nil))
	check := func(when string, want map[string]string) {
		t.Helper()
		for name, file := range files {
			from := len(c.heard)
			c.use(when+name, "Read", fmt.Sprintf(`{"file_path":%q}`, file))
			got := outcome(c.finish(when+name, no))
			for _, event := range c.heard[from:] {
				if event.GetQuestion() != nil {
					got = "asked"
				}
			}
			expect(t, name+" "+when, got, want[name])
			expect(t, name+" in Bash "+when, c.ended(when+name+"-bash", "cat "+file), want[name])
		}
	}
	check("before", map[string]string{"notes": "asked", "far": "asked", "near": "asked"})
	put(t, h.user(), `{"permissions": {"additionalDirectories": ["~/notes"]}}`)
	check("untrusted", map[string]string{"notes": "OK", "far": "asked", "near": "asked"})
	h.trust(t, root)
	check("trusted", map[string]string{"notes": "OK", "far": "OK", "near": "OK"})
}
