package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// daemonHome makes the test binary a daemon that runs a script and waits to be killed.
const daemonHome = "SANDBOX_TEST_DAEMON_HOME"

// daemonTier is how that script is confined.
const daemonTier = "SANDBOX_TEST_DAEMON_TIER"

func TestMain(m *testing.M) {
	if WatcherMain(os.Args) {
		return
	}
	if home := os.Getenv(daemonHome); home != "" {
		daemonMain(home, os.Args[1])
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	os.Exit(m.Run())
}

// daemonMain runs script with its output to the daemon's own, and says the watcher's number first.
func daemonMain(home, script string) {
	r, err := New(home, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(r.watcher.child.Pid)
	p, err := r.Start(Command{
		ID: "call", Path: bash, Args: []string{"bash", "-c", script}, Dir: "/",
		Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
		Policy: Policy{Tier: Tier(os.Getenv(daemonTier)), Places: []Place{{Path: "/tmp", Access: Write}, {Path: "/var/tmp", Access: Write}}},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p.Wait()
}

const bash = "/bin/bash"

func newRunner(t testing.TB) *Runner {
	t.Helper()
	r, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runner: %v", err)
		}
	})
	return r
}

// A sink collects what comes, and can be waited on for a text.
type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newSink() *sink { return &sink{more: make(chan struct{}, 1)} }

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// line waits for the first whole line that begins with prefix.
func (s *sink) line(t testing.TB, prefix string) string {
	t.Helper()
	for {
		for l := range strings.Lines(s.String()) {
			if rest, ok := strings.CutPrefix(l, prefix); ok && strings.HasSuffix(l, "\n") {
				return strings.TrimSpace(rest)
			}
		}
		select {
		case <-s.more:
		case <-t.Context().Done():
			t.Fatalf("no line %q in %q", prefix, s)
		}
	}
}

type started struct {
	*Process
	out, err *sink
}

func start(t testing.TB, r *Runner, id, script string) started {
	t.Helper()
	s := started{out: newSink(), err: newSink()}
	p, err := r.Start(Command{
		ID: id, Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: t.TempDir(),
		Env: Environ(os.Environ()), Stdout: s.out, Stderr: s.err,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Process = p
	return s
}

// pids reads the numbers that a script has printed on lines that begin with "pid ".
func pids(t testing.TB, output string) (found []int) {
	t.Helper()
	for l := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(l), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no process numbers in %q", output)
	}
	return found
}

func alive(pid int) bool {
	m, err := look(pid)
	return err == nil && !m.dead
}

// awaitDeath returns when pid has ended, whoever's child it is.
func awaitDeath(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatalf("process %d still lives a minute later (%v)", pid, err)
		}
	}
}
