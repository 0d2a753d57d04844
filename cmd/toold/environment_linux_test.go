package main

// A call's variables, programs and configuration are the session's, whether it only reads or not, and what it would do is
// judged with the values that they have at its turn.

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A variable that a call has exported is there in the next, which reads what it names.
func TestValuesAtTheTurn(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "values", map[string]string{"x": "1\n2\n", "secret": "s\n", "a b": "3\n"})
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"deny":["Read(secret)"]}}`)}))
	for i, tt := range []struct{ export, command, want string }{
		{"F=x", "wc -l $F", "2 x"},
		{"F=x", `wc -l "$F"`, "2 x"},
		{"F='a b'", `cat "$F"`, "3"},
		{"MY_VAR=hi", "echo $MY_VAR", "hi"},
		{"VIRTUAL_ENV=/v API_URL=u", "ls; echo $API_URL", "u"},
	} {
		c.run("export"+string(rune('a'+i)), "export "+tt.export)
		c.wasAsked()
		holds(t, tt.command, textIn(c.run("run"+string(rune('a'+i)), tt.command)), tt.want)
		same(t, tt.command+"\nasks", c.wasAsked())
	}
	c.run("s", "export F=secret")
	c.bash("denied", "cat $F")
	if r := c.finish("denied", no); r.GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED || len(c.wasAsked()) > 1 {
		t.Errorf("cat $F of a file that a rule denies ends %s", outcome(r))
	}
	c.run("o", "export F="+h.dir+"/home/../home/.bashrc")
	c.wasAsked()
	c.bash("outside", "cat $F")
	c.finish("outside", no)
	holds(t, "cat $F outside the root\nasks", strings.Join(c.wasAsked(), "\n"), "outside the roots")
}

// A program obeys only variables of its own.
func TestVariablesThatSteer(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "steer", map[string]string{"x": "1\n"})
	c := h.attach(t, in(root, nil))
	c.run("1", "export GREP_OPTIONS=-v")
	c.wasAsked()
	c.run("2", "cat x")
	same(t, "cat\nasks", c.wasAsked())
	c.bash("3", "grep 1 x")
	c.finish("3", no)
	holds(t, "grep\nasks", strings.Join(c.wasAsked(), "\n"), "GREP_OPTIONS")
}

// A word leads to the same file whatever stands beside it, also one of an environment that was sourced before.
func TestOnePath(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "path", map[string]string{"venv/bin/tool": "#!/bin/sh\necho of the environment\n", "venv/bin/activate": "export PATH=\"$PWD/venv/bin:$PATH\"\n"})
	if err := os.Chmod(filepath.Join(root, "venv/bin/tool"), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(touch x)"]}}`)}))
	c.run("1", "source venv/bin/activate")
	c.wasAsked()
	for i, command := range []string{"which tool", "which tool; true", "which tool; touch x", "command -v tool"} {
		holds(t, command, textIn(c.run("which"+string(rune('a'+i)), command)), filepath.Join(root, "venv/bin/tool"))
		same(t, command+"\nasks", c.wasAsked())
	}
	c.run("2", "ls venv")
	same(t, "ls beside programs that calls can write\nasks", c.wasAsked())
	for i, command := range []string{"tool --version", "timeout 5 ls"} {
		id := "no" + string(rune('a'+i))
		c.bash(id, command)
		c.finish(id, no)
		holds(t, command+"\nasks", strings.Join(c.wasAsked(), "\n"), filepath.Join(root, "venv/bin"))
	}
}

// What git prints is git's own, and an alias is judged as what it stands for.
func TestGitAsConfigured(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		skip(t, "install git to see what it prints")
	}
	h, root, _ := livedIn(t)
	config := filepath.Join(h.dir, "home", ".gitconfig.local")
	put(t, config, content(t, config)+"[alias]\n\tlg = log --oneline --format='%s'\n\tpu = push\n\tsh = !touch ran\n\tlog = push\n")
	h.inShell(t, root, "touch -d yesterday a.txt")
	c := h.attach(t, in(root, nil))
	c.wasAsked()
	for i, command := range []string{
		"git diff --stat", "git config --list", "git st", "git lg", "git log --oneline", "git submodule status", "git -C sub status --short", "(cd sub && git status --short)",
	} {
		got, _ := raw(t, c.run("git"+string(rune('a'+i)), command)) // first: git in a shell notes that a file has not changed
		if want, _ := h.inShell(t, root, command); got != want {
			t.Errorf("%s\nprints %q,\nin a shell %q", command, got, want)
		}
		same(t, command+"\nasks", c.wasAsked())
	}
	for i, command := range []string{"git pu", "git sh"} {
		c.bash("no"+string(rune('a'+i)), command)
		c.finish("no"+string(rune('a'+i)), no)
		if len(c.wasAsked()) != 1 {
			t.Errorf("%s: nobody is asked", command)
		}
	}
}

