// Lays the scene: the files, and what goes with them.

package escape

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// A Scene is laid for one run of the probe. Its fields are what the sandbox's policy is made from: see Roots, Hidden and
// Protected of scene.Scene.
type Scene struct {
	scene.Scene
	Home    string // the home directory, with a credential in it
	Program string // the probe, in the root
	secret  string
	listed  []scene.Result
	before  map[string]string
	seen    evidence
	victim  *outsider
	leader  int // the other end of Terminal
	piped   int // the reading end of PipeIn
	waiting []channel
}

var built = sync.OnceValues(build)

// build compiles the probe, once for each test binary.
func build() ([]byte, error) {
	dir, err := os.MkdirTemp("", "toold-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "probe")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "github.com/toold/toold/tools/exec/sandbox/escape/probe")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the probe: %w\n%s", err, said)
	}
	return os.ReadFile(program)
}

// Lay makes a scene whose files and processes belong to uid, and takes all of it away when the test ends. The tree is below
// base, or below /var/tmp if base is "": not in /tmp, of which a sandbox may make a private one. For another uid than its own
// it must run as root.
func Lay(t testing.TB, base string, uid int) *Scene {
	t.Helper()
	if base == "" {
		base = "/var/tmp"
	}
	program, err := built()
	check(t, err)
	top, err := os.MkdirTemp(base, "toold-escape-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	nonce := hex.EncodeToString(random(16))
	in := func(name string) string { return filepath.Join(top, name) }
	s := &Scene{Home: in("home"), Program: in("root/probe"), secret: "toold-secret-" + nonce}
	s.Scene = scene.Scene{
		Outside: in("outside"), Root: in("root"), Bare: in("bare"), UID: uid, Nonce: nonce[:12],
		HiddenInside: in("root/private/hidden"), HiddenOutside: in("outside/private/hidden"), HiddenPlanted: in("root/innocent"),
		Credential: in("home/.ssh/id_test"), Token: in("daemon/token"), State: in("daemon/state/journal"), Sockets: in("daemon/run"),
		Kept: in("daemon/state/caches/other/upper/kept"), Lent: in("daemon/state/sessions/other/1.out"), Outputs: in("daemon/state/sessions/own"),
		Beside: in("root/beside"), Left: in("root/left"), BesideAbstract: "toold-beside-" + nonce[:12], LeftAbstract: "toold-left-" + nonce[:12],
		SecretSum: scene.Sum([]byte(s.secret)), SecretName: "TOOLD_PROBE_TOKEN",
		Stream: in("services/stream"), StreamPlanted: in("root/planted-stream"), Datagram: in("services/datagram"),
		Abstract: "toold-stream-" + nonce[:12], AbstractDatagram: "toold-datagram-" + nonce[:12], Bound: "toold-bound-" + nonce[:12],
		Bounds: scene.Bounds{Processes: 5000, Files: 1 << 16, Memory: 8 << 30, FileSize: 6 << 30, Filled: 2 << 30},
	}
	s.Shown, err = os.MkdirTemp("/tmp", "toold-shown-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(s.Shown) })
	s.files(t, program)
	s.list(t)
	for _, tree := range []string{top, s.Shown} {
		check(t, filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
			if err != nil || uid == os.Geteuid() {
				return err
			}
			return os.Lchown(path, uid, uid)
		}))
	}
	s.privileged(t, program)
	check(t, os.Chmod(top, 0o755)) //nolint:gosec // another user runs the probe
	s.processes(t)
	s.listeners(t)
	s.shared(t)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never returns an error
	return b
}

