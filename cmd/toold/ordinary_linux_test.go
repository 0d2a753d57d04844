package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/proto"

	// Everyday work in the sandbox as it is without a word in any settings: each file of testdata/ordinary is commands that one
	// session is sent, one after the other, and what comes of them. How they are confined is not known here.

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A work is a script and the files that it begins with.
//
// The script's lines: "needs PROGRAM..." says what has to be installed, "before COMMAND" what is run in the root, unconfined,
// before there is a session, and "settings JSON" begins another with those settings. "$ COMMAND" is sent and goes well, "?
// COMMAND" fails, "& COMMAND" goes on in the background. "> TEXT" is what the result has in it, "- OPERATION TARGET ALLOW" a
// denial that it tells, of which there are no others. "full" ends what is done where there are no namespaces. ROOT, HOME,
// REGISTRY and SERVER, its host and port, stand for what they are, BASE for what the house is in, and WARM for what Go has
// compiled before.
type work struct {
	needs  []string
	before string
	steps  []step
	files  []txtar.File
}

type step struct {
	kind, command string
	full          bool // only where there are namespaces
	says, denials []string
}

func readWork(t *testing.T, path string) (w work) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.files = archive.Files
	full := false
	for line := range strings.Lines(string(archive.Comment)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		last := len(w.steps) - 1
		switch {
		case kind == "needs":
			w.needs = strings.Fields(rest)
		case kind == "full":
			full = true
		case kind == "before":
			w.before = rest
		case kind == "$" || kind == "?" || kind == "&" || kind == "settings":
			w.steps = append(w.steps, step{kind: kind, command: rest, full: full})
		case kind == ">":
			w.steps[last].says = append(w.steps[last].says, rest)
		case kind == "-":
			w.steps[last].denials = append(w.steps[last].denials, rest)
		default:
			t.Fatalf("%s: %q is no line of a script", path, line)
		}
	}
	return w
}

// ordinary makes a house, outside of the temporary directories, which a sandbox has for itself.
func ordinary(t *testing.T) *house {
	t.Helper()
	inLasting(t)
	return newHouse(t, map[string]string{
		"home/.ssh/id": "the key\n", "home/.bashrc": "# mine\n",
		"home/.gitconfig": "[user]\n\tname = A\n\temail = a@example.com\n[protocol \"file\"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n",
	})
}

// lasting is a directory that is not for temporary files.
func lasting() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib", nil // others can get there
	}
	return os.UserHomeDir()
}

// inLasting has the test's temporary folders made in a place that is not for temporary ones.
func inLasting(t *testing.T) {
	t.Helper()
	was := os.Getenv("TMPDIR")
	dir, err := lasting()
	if strings.HasPrefix(was, dir+"/") || err != nil {
		return
	}
	base, err := os.MkdirTemp(dir, "toold-")
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(base, 0o755)
	_ = os.Setenv("TMPDIR", base)                                             //nolint:usetesting // t.Setenv allows no parallel tests
	t.Cleanup(func() { _, _ = os.Setenv("TMPDIR", was), os.RemoveAll(base) }) //nolint:usetesting // the same
}

func TestOrdinaryWork(t *testing.T) { works(t, ordinary(t), 2) }

// works does in the house what is denied, what reaches the network and one piece in so many of the other work, with TOOLD_ALL all of it.
func works(t *testing.T, h *house, oneIn int) {
	t.Helper()
	files, err := filepath.Glob("testdata/ordinary/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	registry := newRegistry(t)
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if name != "denied" && name != "net" && !chosen(i, oneIn) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readWork(t, file).do(t, h, info.GetSandbox(), registry)
		})
	}
}

