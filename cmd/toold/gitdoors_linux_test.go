package main

// Doors of git: what a call leaves in a repository so that the user's own git runs a program outside of the sandbox.
// testdata/gitdoors/*.txt holds the doors. A real daemon tries each of them on repositories that git has made.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A door is one way to make the user's git run a program.
//
// "door NAME" begins a door. The lines below it are:
//
//	root DIR...          what the session works in; main if there is no such line
//	do LINE              a line of a script that the session's Bash runs as "sh ./work.sh"
//	call                 ends the script; the next line is of another one
//	write PATH TEXT      a call of Write
//	read PATH            a call of Read
//	bash COMMAND         a call of Bash
//	then COMMAND         what the user does afterwards, in the root
//	open TIER...: WHY    where the door is known to be open
//
// A door with a line "write" or "bash" is tried in the mode acceptEdits, where no client answers. ROOT stands for the
// root. In the user's commands MARK is the file that the program makes.
type door struct {
	name  string
	roots []string
	steps []act
	then  string
	open  []string // tiers
	why   string
}

// An act is one call of the session.
type act struct{ kind, what, text string }

// gitDoors reads all doors.
func gitDoors(t *testing.T) (doors []door) {
	t.Helper()
	files, err := filepath.Glob("testdata/gitdoors/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		var d *door
		for line := range strings.Lines(content(t, file)) {
			kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch {
			case kind == "" || kind == "#":
			case kind == "door":
				doors = append(doors, door{name: rest, roots: []string{"main"}})
				d = &doors[len(doors)-1]
			case d == nil || !d.read(kind, rest):
				t.Fatalf("%s: %q is no line of a door", file, line)
			}
		}
	}
	return doors
}

// read takes one line of the door.
func (d *door) read(kind, rest string) bool {
	switch kind {
	case "root":
		d.roots = strings.Fields(rest)
	case "do":
		if n := len(d.steps); n > 0 && d.steps[n-1].kind == "do" {
			d.steps[n-1].what += "\n" + rest
			break
		}
		d.steps = append(d.steps, act{kind: kind, what: rest})
	case "call":
		d.steps = append(d.steps, act{kind: kind})
	case "write", "read", "bash":
		a := act{kind: kind, what: rest}
		if kind == "write" {
			a.what, a.text, _ = strings.Cut(rest, " ")
			a.text = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(a.text)
		}
		d.steps = append(d.steps, a)
	case "then":
		d.then += rest + "\n"
	case "open":
		tiers, why, _ := strings.Cut(rest, ": ")
		d.open, d.why = strings.Fields(tiers), why
	default:
		return false
	}
	return true
}

// byFileTools reports whether the door is tried without a script that does what it wants.
func (d *door) byFileTools() bool {
	return slices.ContainsFunc(d.steps, func(a act) bool { return a.kind == "write" || a.kind == "bash" })
}

// A gitScene is repositories that doors are tried on, and where.
type gitScene struct {
	environ  []string
	template string // a directory, a copy of which each test begins with
	dir      string // that copies are made in
}

// gitHome is what a user has in the home directory.
const gitHome = `[user]
	name = A
	email = a@example.com
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[advice]
	detachedHead = false
[includeIf "gitdir:global/"]
	path = ~/global.inc
`

// layGitScene makes repositories below dir, with git, as a script says.
func layGitScene(t *testing.T, dir string, environ []string, script string) *gitScene {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		skip(t, "install git")
	}
	s := &gitScene{environ: environ, template: filepath.Join(dir, "template"), dir: dir}
	put(t, filepath.Join(dir, "home", "global.inc"), "[core]\n\thooksPath = .githooks\n")
	if err := os.Mkdir(s.template, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := s.shell(t, s.template, content(t, script)); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return s
}