// Programs that may do more on their way only read where nothing can be changed, so they do not ask. In the fallback they are
// asked about, and those that do no more are not.
func TestHarmlessReads(t *testing.T) {
	h := ordinary(t)
	full := h.tier(t) == tooldv1.SandboxTier_SANDBOX_TIER_FULL
	root := h.room(t, "reads", map[string]string{"go.mod": "module example.com/m\n\ngo 1.21\n", "m.go": "package m\n", "package.json": `{"name":"p","version":"1.0.0"}`, "a.txt": "1\n"})
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(touch x)"]}}`)}))
	c.wasAsked()
	for i, tt := range []struct{ program, command, want string }{
		{"cat", `for f in *.txt; do wc -l < "$f"; done`, "1"},
		{"head", "head -1 /proc/cpuinfo", "processor"},
		{"bash", "x=5; y=$((x*2)); [ $y -gt 8 ] && echo big", "big"},
		{"go", "go list ./...", "example.com/m"},
		{"go", "go list -m", "example.com/m"},
		{"go", "go env GOFLAGS GOOS", "linux"},
		{"go", "go help list", "usage"},
		{"npm", "npm ls", "p@1.0.0"},
		{"npm", "npm prefix", root},
		{"split", "split --help", "Usage"},
		{"objdump", "objdump --version", "GNU"},
	} {
		if _, err := exec.LookPath(tt.program); err != nil {
			continue
		}
		holds(t, tt.command, textIn(c.run("read"+string(rune('a'+i)), tt.command)), tt.want)
		if i > 2 && !full {
			onlyUnconfined(t, tt.command, c.wasAsked(), 1)
			continue
		}
		same(t, tt.command+"\nasks", c.wasAsked())
	}
	if _, err := exec.LookPath("go"); err == nil && full { // beside what may write it is not confined to reading
		c.bash("beside", "go list ./...; touch x")
		c.finish("beside", no)
		holds(t, "go list beside touch\nasks", strings.Join(c.wasAsked(), "\n"), "not confined to reading")
	}
}

// What is removed from a call's environment is said, once.
func TestRemovedVariables(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "removed", nil)
	a := in(root, nil)
	a.Env = map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "API_TOKEN": "t0ken"}
	c := h.attach(t, a)
	command := `test -n "$API_TOKEN" && echo set || echo unset`
	text := textIn(c.run("1", command))
	holds(t, command, text, "unset", "API_TOKEN")
	if text := textIn(c.run("2", command)); strings.Contains(text, "Removed") {
		t.Errorf("it is said again: %s", text)
	}
	holds(t, "export", textIn(c.run("3", "export DB_PASSWORD=x")), "DB_PASSWORD")
}

// What runs by its name is protected where a root holds the home directory: no call puts a program there unasked.
func TestPathBelowHomeIsProtected(t *testing.T) {
	h, _, _ := livedIn(t)
	home := filepath.Join(h.dir, "home")
	c := h.attach(t, in(home, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash","Edit"]}}`)}))
	c.wasAsked()
	c.bash("1", "touch .local/bin/ls")
	c.finish("1", no)
	holds(t, "a program in PATH\nasks", strings.Join(c.wasAsked(), "\n"), "run by their name")
	c.run("2", "python3 -c 'open(\".local/bin/ls\", \"w\")' || sh -c 'n=.local/bin; : > $n/ls'")
	if _, err := os.Stat(filepath.Join(home, ".local/bin/ls")); err == nil {
		t.Error("a program was put into PATH")
	}
}

// A call that the text shows to only read, and that turns out to obey a variable, keeps its batch number and runs alone.
func TestAloneAtTheTurn(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "alone", map[string]string{"x": "1\n"})
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(grep *)"]}}`)}))
	c.run("export", "export GREP_OPTIONS=-v")
	c.heard = nil
	c.bash("reads", "sleep 1; cat x")
	c.bash("obeys", "grep 2 x")
	c.bash("after", "cat x")
	c.endTurn()
	c.until("turn ended")
	told := story(c.heard)
	at := func(words string) int { return slices.Index(told, words) }
	began, ended := at("obeys started"), at("obeys OK")
	for _, other := range []string{"reads", "after"} { // each has ended before it began, or began when it had ended
		if at(other+" OK") > began && at(other+" started") < ended {
			t.Errorf("%s and obeys ran beside each other: %q", other, told)
		}
	}
	for _, event := range c.heard {
		if a := event.GetAccepted(); a != nil && a.GetBatch() != 1 {
			t.Errorf("%s is in batch %d", a.GetToolUseId(), a.GetBatch())
		}
	}
}

func TestEnvironmentAsNobody(t *testing.T) {
	asNobody(t, "testdata/home", "^Test(ValuesAtTheTurn|VariablesThatSteer|OnePath|GitAsConfigured|HarmlessReads|RemovedVariables|PathBelowHomeIsProtected)$")
}

// The same where there are no namespaces.
func TestEnvironmentWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("values", TestValuesAtTheTurn)
	t.Run("alone", TestAloneAtTheTurn)
	t.Run("steer", TestVariablesThatSteer)
	t.Run("removed", TestRemovedVariables)
	t.Run("path", TestOnePath)
	t.Run("path below home", TestPathBelowHomeIsProtected)
	t.Run("workspace", TestProgramOfTheWorkspace)
	t.Run("git", TestGitAsConfigured)
	t.Run("reads", TestHarmlessReads)
}