// files lays everything that is not a door's own.
func (s *Scene) files(t testing.TB, program []byte) {
	t.Helper()
	for path, content := range map[string]string{
		s.Program:      string(program),
		s.HiddenInside: s.secret, s.HiddenOutside: s.secret, s.Credential: s.secret, s.Token: s.secret, s.State: s.secret,
		s.Kept: s.secret, s.Lent: s.secret, s.Outputs + "/1.out": "of the session itself\n", s.Beside + "/heard": "", s.Left + "/heard": "",
		s.Stream + ".about":             "sockets of others",
		s.Root + "/.git/HEAD":           "ref: refs/heads/main\n",
		s.Root + "/.git/config":         "[core]\n\thooksPath = .githooks\n",
		s.Root + "/.git/hooks/pre-push": "#!/bin/sh\n",
		s.Root + "/.gitmodules":         "",
		s.Root + "/.idea/workspace.xml": "<project/>\n",
		s.Bare + "/README":              "a root without .git\n",
	} {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
	}
	check(t, os.MkdirAll(s.Sockets, 0o755))
	for name, content := range scene.Git {
		path := filepath.Join(s.Root, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			check(t, os.MkdirAll(path, 0o755))
			continue
		}
		check(t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "ROOT", s.Root)), 0o644))
	}
	check(t, os.Chmod(s.Program, 0o755))
	check(t, os.Link(s.HiddenOutside, s.HiddenPlanted))
}

// list asks the probe which doors there are, and makes directories for each.
func (s *Scene) list(t testing.TB) {
	t.Helper()
	plain, err := json.Marshal(s.Scene)
	check(t, err)
	said, err := exec.Command(s.Program, "list", string(plain)).Output()
	check(t, err)
	s.listed, err = results(string(said))
	check(t, err)
	s.Signals = make(map[string]int)
	for _, d := range s.listed {
		if d.Group == "signals" && d.Outside {
			s.Signals[d.Door] = firstSignal + len(s.Signals)
		}
		s.place(t, d)
	}
}

// Doors are the names of the doors of a group.
func (s *Scene) Doors(group string) (names []string) {
	for _, d := range s.listed {
		if d.Group == group {
			names = append(names, d.Door)
		}
	}
	return names
}

// place is what one door may try its attempts on.
func (s *Scene) place(t testing.TB, d scene.Result) {
	t.Helper()
	slug := scene.Slug(d.Door)
	out, own := filepath.Join(s.Outside, slug), filepath.Join(s.Root, slug)
	check(t, os.MkdirAll(out+"/dir", 0o755))
	check(t, os.MkdirAll(own+"/swapped", 0o755))
	check(t, os.WriteFile(out+"/victim", []byte("as it was\n"), 0o644))
	check(t, os.WriteFile(own+"/own", []byte("inside\n"), 0o644))
	if err := unix.Setxattr(out+"/victim", "user.toold", []byte("was"), 0); err != nil {
		t.Logf("%s has no attributes: %v", s.Outside, err)
	}
	check(t, os.Link(out+"/victim", own+"/planted"))
	check(t, os.Symlink(out, own+"/way"))
	check(t, os.Symlink(out+"/new", own+"/dangling"))
	if d.Group == scene.Temporary {
		shown := filepath.Join(s.Shown, slug)
		check(t, os.MkdirAll(shown+"/shown-dir", 0o755))
		check(t, os.WriteFile(shown+"/shown", []byte("as it was\n"), 0o644))
		check(t, os.WriteFile(shown+scene.ShownSibling, []byte(s.secret), 0o644))
	}
}

// privileged makes the copies of the probe that would gain something, if it can.
func (s *Scene) privileged(t testing.TB, program []byte) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	other := 0
	if s.UID == 0 {
		other = 65534
	}
	device := s.Outside + "/device"
	if unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) == nil {
		s.Device = device
	}
	s.Setuid, s.Capable = s.Root+"/setuid", s.Root+"/capable"
	check(t, os.WriteFile(s.Setuid, program, 0o755))
	check(t, os.Chown(s.Setuid, other, other))
	check(t, os.Chmod(s.Setuid, 0o755|os.ModeSetuid))
	check(t, os.WriteFile(s.Capable, program, 0o755))
	// Version 2, effective; CAP_NET_RAW permitted.
	raw := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(s.Capable, "security.capability", raw, 0); err != nil {
		s.Capable = ""
	}
}

// environ is what the starter is handed: the secret among it, for the starter to keep back.
func (s *Scene) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "LANG=C", s.SecretName + "=" + s.secret}
}
