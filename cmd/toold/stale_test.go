package main

// Yeses that do not count, since what they were for has changed meanwhile.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// absent checks that a file was never made.
func absent(t *testing.T, root, name string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
		t.Errorf("%s is there", name)
	}
}

// TestYesAgainstALaterRule: a deny rule that is saved while the question is open wins over the yes.
func TestYesAgainstALaterRule(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "later", nil)
	c := h.attach(t, in(root, nil))
	c.bash("u", "touch made")
	q := c.question("u")
	put(t, filepath.Join(root, ".toold", "settings.json"), `{"permissions": {"deny": ["Bash(touch *)"]}}`)
	c.answer(answer(q, yes))
	c.until("u DENIED rule_denied")
	absent(t, root, "made")
}

// TestPassingModeIsNoYes: a question that a mode has settled is asked again when the mode is gone before the call's turn.
func TestPassingModeIsNoYes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "passing", nil)
	mode := func(m tooldv1.PermissionMode) {
		a := &tooldv1.Attach{
			SessionId: "passing", Role: tooldv1.Role_ROLE_COMPANION, Options: &tooldv1.Options{PermissionMode: m.Enum()},
			Capabilities: &tooldv1.Capabilities{Answers: true},
		}
		h.attach(t, a)
	}
	c := h.attach(t, in(root, nil))
	c.bash("front", "chmod +x x") // the other waits behind it
	c.bash("u", "touch made")
	questions := c.questions(2)
	mode(tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS)
	c.until("u withdrawn: it is allowed now")
	mode(tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT)
	c.answer(answer(questions["front"], no))
	c.until("front DENIED")
	again := c.question("u")
	if again.GetQuestionId() == questions["u"].GetQuestionId() {
		t.Errorf("the withdrawn question %s came back", again.GetQuestionId())
	}
	c.answer(answer(again, no))
	c.until("u DENIED client_denied")
	absent(t, root, "made")
}

// TestEditedInputThatMustBeAsked: the input of an answer needs no question of its own, unless it is one that always does.
func TestEditedInputThatMustBeAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "edited", map[string]string{".toold/settings.json": `{"permissions": {"ask": ["Bash(mkdir *)"], "deny": ["Bash(rmdir *)"]}}`})
	for id, x := range map[string]struct{ command, then string }{
		"plain":    {"touch made", "plain OK"},
		"critical": {"rm -rf " + root, "critical asks"},
		"ruled":    {"mkdir made", "ruled asks"},
		"denied":   {"rmdir made", "denied DENIED rule_denied"},
	} {
		a := in(root, nil)
		a.SessionId = id
		c := h.attach(t, a)
		c.bash(id, "touch other")
		edited := answer(c.question(id), yes)
		edited.UpdatedInputJson = `{"command":"` + x.command + `"}`
		c.answer(edited)
		c.until(id + " withdrawn")
		if q := c.until(x.then).GetQuestion(); q != nil {
			c.answer(answer(q, no))
			c.until(id + " DENIED client_denied")
		}
	}
	absent(t, root, "other")
}

// TestStateBelowARoot: a command that takes in the daemon's own state with a root asks first, and what leaves it out does
// not.
func TestStateBelowARoot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	room := h.room(t, "plain", map[string]string{"a": "x\n"})
	c := h.attach(t, &tooldv1.Attach{SessionId: "whole", Roots: []string{h.dir}, Capabilities: &tooldv1.Capabilities{Answers: true}})
	for command, want := range map[string]string{
		"grep -r x " + h.dir: "asked", "grep -r x " + room: "OK", "ls " + h.dir: "OK", "du -s .": "ERROR exit_code", "find . -name a": "OK", "rm -r .": "asked",
	} {
		expect(t, command, c.ended(command, command), want)
	}
}

