package main

// Hooks that do not do what hooks do, in a workspace that lets them fail, in one that does not, and of an administrator.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A broken hook is run by the call that has its name: the nth for `touch n`.
type broken struct {
	name   string
	runs   string // of its JSON, what it runs; SCRIPT stands for the path of the script
	script string
	says   string // of its failure
}

// family starts children in all the ways that could hide one, notes their numbers, and stays.
const family = `echo $$ >>PIDS
sleep 1000 & echo $! >>PIDS
setsid sleep 1000 & echo $! >>PIDS
env -i setsid sh -c 'sleep 1000 & echo $! >>PIDS; wait' &
(trap '' HUP TERM INT; echo ready >&3; sleep 1000) & echo $! >>PIDS
`

var brokenHooks = []broken{
	{"crash", `"command": "exec sh SCRIPT"`, "kill -SEGV $$", "was ended by SIGSEGV"},
	{"error", `"command": "sh SCRIPT"`, "echo boom >&2; exit 1", `ended with exit code 1, and printed "boom"`},
	{"an allow and a crash", `"command": "exec sh SCRIPT"`, decides("allow", "known") + "\nkill -KILL $$", "was ended by SIGKILL"},
	{"missing script", `"command": "SCRIPT.gone --all"`, "", "exit code 127, which means that a program was not found"},
	{"missing program", `"command": "SCRIPT.gone", "args": []`, "", "could not be started: "},
	{"missing in PATH", `"command": "no-such-program-anywhere", "args": ["x"]`, "", `the program "no-such-program-anywhere" is not in PATH`},
	{"hang", `"command": "sh SCRIPT", "timeout": 1`, family + "wait", "did not end within its limit of 1s and was stopped"},
	{"hang that heeds no signal", `"command": "sh SCRIPT", "timeout": 1`, "trap '' TERM INT HUP; echo $$ >>PIDS; while :; do sleep 1000; done", "did not end within its limit of 1s and was stopped"},
	{"garbage", `"command": "sh SCRIPT"`, `echo '{"permissionDecision": allow'`, "printed text that begins like JSON but is not valid"},
	{"wrong word", `"command": "sh SCRIPT"`, decides("perhaps", ""), `permissionDecision is "perhaps"`},
	{"10 MB of JSON", `"command": "sh SCRIPT"`, `printf '{"decision": "approve", "reason": "'; head -c 10000000 /dev/zero | tr '\0' x; echo '"}'`, "printed JSON of more than 1048576 bytes"},
}

// brokenSettings has all of the broken hooks, the nth in line n+2; more is what each says besides.
func brokenSettings(scripts, more string) string {
	var lines []string
	for i, b := range brokenHooks {
		runs := strings.ReplaceAll(b.runs, "SCRIPT", filepath.Join(scripts, strconv.Itoa(i)))
		lines = append(lines, fmt.Sprintf(`{"type": "command", "if": "Bash(touch %d)", %s%s}`, i, runs, more))
	}
	return fmt.Sprintf("{\"permissions\": {\"allow\": [\"Bash(touch *)\"]},\n\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [\n%s\n]}]}}", strings.Join(lines, ",\n"))
}

// brokenScripts writes what the hooks run.
func brokenScripts(t *testing.T, dir string) {
	t.Helper()
	for i, b := range brokenHooks {
		put(t, filepath.Join(dir, strconv.Itoa(i)), strings.ReplaceAll(b.script, "PIDS", pidsOf(dir, i))+"\n")
	}
}

func pidsOf(scripts string, i int) string { return filepath.Join(scripts, strconv.Itoa(i)+".pids") }

// A trial is a call that a broken hook is run for.
type trial struct {
	broken
	talk   *talk
	at     string // file and line of the hook
	made   string // what the call makes
	pids   string // where the hook notes the numbers of its processes
	goesOn bool
}

// TestHooksThatFail: a hook that fails is told of, and the call goes on, unless the hook is a guard; whatever it was,
// nothing of it is left.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	plain, administered := newHouse(t, nil), newHouse(t, map[string]string{"managed/settings.json": "{}"})
	trials := map[string][]trial{ // all of them wait at the same time
		"plain":    tryAll(t, plain, "plain", "", ""),
		"continue": tryAll(t, plain, "continue", "", `, "onFailure": "continue"`),
		"block":    tryAll(t, plain, "block", "", `, "onFailure": "block"`),
		"managed":  tryAll(t, administered, "managed", "managed/settings.json", ""),
	}
	for place, list := range trials {
		for _, x := range list {
			x.goesOn = place == "plain" || place == "continue"
			t.Run(place+"/"+x.name, x.check)
		}
	}
}

