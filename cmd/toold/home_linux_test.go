package main

// A home as people have it: dotfiles, caches, managers of languages, a virtual environment. What only reads comes to the
// same there as in the user's own shell, and the user is not asked.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// livedIn makes a house of testdata/home/reads.txtar: the files of a home with a project in it, behind a script that arranges
// them and is run in the project, and the commands that only read. Its user keeps everything where programs put it.
func livedIn(t *testing.T) (h *house, root string, commands []string) {
	t.Helper()
	inLasting(t)
	environ, ws := home(t)
	h = &house{dir: filepath.Dir(ws)}
	dir := filepath.Join(h.dir, "home")
	path := []string{dir + "/venv/bin", dir + "/.local/bin", dir + "/.nvm/versions/node/v20.1.0/bin", dir + "/.pyenv/shims"}
	for _, place := range filepath.SplitList(os.Getenv("PATH")) {
		if !strings.HasPrefix(place, "/tmp") { // where a call could put a program
			path = append(path, place)
		}
	}
	h.environ = append(environ, "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "CLAUDE_CONFIG_DIR=", "PATH="+strings.Join(path, ":"))
	archive, err := txtar.ParseFile("testdata/home/reads.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		put(t, filepath.Join(h.dir, f.Name), string(f.Data))
	}
	arrange, list, _ := strings.Cut(string(archive.Comment), "\ncommands:\n")
	root = filepath.Join(dir, "project")
	cmd := exec.Command("sh", "-ec", arrange)
	cmd.Dir, cmd.Env = root, h.environ
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.start(t, root)
	return h, root, strings.Split(strings.TrimSpace(list), "\n")
}

// inShell runs a command as the user would, and returns what it prints and its exit code.
func (h *house) inShell(t *testing.T, dir, command string) (string, int) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-c", command)
	cmd.Dir, cmd.Env = dir, append(h.environ[:len(h.environ):len(h.environ)], "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// raw is what a call has printed and its exit code; -1: it was not started.
func raw(t *testing.T, r *tooldv1.ToolResult) (string, int) {
	t.Helper()
	ended := r.GetStructured().AsMap()
	code, ok := ended["exit_code"].(float64)
	if !ok {
		return textIn(r), -1
	}
	path, _ := ended["output_path"].(string)
	if path == "" {
		return "", int(code)
	}
	return content(t, path), int(code)
}

// wasAsked is what the stream was asked since the last time.
func (c *talk) wasAsked() (reasons []string) {
	for _, event := range c.heard {
		if q := event.GetQuestion(); q != nil {
			reasons = append(reasons, q.GetReason())
		}
	}
	c.heard = nil
	return reasons
}

// TestReadsInAHome tries one command in eight, with TOOLD_ALL all of them.
func TestReadsInAHome(t *testing.T) {
	h, root, commands := livedIn(t)
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(touch x)"]}}`)}))
	c.wasAsked()
	full := h.tier(t) == tooldv1.SandboxTier_SANDBOX_TIER_FULL
	for i, command := range commands {
		for k, more := range []string{"", "; true", "; touch x"} {
			if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil && exec.Command("bash", "-c", "type "+strings.Fields(command)[0]).Run() != nil {
				continue // neither here nor there
			}
			command := command + more
			if !chosen(3*i+k, 8) {
				continue
			}
			want, exit := h.inShell(t, root, command)
			_ = os.Remove(filepath.Join(root, "x"))
			r := c.run(fmt.Sprint(i, more), command)
			_ = os.Remove(filepath.Join(root, "x"))
			if got, code := raw(t, r); got != want || code != exit {
				t.Errorf("%s\nprints %q, exit code %d, in %s;\nin a shell %q, %d", command, got, code, r.GetConfinement().GetTier(), want, exit)
			}
			if asked := c.wasAsked(); full || len(asked) == 0 {
				same(t, command+"\nasks", asked)
			} else {
				onlyUnconfined(t, command, asked, 1)
			}
		}
	}
}

// onlyUnconfined checks that there were so many questions, and that each was about a program that may do more than read, as in
// the fallback nothing keeps it from that.
func onlyUnconfined(t *testing.T, command string, asked []string, want int) {
	t.Helper()
	expect(t, fmt.Sprintf("%s\nasks %q, how often", command, asked), fmt.Sprint(len(asked)), fmt.Sprint(want))
	for _, reason := range asked {
		if !strings.Contains(reason, "which nothing confines") && !strings.Contains(reason, "not confined to reading") {
			t.Errorf("%s\nasks: %s", command, reason)
		}
	}
}

func TestReadsInAHomeAsNobody(t *testing.T) {
	asNobody(t, "testdata/home", "^Test(ReadsInAHome|HiddenInAHome|HiddenConfiguration)$")
}

// Without namespaces the same is printed, and programs that may do more are asked about.
func TestHomeWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("reads", TestReadsInAHome)
	t.Run("hidden", TestHiddenInAHome)
	t.Run("hidden configuration", TestHiddenConfiguration)
}

// TestHiddenInAHome: what holds credentials is in no command's sight.
func TestHiddenInAHome(t *testing.T) {
	h, root, _ := livedIn(t)
	c := h.attach(t, in(root, nil))
	for i, name := range []string{".ssh/id_rsa", ".git-credentials", ".npmrc", ".config/gh/hosts.yml"} {
		c.bash(fmt.Sprint(i), "cat ~/"+name)
		r := c.finish(fmt.Sprint(i), no)
		if len(c.wasAsked()) != 1 || r.GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED {
			t.Errorf("~/%s: %s, and not after a question that was answered with no", name, outcome(r))
		}
		// A yes to the home is none to what is hidden below it, in either tier.
		for _, more := range []string{"", "; touch x"} {
			id := fmt.Sprint("grep", i, more)
			r = c.run(id, "grep -rs . ~ | grep -F '"+name+":'"+more)
			if text := textIn(r); strings.Contains(text, "secret") || strings.Contains(text, "the key") || strings.Contains(text, "a token") {
				t.Errorf("~/%s is read by a grep%s, in %s:\n%s", name, more, r.GetConfinement().GetTier(), text)
			}
		}
		c.wasAsked()
	}
}

// TestHiddenConfiguration: git does without a configuration that a rule hides. In the fallback it says what it may not read, and
// nothing of it is shown.
func TestHiddenConfiguration(t *testing.T) {
	h, root, _ := livedIn(t)
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"deny":["Read(~/dotfiles/**)"]}}`)}))
	c.wasAsked()
	full := h.tier(t) == tooldv1.SandboxTier_SANDBOX_TIER_FULL
	for i, command := range []string{"git status --short", "git config --get init.defaultBranch || echo none"} {
		r := c.run(fmt.Sprint(i), command)
		if !full {
			holds(t, command, textIn(r), "unable to access '"+filepath.Join(h.dir, "home/.gitconfig")+"': Permission denied")
			holds(t, command+"\nasks", strings.Join(c.wasAsked(), "\n"), "cannot be read")
			continue
		}
		if text := textIn(r); r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK || strings.Contains(text, "denied") || strings.Contains(text, "main") {
			t.Errorf("%s\nends %s in %s, without the user's configuration:\n%s", command, outcome(r), r.GetConfinement().GetTier(), text)
		}
		same(t, command+"\nasks", c.wasAsked())
	}
}

// TestProgramOfTheWorkspace: a word that leads to a file which calls can write is no program of the table.
func TestProgramOfTheWorkspace(t *testing.T) {
	h := ordinary(t)
	root := h.room(t, "own", map[string]string{"bin/node": "#!/bin/sh\necho of the workspace\n", "bin/wc": "#!/bin/sh\necho of the workspace\n"})
	for _, name := range []string{"node", "wc"} {
		if err := os.Chmod(filepath.Join(root, "bin", name), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	c := h.attach(t, in(root, nil))
	c.run("1", "export PATH=$PWD/bin:$PATH")
	c.wasAsked()
	for i, command := range []string{"node --version", "wc -l bin/node", "find . -name wc -exec wc -l {} +"} {
		c.bash(fmt.Sprint("no", i), command)
		c.finish(fmt.Sprint("no", i), no)
		asked := strings.Join(c.wasAsked(), "\n")
		holds(t, command, asked, filepath.Join(root, "bin"))
		holds(t, command, textIn(c.run(fmt.Sprint("yes", i), command)), "of the workspace")
		c.wasAsked()
	}
	c.run("2", "ls bin")
	same(t, "ls\nasks", c.wasAsked())
}