// TestYesIsForTheFile: a yes that was given ahead for a command holds for the files that it named then.
func TestYesIsForTheFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "ahead", map[string]string{"x": "", "sub/x": ""})
	c := h.attach(t, in(root, nil))
	c.bash("front", "chmod +x x; cd sub") // the other waits behind it
	c.bash("u", "rm x")
	questions := c.questions(2)
	holds(t, "what it would do", strings.Join(questions["u"].GetEffects(), "\n"), "writes "+root+"/x")
	c.answer(answer(questions["u"], yes))
	c.until("u withdrawn: answered: allowed")
	c.answer(answer(questions["front"], yes))
	again := c.question("u")
	holds(t, "what it would do now", strings.Join(again.GetEffects(), "\n"), "writes "+root+"/sub/x")
	c.answer(answer(again, no))
	c.until("u DENIED client_denied")
	for _, name := range []string{"x", "sub/x"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestVanishedDirectoryIsJudged: where a command runs instead is where it is judged.
func TestVanishedDirectoryIsJudged(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"defaultMode": "acceptEdits", "deny": ["Edit(./data/**)"]}}`})
	root := h.room(t, "vanished", map[string]string{"data/secret": ""})
	c := h.attach(t, in(root, nil))
	for i, command := range []string{"mkdir d", "cd d", "rmdir ../d"} {
		expect(t, command, c.ended(fmt.Sprint(i), command), "OK")
	}
	expect(t, "in the root", c.ended("u", "rm data/secret"), "DENIED rule_denied")
	if _, err := os.Stat(filepath.Join(root, "data", "secret")); err != nil {
		t.Error(err)
	}
}

// TestExportsSteerNoHook: what a call has exported is not there for the hooks that judge the next.
func TestExportsSteerNoHook(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "steered", hooked("PreToolUse", "", "", `case "$(cat)" in *forbidden*) echo "PATH is $PATH" >&2; exit 2 ;; esac`))
	put(t, filepath.Join(root, "evil", "cat"), "#!/bin/sh\necho nothing\n")
	if err := os.Chmod(filepath.Join(root, "evil", "cat"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := h.attach(t, in(root, trusted()))
	expect(t, "the export", outcome(c.run("e", `export PATH="$PWD/evil:$PATH"`)), "OK")
	expect(t, "the next", outcome(c.run("u", "touch forbidden")), "DENIED hook_denied")
}

// TestEditedInputMeetsTheHooks: a guard sees what an answer makes of the input.
func TestEditedInputMeetsTheHooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "guarded", hooked("PreToolUse", "", "", `case "$(cat)" in *forbidden*) echo not that one >&2; exit 2 ;; esac`))
	c := h.attach(t, in(root, trusted()))
	c.bash("u", "touch fine")
	edited := answer(c.question("u"), yes)
	edited.UpdatedInputJson = `{"command":"touch forbidden"}`
	c.answer(edited)
	c.until("u DENIED hook_denied")
	absent(t, root, "forbidden")
}

// TestCancelHidesNothingLess: a call that is cancelled while a hook looks at its output has that output no other way.
func TestCancelHidesNothingLess(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "hidden", hooked("PostToolUse", ruleFor, "", `cat >/dev/null
echo ready >ear
cat gate
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "nothing to see"}}'`))
	gate := filepath.Join(root, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	e := listen(t, root)
	c := h.attach(t, in(root, trusted()))
	c.bash("u", "touch made; echo SECRET")
	if q := c.until("u ").GetQuestion(); q != nil {
		c.answer(answer(q, yes))
	}
	e.line()
	if _, err := h.link.Sessions.CancelCall(t.Context(), &tooldv1.CancelCallRequest{SessionId: "hidden", ToolUseId: "u"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := textIn(c.until("u OK").GetToolResult()); strings.Contains(text, "SECRET") || !strings.Contains(text, "nothing to see") {
		t.Errorf("the result is %q", text)
	}
}

// TestPatternsAreNames: what a pattern stands for is held against the rules as if it had been named.
func TestPatternsAreNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"allow": ["Bash(sh tool *)"], "deny": ["Read(.env)", "Read(keys/**)", "Read(~/.ssh/**)"]}}`, "home/.ssh/id": ""})
	root := h.room(t, "patterns", map[string]string{".env": "", "keys/a": "", "src/b": "", "[x]/.env": "", "tool": ""})
	c := h.attach(t, in(root, nil))
	for command, want := range map[string]string{
		"sh tool .e*": "asked", "sh tool .[!x]nv": "asked", "sh tool k*/?": "asked", "sh tool */a": "asked", "sh tool " + root + "/.e??": "asked",
		"sh tool *":         "asked", // keys is among them
		"sh tool ~/.ssh/id": "asked", `sh tool "$HOME/.ssh/id"`: "asked", "sh tool --key=${HOME}/.ssh/i*": "asked", "sh tool ~/.ssh": "asked", "sh tool ~/other": "OK",
		"sh tool *nv": "OK", "sh tool s*/*": "OK", "sh tool src/*": "OK", "sh tool t*": "OK",
	} {
		expect(t, command, c.ended(command, command), want)
	}
}

// TestReadingBesideARule: a rule about one file leaves in peace what does not read it.
func TestReadingBesideARule(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"deny": ["Read(.env)"]}}`})
	root := h.room(t, "reading", map[string]string{".env": "", "a.txt": "foo", "src/a.go": "foo", "deep/.env": "", "link.txt": ""})
	if err := os.Remove(filepath.Join(root, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".env", filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	c := h.attach(t, in(root, nil))
	for command, want := range map[string]string{
		"cat *.txt": "OK", "cat s*/a.go": "OK", "wc -l src/*": "OK", "grep foo *.txt src/*": "OK", "grep -rn --include='*.go' foo .": "OK",
		"head *.md": "asked", "cat .e*": "asked", "cat *": "asked", "grep -r foo .": "asked", "grep -rn --include='*' foo .": "asked", "grep -rn --include='.e*' foo .": "asked",
		"cat deep/.*": "asked", "cat .[e]nv": "asked", "shopt -s dotglob; cat *.txt": "asked",
	} {
		expect(t, command, c.ended(command, command), want)
	}
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("there is no rg here to ask about: install ripgrep")
	}
	for command, want := range map[string]string{
		"rg foo": "OK", "rg -l foo -g '*.go'": "OK", "rg --hidden foo": "asked", "rg -uu foo": "asked", "rg foo -g '.e*'": "asked", "rg . .env": "DENIED rule_denied",
	} {
		expect(t, command, c.ended(command, command), want)
	}
}

// TestExplainBesideCalls: explaining reads a session that works, and disturbs nothing (the race detector looks on).
func TestExplainBesideCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "beside", nil)
	free := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	c := h.attach(t, in(root, free))
	var explaining sync.WaitGroup
	for range 2 {
		explaining.Go(func() {
			for range 20 {
				_, err := h.link.Daemon.Explain(t.Context(), &tooldv1.ExplainRequest{SessionId: "beside", ToolUse: &tooldv1.ToolUse{
					Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command":"echo $A > x"}`},
				}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		expect(t, "an export", outcome(c.run(id, "export A="+id+"; mkdir -p d"+id+"; cd d"+id)), "OK")
	}
	explaining.Wait()
}