// TestGuardsThatMakeNoSense: what is to be held back without a guard is held back when what the guard runs is unknown.
func TestGuardsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	plain, administered := newHouse(t, nil), newHouse(t, map[string]string{"managed/settings.json": "{}"})
	for name, guard := range map[string]string{
		"another type": `{"type": "prompt", "prompt": "is it good?"MORE}`,
		"no command":   `{"type": "command"MORE}`,
		"arguments":    `{"type": "command", "command": "true", "args": "-x"MORE}`,
		"URL":          `{"type": "http", "url": "ftp://x"MORE}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for more, ends := range map[string]string{"": "OK", `, "onFailure": "block"`: "DENIED hook_denied"} {
				root := plain.room(t, strings.ReplaceAll(name, " ", "-")+ends[:2], map[string]string{".toold/settings.json": fmt.Sprintf(
					`{"permissions": {"allow": ["Bash(touch *)"]}, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [%s]}]}}`, strings.ReplaceAll(guard, "MORE", more))})
				if got := outcome(plain.attach(t, in(root, trusted())).run("u", "touch made")); got != ends {
					t.Errorf("with %s the call ends as %s, want %s", guard+more, got, ends)
				}
			}
		})
	}
	root := administered.room(t, "managed", nil)
	for _, hooks := range []string{`[{"matcher": "Bash", "hooks": {"type": "command"}}]`, `{"matcher": "Bash"}`, `["check.sh"]`} {
		put(t, filepath.Join(administered.dir, "managed", "settings.json"), `{"hooks": {"PreToolUse": `+hooks+`}}`)
		a := in(root, nil)
		a.SessionId = fmt.Sprint("managed-", len(hooks))
		c := administered.attach(t, a)
		result := c.run("u", "echo hi")
		if got := outcome(result); got != "DENIED hook_denied" {
			t.Errorf("under the administrator's %s the call ends as %s", hooks, got)
		}
		holds(t, "the result", textIn(result), "managed/settings.json:1", "cannot be run: the settings do not say which hooks these are")
	}
}

// tryAll makes a call for each broken hook, in sessions of their own over a workspace of that name. The settings are the
// workspace's, or a file of the house.
func tryAll(t *testing.T, h *house, name, file, more string) (list []trial) {
	t.Helper()
	root := h.room(t, name, nil)
	scripts := filepath.Join(root, "scripts")
	brokenScripts(t, scripts)
	settings := filepath.Join(root, ".toold", "settings.json")
	if file != "" {
		settings = filepath.Join(h.dir, file)
	}
	put(t, settings, brokenSettings(scripts, more))
	for i, b := range brokenHooks {
		a := in(root, trusted())
		a.SessionId = fmt.Sprintf("%s-%d", name, i)
		x := trial{
			broken: b, talk: h.attach(t, a), at: fmt.Sprintf("%s:%d", settings, i+3),
			made: filepath.Join(root, strconv.Itoa(i)), pids: pidsOf(scripts, i),
		}
		x.talk.bash("u", fmt.Sprintf("touch %d", i))
		list = append(list, x)
	}
	return list
}

func (x trial) check(t *testing.T) {
	x.talk.t = t
	result := x.talk.finish("u", no)
	if x.goesOn {
		same(t, "the story", story(x.talk.heard), "attached", "u accepted", "notice hook_failed", "u started", "u OK", "turn ended")
	} else {
		same(t, "the story", story(x.talk.heard), "attached", "u accepted", "notice hook_failed", "u DENIED hook_denied", "turn ended")
		holds(t, "the result", textIn(result), x.at, x.says, "the call may not go on without it")
	}
	if _, err := os.Stat(x.made); (err == nil) != x.goesOn {
		t.Errorf("the command ran: %t, want %t", err == nil, x.goesOn)
	}
	holds(t, "the notice", strings.Join(x.talk.notices("hook_failed"), "\n"), x.at, x.says)
	if strings.HasPrefix(x.name, "hang") {
		dead(t, x.pids)
	}
}

// dead checks that no process lives of those whose numbers are in a file.
func dead(t *testing.T, file string) {
	t.Helper()
	pids := strings.Fields(content(t, file))
	if len(pids) == 0 {
		t.Errorf("no process has noted its number in %s", file)
	}
	for _, pid := range pids {
		line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err == nil && len(line) > 0 { // of one that is dead and only not waited for, nothing is left to read
			t.Errorf("process %s lives: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// TestFailedHooksAreLogged: the daemon's log names the hook that has failed.
func TestFailedHooksAreLogged(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "logged", hooked("PreToolUse", ruleFor, "", "exit 1"))
	h.attach(t, in(root, trusted())).run("u", "touch made")
	holds(t, "the daemon's log", content(t, h.logFile()), settingsLine(root, 1))
}

// TestHooksLeaveNothing: what is not wrong, but not wanted either, is told: output without end, a daemon.
func TestHooksLeaveNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, c := range []struct{ name, script, says string }{
		{"much", `head -c 10000000 /dev/zero | tr '\0' x; ` + decides("deny", "too late"), "printed more than 1048576 bytes; the rest was dropped"},
		{
			"daemon", "setsid sh -c 'echo $$ >hooks/pids; exec sleep 1000' </dev/null >/dev/null 2>&1 &\nuntil [ -s hooks/pids ]; do :; done",
			"processes running (\"sleep 1000\" is one), which were ended with it",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// A guard, since this is no failure.
			root := h.room(t, c.name, hooked("PreToolUse", ruleFor, `, "onFailure": "block"`, c.script))
			talk := h.attach(t, in(root, trusted()))
			talk.run("u", "touch made")
			same(t, "the story", story(talk.heard), "attached", "u accepted", "notice hook_note", "u started", "u OK", "turn ended")
			holds(t, "the notice", strings.Join(talk.notices("hook_note"), "\n"), settingsLine(root, 1), c.says)
			nothingOf(t, root)
			if c.name == "daemon" {
				dead(t, filepath.Join(root, "hooks", "pids"))
			}
		})
	}
}

// TestHooksOutliveTheDirectory: who takes away the directory that the session works in takes no hook away with it.
func TestHooksOutliveTheDirectory(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "gone", hooked("PreToolUse", "", "", `case "$(cat)" in *forbidden*) echo not that one >&2; exit 2 ;; esac`))
	options := trusted()
	options.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS.Enum()
	c := h.attach(t, in(root, options))
	c.run("a", "mkdir sub")
	c.run("b", "cd sub")
	c.run("c", "rmdir ../sub")
	result := c.run("d", "touch "+filepath.Join(root, "forbidden"))
	if got := outcome(result); got != "DENIED hook_denied" {
		t.Errorf("the call ended as %s:\n%s\nnotices: %q", got, textIn(result), c.notices("hook_failed"))
	}
}

// TestCancelStopsHooks: a call that is stopped while a hook thinks about it takes the hook with it, and has not started.
func TestCancelStopsHooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "cancelled", nil)
	e := listen(t, root)
	pids := filepath.Join(root, "pids")
	for name, content := range hooked("PreToolUse", ruleFor, "", strings.ReplaceAll(family, "PIDS", pids)+"echo ready >ear; wait") {
		put(t, filepath.Join(root, name), content)
	}
	c := h.attach(t, in(root, trusted()))
	c.bash("u", "touch made")
	e.line()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: "u", Reason: "it takes too long"}}})
	result := c.finish("u", no)
	same(t, "the story", story(c.heard), "attached", "u accepted", "notice hook_failed", "u CANCELLED cancelled", "turn ended")
	holds(t, "the result", textIn(result), "was not started", "it takes too long")
	dead(t, pids)
}

// TestHooksCannotAnswer: what a hook starts is not let in by the daemon, so that nothing answers its own question.
func TestHooksCannotAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	socket := filepath.Join(h.dir, "run", "toold", "toold.sock")
	ask := fmt.Sprintf("GORACE=%s toold --socket %s", raceAtExit, socket)
	root := h.room(t, "answers", hooked("PreToolUse", ruleFor, "", ask+" sessions >in 2>&1; (setsid env -i PATH=\"$PATH\" "+ask+" sessions) >out 2>&1; true"))
	h.attach(t, in(root, trusted())).run("u", "touch made")
	for _, name := range []string{"in", "out"} {
		holds(t, "what the hook hears", content(t, filepath.Join(root, name)), "own_child")
	}
}
