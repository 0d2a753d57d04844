package main

// Doors of git: what a call leaves in a repository so that the user's own git runs a program outside of the sandbox.
// testdata/gitdoors/*.txt holds the doors. A real daemon tries each of them on repositories that git has made.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A gitPlace is one door's copy of the repositories.
type gitPlace struct {
	scene *gitScene
	dir   string
	roots []string
	mark  string // the file that the program makes, where no sandbox lets it
}

// gitDoorNeeds are the repositories that go with each root.
var gitDoorNeeds = map[string]string{
	"main": "main lib other outside", "outside": "main lib other outside",
	"main/third_party/foo": "main lib other outside",
	"small":                "small spare.git lib", "driven": "driven",
}

// place makes a copy for the door.
func (s *gitScene) place(t *testing.T, d door, name string) *gitPlace {
	t.Helper()
	p := &gitPlace{scene: s, dir: filepath.Join(s.dir, "doors", name)}
	p.mark = filepath.Join(s.dir, "marks", name)
	needed := "remote.git"
	for _, root := range d.roots {
		needed += " " + gitDoorNeeds[root]
	}
	s.copy(t, p.dir, needed)
	if err := os.MkdirAll(filepath.Dir(p.mark), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, root := range d.roots {
		p.roots = append(p.roots, filepath.Join(p.dir, root))
	}
	program := fmt.Sprintf("#!/bin/sh\n: >'%s'\n", p.mark)
	for _, path := range []string{filepath.Join(p.roots[0], "pwn"), filepath.Join(p.dir, "user.sh")} {
		put(t, path, program)
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	settings := "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ROOT/pwn\n\tworktree = ROOT\n"
	put(t, filepath.Join(p.roots[0], "text"), p.filled(settings))
	return p
}

// filled puts the root's path where a step has ROOT.
func (p *gitPlace) filled(text string) string { return strings.ReplaceAll(text, "ROOT", p.roots[0]) }

// marked reports whether the program has run outside of the sandbox.
func (p *gitPlace) marked() bool {
	_, err := os.Lstat(p.mark)
	return err == nil
}

// goThrough does what the user does, and reports whether it ran the program.
func (p *gitPlace) goThrough(t *testing.T, d door) (opened bool, output string) {
	t.Helper()
	if p.marked() {
		t.Error("the program has run outside of the sandbox before the user did anything")
	}
	output, _ = p.scene.shell(t, p.roots[0], d.then, "MARK="+p.mark) // what the door has left may break git
	return p.marked(), output
}

// TestGitDoorsUnconfined shows that each door is one: without a sandbox the user's git runs the program. As in the tests below, one
// door in 12 is tried, with TOOLD_ALL all of them.
func TestGitDoorsUnconfined(t *testing.T) {
	inLasting(t)
	environ, ws := home(t)
	dir := filepath.Dir(ws)
	put(t, filepath.Join(dir, "home", ".gitconfig"), gitHome)
	s := layGitScene(t, dir, append(environ, "HOME="+filepath.Join(dir, "home")), "testdata/gitdoors/scene.sh")
	for i, d := range gitDoors(t) {
		if !chosen(i, 12) {
			continue
		}
		t.Run(d.group+"/"+d.name, func(t *testing.T) {
			t.Parallel()
			p := s.place(t, d, fmt.Sprint(i))
			for _, a := range d.steps {
				p.alone(t, a)
			}
			if opened, output := p.goThrough(t, d); !opened {
				t.Errorf("it is no door: git does not run the program where there is no sandbox\n%s", output)
			}
		})
	}
}

// alone does a step without the daemon.
func (p *gitPlace) alone(t *testing.T, a act) {
	t.Helper()
	prelude := content(t, "testdata/gitdoors/prelude.sh")
	script := prelude + a.what
	switch a.kind {
	case "write", "edit":
		mode := os.FileMode(0o644)
		path := filepath.Join(p.roots[0], a.what)
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as the tool does
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(p.filled(a.text)), mode); err != nil {
			t.Fatal(err)
		}
		return
	case "read", "call":
		return
	case "bash":
		script = p.filled(a.what)
	case "background":
		script = strings.ReplaceAll(script, "sleep 1000", ":")
	}
	temp := filepath.Join(p.dir, "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := p.scene.shell(t, p.roots[0], script, "TMPDIR="+temp); err != nil {
		t.Errorf("%s: %v\n%s", a.what, err, out)
	}
}

func TestGitDoors(t *testing.T) { tryGitDoors(t, "full") }

func TestGitDoorsWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	tryGitDoors(t, "fallback")
}

