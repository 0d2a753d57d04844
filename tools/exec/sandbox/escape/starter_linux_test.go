// A starter stands for the daemon: a process of the scene's user that starts the probe in the sandbox, and whom the
// probe tries to reach.

package escape_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/sandbox/escape"
	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
	"github.com/toold/toold/tools/fs/repo"
)

// An order is what a starter is asked to start.
type order struct {
	Home      string // of the starter's runner
	Policy    sandbox.Policy
	Tier      sandbox.Tier // in which it must run
	Argv, Env []string
	Dir       string
	Roots     []string // in which git is guarded
	Unbound   bool     // nothing in them can be made read-only
	Beside    []beside // what is started before
}

// A beside is a process of another call.
type beside struct {
	Policy sandbox.Policy
	Argv   []string
	Dir    string // where it starts
	Own    string // its own directory
}

// starting makes the test binary a starter: a daemon in small, which runs one order from its standard input.
const starting = "TOOLD_ESCAPE_STARTER"

// notHere is how a starter ends that cannot confine as it is asked to.
const notHere = 3

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a starter under the race detector would take a second to end
	if os.Getenv(starting) == "" {
		code := m.Run()
		_ = os.RemoveAll(filepath.Dir(copied.path))
		os.Exit(code)
	}
	if err := starterMain(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.As(err, new(elsewhere)) {
			os.Exit(notHere)
		}
		os.Exit(1)
	}
}

// An elsewhere says that a tier is not to be had here.
type elsewhere struct{ error }