// copy makes a copy of some of the repositories, whose paths are those of the copy.
func (s *gitScene) copy(t *testing.T, to, names string) {
	t.Helper()
	script := fmt.Sprintf(`mkdir -p %[2]s && cd %[1]s && cp -a %[3]s %[2]s && cd %[2]s &&
		grep -rlIZ --exclude-dir=objects --exclude=.gitmodules %[1]s . | xargs -0 sed -i s,%[1]s,%[2]s,g`,
		s.template, to, names)
	if out, err := s.shell(t, s.dir, script); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// gitPrograms are variables that name programs which git runs. The tests' own user has none of them.
var gitPrograms = []string{
	"EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH",
	"GIT_SSH_COMMAND",
}

// shell runs a script outside of any sandbox, as the user would.
func (s *gitScene) shell(t *testing.T, dir, script string, set ...string) (string, error) {
	t.Helper()
	// timeout ends what the script has started, too.
	cmd := exec.CommandContext(t.Context(), "timeout", "60", "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(slices.Clone(s.environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(gitPrograms, name)
	}), append([]string{"GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}, set...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A gitPlace is one door's copy of the repositories.
type gitPlace struct {
	scene *gitScene
	dir   string
	roots []string
	mark  string // the file that the program makes, where no sandbox lets it
}

// place makes a copy for the door.
func (s *gitScene) place(t *testing.T, d door, name string) *gitPlace {
	t.Helper()
	p := &gitPlace{scene: s, dir: filepath.Join(s.dir, "doors", name)}
	p.mark = filepath.Join(s.dir, "marks", name)
	needed := "remote.git main lib other outside"
	if slices.Equal(d.roots, []string{"driven"}) {
		needed = "remote.git driven"
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
func (p *gitPlace) marked() bool { return exists(p.mark) }

func exists(path string) bool {
	_, err := os.Lstat(path)
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

// TestGitDoorsUnconfined shows that each door is one: without a sandbox the user's git runs the program.
func TestGitDoorsUnconfined(t *testing.T) {
	inLasting(t)
	environ, ws := home(t)
	dir := filepath.Dir(ws)
	put(t, filepath.Join(dir, "home", ".gitconfig"), gitHome)
	s := layGitScene(t, dir, append(environ, "HOME="+filepath.Join(dir, "home")), "testdata/gitdoors/scene.sh")
	for i, d := range gitDoors(t) {
		t.Run(d.name, func(t *testing.T) {
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
	case "write":
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

// The same as a user without rights.
func TestGitDoorsAsNobody(t *testing.T) {
	asNobody(t, "testdata/gitdoors", "^TestGitDoors(|WithoutNamespaces)$")
}

// tryGitDoors tries all doors in a tier, and holds what is open against what the doors say.
func tryGitDoors(t *testing.T, tier string) {
	t.Helper()
	inLasting(t)
	h := newHouse(t, map[string]string{"home/.gitconfig": gitHome})
	info, err := h.link.daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if full := info.GetSandbox() == tooldv1.SandboxTier_SANDBOX_TIER_FULL; full != (tier == "full") {
		skip(t, fmt.Sprintf("run this where there is the tier %s: here is %v", tier, info.GetSandbox()))
	}
	s := layGitScene(t, h.dir, h.environ, "testdata/gitdoors/scene.sh")
	for i, d := range gitDoors(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := s.place(t, d, fmt.Sprint(i))
			asked := p.try(t, h, d, fmt.Sprint("door", i))
			opened, output := p.goThrough(t, d)
			switch known := slices.Contains(d.open, tier); {
			case opened && !known:
				t.Errorf("the door is open, and no reason is given for it; the user's git:\n%s", output)
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
		case "do":
			put(t, filepath.Join(p.roots[0], "work.sh"), prelude+a.what+"\n")
			c.bash(id, "sh ./work.sh")
		case "bash":
			c.bash(id, p.filled(a.what))
		case "write":
			c.use(id, "Write", writeCall(t, path, p.filled(a.text)))
		case "read":
			c.use(id, "Read", fmt.Sprintf(`{"file_path":%q}`, path))
		default:
			continue
		}
		r := c.finish(id, no)
		if outcome(r) == "DENIED cannot_ask" && a.kind != "do" {
			asked = true
		} else if r.GetOutcome() == tooldv1.Outcome_OUTCOME_DENIED || r.GetOutcome() == tooldv1.Outcome_OUTCOME_INVALID {
			t.Errorf("%s %s was not tried: %s\n%s", a.kind, a.what, outcome(r), textIn(r))
		}
	}
	return asked
}

// docs/security.md shows which doors of git are open.
func TestGitDoorsDocument(t *testing.T) {
	const begin, end = "<!-- git doors -->\n", "<!-- end of git doors -->"
	path := filepath.FromSlash("../../docs/security.md")
	before, rest, ok := strings.Cut(content(t, path), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	want := gitDoorsTable(gitDoors(t))
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != want {
		t.Errorf("%s does not show the doors of git: run the test with -update\n%s", path, want)
	}
}

// gitDoorsTable shows the doors that are open, those that are so in the same tiers for the same reason together.
func gitDoorsTable(doors []door) string {
	var rows []string
	named := map[string]string{}
	for _, d := range doors {
		if d.open == nil {
			continue
		}
		row := strings.Join(d.open, ", ") + " | " + d.why
		if named[row] == "" {
			rows = append(rows, row)
			named[row] = d.name
			continue
		}
		named[row] += "; " + d.name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nOf %d doors, these are open:\n\n| door | tier | why |\n|---|---|---|\n", len(doors))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", named[row], row)
	}
	fmt.Fprint(&b, "\n")
	return b.String()
}