// The same as a user without rights, for the doors that differ by who may read what.
func TestGitDoorsAsNobody(t *testing.T) {
	asNobody(t, "testdata/gitdoors", "^TestGitDoors$/^(new|pointers)$")
}

// tryGitDoors tries all doors in a tier, and holds what is open against what the doors say.
func tryGitDoors(t *testing.T, tier string) {
	t.Helper()
	inLasting(t)
	h := newHouse(t, map[string]string{"home/.gitconfig": gitHome})
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if full := info.GetSandbox() == tooldv1.SandboxTier_SANDBOX_TIER_FULL; full != (tier == "full") {
		skip(t, fmt.Sprintf("run this where there is the tier %s: here is %v", tier, info.GetSandbox()))
	}
	s := layGitScene(t, h.dir, h.environ, "testdata/gitdoors/scene.sh")
	for i, d := range gitDoors(t) {
		if !chosen(i, 12) {
			continue
		}
		t.Run(d.group+"/"+d.name, func(t *testing.T) {
			t.Parallel()
			p := s.place(t, d, fmt.Sprint(i))
			asked := p.try(t, h, d, fmt.Sprint("door", i))
			opened, output := p.goThrough(t, d)
			t.Logf("the user's git:\n%s", output)
			switch known := slices.Contains(d.open, tier); {
			case opened && !known:
				t.Error("the door is open, and no reason is given for it")
			case !opened && known:
				t.Errorf("the door is shut, and is said to be open: %s", d.why)
			case !opened && d.byFileTools() && !asked:
				t.Error("no call was asked about")
			}
		})
	}
}

// try does the steps of a door as a session's calls, and reports whether any was asked about.
func (p *gitPlace) try(t *testing.T, h *house, d door, session string) (asked bool) {
	t.Helper()
	options := &tooldv1.Options{SettingsJson: proto.String(`{"permissions":{"allow":["Bash(sh *)"]}}`)}
	if d.byFileTools() {
		options.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS.Enum()
	}
	prelude := content(t, "testdata/gitdoors/prelude.sh")
	c := h.attach(t, &tooldv1.Attach{SessionId: session, Roots: p.roots, Options: options})
	for i, a := range d.steps {
		id := fmt.Sprint(i)
		switch path := filepath.Join(p.roots[0], a.what); a.kind {
		case "do", "background":
			script := fmt.Sprintf("work%d.sh", i)
			put(t, filepath.Join(p.roots[0], script), prelude+a.what+"\n")
			c.use(id, "Bash", fmt.Sprintf(`{"command":"sh ./%s","run_in_background":%t}`, script, a.kind == "background"))
		case "bash":
			c.bash(id, p.filled(a.what))
		case "write":
			c.use(id, "Write", writeCall(t, path, p.filled(a.text)))
		case "edit":
			input, err := json.Marshal(map[string]string{
				"file_path": path, "old_string": content(t, path), "new_string": p.filled(a.text),
			})
			if err != nil {
				t.Fatal(err)
			}
			c.use(id, "Edit", string(input))
		case "read":
			c.use(id, "Read", fmt.Sprintf(`{"file_path":%q}`, path))
		default:
			continue
		}
		r := c.finish(id, no)
		t.Logf("%s %s ends %s:\n%s", a.kind, a.what, outcome(r), textIn(r))
		if outcome(r) == "DENIED cannot_ask" && a.byFileTool() {
			asked = true
		} else if r.GetOutcome() == tooldv1.Outcome_OUTCOME_DENIED || r.GetOutcome() == tooldv1.Outcome_OUTCOME_INVALID {
			t.Errorf("%s %s was not tried: %s\n%s", a.kind, a.what, outcome(r), textIn(r))
		}
	}
	return asked
}