func starterMain() error {
	came := make(chan os.Signal, 64)
	for n := firstSignal; n <= 64; n++ {
		signal.Notify(came, syscall.Signal(n))
	}
	go func() { // until the program ends
		for got := range came {
			fmt.Fprintln(os.Stderr, heardSignal, int(got.(syscall.Signal)))
		}
	}()
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	r, err := sandbox.New(o.Home, nil)
	if err != nil {
		return err
	}
	if c, err := r.Confinement(o.Policy); err != nil || c.Tier != o.Tier {
		return elsewhere{fmt.Errorf("run this where the kernel has Landlock and lets users make namespaces: %+v, %v", c, err)}
	}
	for _, b := range o.Beside {
		if err := b.start(r, o.Env); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	box := sandbox.Box{Runner: r, Policy: o.Policy}
	if len(o.Roots) > 0 {
		box.Policy.Places, box.After = o.guarded()
	}
	p, err := box.Start(sandbox.Command{
		ID: "probe", Path: o.Argv[0], Args: o.Argv, Dir: o.Dir, Env: sandbox.Environ(o.Env), Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	exit := p.Wait()
	if exit.Code != 0 || exit.Stuck != nil {
		err = fmt.Errorf("the probe ended so: %+v", exit)
	}
	return errors.Join(err, r.Close())
}

// start starts the process, which runs until the runner is closed, and waits until it is ready.
func (b beside) start(r *sandbox.Runner, env []string) error {
	out, in := io.Pipe()
	box := sandbox.Box{Runner: r, Policy: b.Policy}
	_, err := box.Start(sandbox.Command{ID: "beside", Path: b.Argv[0], Args: b.Argv, Dir: b.Dir, Env: sandbox.Environ(env), Stdout: in, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		said, _ := os.ReadFile(line) // it may be gone
		if strings.Contains(string(said), "\x00beside\x00"+b.Own+"\x00") {
			return os.WriteFile(b.Own+"/pid", []byte(filepath.Base(filepath.Dir(line))), 0o644)
		}
	}
	return errors.Join(err, fmt.Errorf("no process has started that is called %q", b.Argv))
}

// guarded returns the places with those that keep git from running programs, and what puts right afterwards what they could
// not, as a daemon has both for a call.
func (o order) guarded() (places []sandbox.Place, after func() []sandbox.Denial) {
	places = o.Policy.Places
	put := func(path string, access sandbox.Access) {
		if !slices.ContainsFunc(places, func(p sandbox.Place) bool { return p.Path == path }) {
			places = append(places, sandbox.Place{Path: path, Access: access})
		}
	}
	finder := new(repo.Finder)
	guard := finder.Guard(o.Roots, o.Dir, o.Home)
	watched := guard.Loose
	for _, path := range guard.Firm {
		if _, err := os.Lstat(path); err != nil || o.Unbound {
			watched = append(watched, path)
			continue
		}
		put(path, sandbox.Read)
		for dir := filepath.Dir(path); strings.Contains(dir, "/.git"); dir = filepath.Dir(dir) {
			put(dir, sandbox.Write)
		}
	}
	watch := finder.Watch(guard, watched, repo.Allowed{})
	return places, func() (denials []sandbox.Denial) {
		for _, change := range watch.Changes() {
			d, err := sandbox.SetAside(change.Path, (*sandbox.Content)(change.Before))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			denials = append(denials, d)
		}
		return denials
	}
}

const (
	// firstSignal is the first that the suite sends to starters.
	firstSignal = 40
	// heardSignal begins the line by which a starter says that it got one.
	heardSignal = "signal"
)

// A starter is a process that starts the probe, and whom the probe tries to reach.
type starter struct {
	c       *exec.Cmd
	orders  *json.Encoder
	out     strings.Builder
	said    *bufio.Scanner
	private string // a directory of its own, the probe's /tmp among it
}

// newStarter makes a starter of the scene's user.
func newStarter(t *testing.T, s *escape.Scene) *starter {
	t.Helper()
	st := &starter{private: directory(t, s.UID)}
	st.c = exec.CommandContext(t.Context(), ownCopy(t))
	st.c.Dir, st.c.Env = "/", append(os.Environ(), starting+"=1")
	if s.UID != os.Geteuid() {
		st.c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.UID)}}
	}
	st.c.Stdout = &st.out
	stdin, err := st.c.StdinPipe()
	check(t, err)
	stderr, err := st.c.StderrPipe()
	check(t, err)
	check(t, st.c.Start())
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", st.c.Process.Pid))
	check(t, err)
	s.Starter = scene.Process{PID: st.c.Process.Pid, EnvironSum: scene.Sum(environ)}
	st.orders, st.said = json.NewEncoder(stdin), bufio.NewScanner(stderr)
	return st
}

// run has the order carried out. Signals that the starter gets are sent on to the suite, which takes itself for it.
func (st *starter) run(t *testing.T, o order) (stdout string, err error) {
	t.Helper()
	check(t, st.orders.Encode(o))
	var complaints []string
	for st.said.Scan() {
		var n int
		if _, err := fmt.Sscanf(st.said.Text(), heardSignal+" %d", &n); err == nil {
			check(t, syscall.Kill(os.Getpid(), syscall.Signal(n)))
			continue
		}
		complaints = append(complaints, st.said.Text())
	}
	err = st.c.Wait()
	if st.c.ProcessState.ExitCode() == notHere {
		skip(t, strings.Join(complaints, "\n"))
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, strings.Join(complaints, "\n"))
	}
	return st.out.String(), err
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// directory makes one in a place that no tier replaces.
func directory(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "toold-starter-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chown(dir, uid, -1))
	return dir
}

// copied is the test binary where everybody may run it.
var copied struct {
	once sync.Once
	path string
	err  error
}

func ownCopy(t *testing.T) string {
	t.Helper()
	copied.once.Do(func() {
		self, err := os.ReadFile("/proc/self/exe")
		dir, err2 := os.MkdirTemp("/var/tmp", "toold-test-")
		copied.path = filepath.Join(dir, "test")
		copied.err = cmp.Or(err, err2, os.WriteFile(copied.path, self, 0o755), os.Chmod(dir, 0o755))
	})
	check(t, copied.err)
	return copied.path
}