func (w work) do(t *testing.T, h *house, tier tooldv1.SandboxTier, registry string) {
	for _, program := range w.needs {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, "install "+program)
		}
	}
	root := h.room(t, filepath.Base(t.Name()), nil)
	places := strings.NewReplacer("ROOT", root, "HOME", filepath.Join(h.dir, "home"), "BASE", h.dir, "WARM", goCache(),
		"REGISTRY", registry, "SERVER", strings.TrimPrefix(registry, "http://"))
	for _, f := range w.files {
		put(t, filepath.Join(root, f.Name), places.Replace(string(f.Data)))
	}
	if w.before != "" {
		cmd := exec.Command("sh", "-ec", places.Replace(w.before))
		cmd.Dir, cmd.Env = root, h.environ
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", w.before, err, out)
		}
	}
	c := h.attach(t, in(root, nil))
	for i, s := range w.steps {
		if s.full && tier != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
			return
		}
		if s.kind == "settings" {
			a := in(root, &tooldv1.Options{SettingsJson: proto.String(places.Replace(s.command))})
			a.SessionId = fmt.Sprint(filepath.Base(root), i)
			c = h.attach(t, a)
			continue
		}
		c.use(fmt.Sprint(i), "Bash", fmt.Sprintf(`{"command":%q,"run_in_background":%t}`, places.Replace(s.command), s.kind == "&"))
		s.check(t, places, c.finish(fmt.Sprint(i), yes))
	}
}

func (s step) check(t *testing.T, places *strings.Replacer, r *tooldv1.ToolResult) {
	t.Helper()
	text, failed := textIn(r), r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK
	if failed != (s.kind == "?") {
		t.Errorf("%s\nends %s:\n%s", s.command, outcome(r), text)
	}
	for _, says := range s.says {
		holds(t, s.command, text, places.Replace(says))
	}
	var denials, want []string
	for _, d := range r.GetConfinement().GetDenials() {
		if strings.HasPrefix(d.GetTarget(), places.Replace("HOME/.")) && !failed && !strings.Contains(text, d.GetTarget()) {
			continue // what a program keeps for itself
		}
		denials = append(denials, strings.TrimSpace(d.GetOperation()+" "+d.GetTarget()+" "+d.GetAllow()))
		holds(t, s.command, text, d.GetTarget(), d.GetAllow())
	}
	for _, d := range s.denials {
		want = append(want, places.Replace(d))
	}
	same(t, s.command+"\nis denied", denials, want...)
}

// goCache is where Go keeps what it has compiled for the user who runs the tests.
var goCache = sync.OnceValue(func() string {
	out, _ := exec.Command("go", "env", "GOCACHE").Output() // without Go it is not used
	return strings.TrimSpace(string(out))
})

// newRegistry serves one package as npm's registry does, and returns its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	archive := tar.NewWriter(zip)
	for name, text := range map[string]string{
		"package/package.json": `{"name": "greeter", "version": "1.0.0", "scripts": {"postinstall": "node make.js"}}`,
		"package/make.js":      `require("fs").writeFileSync("index.js", "module.exports = 'made by a script'")`,
	} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/greeter":
			fmt.Fprintf(w, `{"name": "greeter", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "greeter", "version": "1.0.0",
				"hasInstallScript": true, "dist": {"tarball": "http://%s/greeter.tgz"}}}}`, r.Host)
		case "/greeter.tgz":
			_, _ = w.Write(file.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// chosen reports whether the case of that number is tried: one in so many, another one every day, or with TOOLD_ALL all.
func chosen(number, oneIn int) bool {
	return allIsTried() || (number+time.Now().YearDay())%oneIn == 0
}

func allIsTried() bool { return os.Getenv("TOOLD_ALL") != "" }

// The same as a user without rights, but for what takes long and is the same for every user.
func TestOrdinaryWorkAsNobody(t *testing.T) {
	asNobody(t, "testdata/ordinary", "^TestOrdinaryWork$/^(denied|git|make|net|npm|shell|sockets|trace|worktree)$")
}

// asNobody runs tests of this program, by their names, as a user without rights, with a copy of a folder of test data.
func asNobody(t *testing.T, data, tests string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the tests were run by a user without rights")
	}
	inLasting(t)
	dir, err := os.MkdirTemp("", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, err := range []error{
		os.CopyFS(filepath.Join(dir, data), os.DirFS(data)), os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
		os.Chown(filepath.Join(dir, "tmp"), 65534, 65534), os.Chown(dir, 65534, 65534), os.Chmod(dir, 0o755), //nolint:gosec // others have to get there
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test"), program, 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.run="+tests)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir+"/tmp", "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
