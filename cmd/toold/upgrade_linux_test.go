package main

// The daemon goes on as another program: the same process, sockets, sessions and records.

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An upgradable is a daemon of a program that is installed in its house.
type upgradable struct {
	*house
	program string
}

func newUpgradable(t *testing.T, args ...string) *upgradable {
	t.Helper()
	environ, ws := home(t)
	u := &upgradable{house: &house{dir: filepath.Dir(ws)}}
	u.environ = append(environ, "HOME="+filepath.Join(u.dir, "home"), "CLAUDE_CONFIG_DIR=")
	u.program = filepath.Join(u.dir, "bin", "toold")
	u.install(t, tested(t))
	cmd := exec.Command(u.program, append([]string{"serve", "--managed-settings", "managed", "--root", ws}, args...)...)
	cmd.Env, cmd.Dir = u.environ, u.dir
	u.begin(t, cmd)
	return u
}

// tested is the program that is tested.
func tested(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("toold")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// another builds the program with another version.
func another(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toold")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w -X main.version=v9.9.9", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// install puts a file where the daemon's program is installed, as a package manager does.
func (u *upgradable) install(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, u.program, string(text))
	if err := os.Chmod(u.program, 0o700); err != nil {
		t.Fatal(err)
	}
}

// upgrade upgrades, and returns what is printed.
func (u *upgradable) upgrade(t *testing.T, code int, args ...string) string {
	t.Helper()
	return u.toold(t, u.dir, code, append([]string{"upgrade"}, args...)...)
}

// TestUpgrade: there and back, the process and its sockets are the same, and no connection is refused meanwhile.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t, "--listen", "127.0.0.1:0")
	before := u.info(t)
	root := u.room(t, "stays", map[string]string{"sub/x": ""})
	c := u.attach(t, in(root, nil))
	c.run("a", "cd sub")
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() {
		_, err := u.connecting(ctx)
		refused <- err
	}()

	u.install(t, another(t))
	holds(t, "what is said", u.upgrade(t, cli.ExitOK), "toold dev has become v9.9.9")
	now := u.info(t)
	if now.GetPid() != before.GetPid() || now.GetVersion() != "v9.9.9" || now.GetEpoch() != before.GetEpoch() {
		t.Errorf("it is %v, and was %v", now, before)
	}
	if was, is := before.GetListeners(), now.GetListeners(); len(is) != 2 || is[0].GetAddress() != was[0].GetAddress() || is[1].GetAddress() != was[1].GetAddress() {
		t.Errorf("it listens on %v, and did on %v", is, was)
	}
	a := in(root, nil)
	c = u.attach(t, a)
	if r := c.run("b", "pwd"); !strings.Contains(textIn(r), "/stays/sub") {
		t.Errorf("the working directory is %q", textIn(r))
	}
	c.run("c", "cd ..")
	if got := c.attached.GetSessionId(); got != "stays" {
		t.Errorf("the session is %q", got)
	}

	u.install(t, tested(t)) // a downgrade is the same
	holds(t, "what is said", u.upgrade(t, cli.ExitOK), "toold v9.9.9 has become dev")
	cancel()
	if err := <-refused; err != nil {
		t.Error(err)
	}
}

// connecting connects to each listener again and again until ctx ends, and returns how often. The error is that a connection was refused.
func (u *upgradable) connecting(ctx context.Context) (n int, err error) {
	info, err := u.link.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(5 * time.Millisecond) // the machine has others to serve
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		for _, listener := range info.GetListeners() {
			network, address := "unix", strings.TrimPrefix(listener.GetAddress(), "unix:")
			if tcp, is := strings.CutPrefix(address, "tcp://"); is {
				network, address = "tcp", tcp
			}
			conn, err := net.Dial(network, address)
			if err != nil {
				return n, err
			}
			if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// again connects again, after an upgrade, and attaches behind what the talk has heard.
func (u *upgradable) again(c *talk, a *tooldv1.Attach) *talk {
	c.t.Helper()
	var last uint64
	for {
		event, err := c.receive()
		if err != nil {
			if toold.Reason(err) != "upgrading" {
				c.t.Fatalf("the stream has ended with %v", err)
			}
			break
		}
		c.heard = append(c.heard, event)
	}
	for _, event := range c.heard {
		last = max(last, event.GetSeq(), event.GetAttached().GetLastSeq())
	}
	a = proto.CloneOf(a)
	a.SessionId, a.AfterSeq = c.attached.GetSessionId(), &last
	for {
		next := u.open(c.t)
		next.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}})
		event, err := next.receive()
		if toold.Reason(err) == "upgrading" { // the old connection has not ended yet
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		next.attached = event.GetAttached()
		next.heard = append(c.heard, event)
		return next
	}
}

// TestUpgradeInTheMiddle: a turn is open, a question waits for its answer, and calls wait for it. They go on in the new program.
func TestUpgradeInTheMiddle(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t)
	root := u.room(t, "middle", map[string]string{"sub/x": ""})
	a := in(root, nil)
	a.Env = map[string]string{"MINE": "kept", "PATH": os.Getenv("PATH"), "HOME": u.dir}
	c := u.attach(t, a)
	c.run("zero", "cd sub; export OURS=too")
	c.bash("one", "echo $MINE $OURS >> log")
	q := c.question("one")
	c.bash("two", "echo two >> log")
	c.bash("three", "cat log; pwd")
	ahead := c.question("two")
	c.answer(answer(ahead, yes)) // before its turn has come
	c.until("two withdrawn: answered: allowed")
	holds(t, "what is said", u.upgrade(t, cli.ExitOK), "has become")
	a.Env = nil // what was sent counts
	c = u.again(c, a)
	if again := c.question("one"); again.GetQuestionId() != q.GetQuestionId() { // as to each stream that attaches
		t.Errorf("the question is %s now, and was %s", again.GetQuestionId(), q.GetQuestionId())
	}
	c.answer(answer(q, yes))
	r := c.finish("three", no)
	if got := strings.TrimSpace(textIn(r)); got != "kept too\ntwo\n"+root+"/sub" {
		t.Errorf("the last call has printed %q", got)
	}
	same(t, "what was heard", filtered(c.heard, "zero", "attached"),
		"one accepted", "one asks", "two accepted", "three accepted", "two asks", "two withdrawn: answered: allowed", "one asks",
		"one withdrawn: answered: allowed", "one started", "one OK", "two started", "two OK", "three started", "three OK", "turn ended")
}

// filtered is the story without events about some, and without what the first turn had.
func filtered(events []*tooldv1.ExecuteResponse, without ...string) (told []string) {
	for _, words := range story(events) {
		if !slices.ContainsFunc(without, func(prefix string) bool { return strings.HasPrefix(words, prefix) }) {
			told = append(told, words)
		}
	}
	return told[1:] // the end of the first turn
}

// TestUpgradeWaits: what runs ends first, or is named.
func TestUpgradeWaits(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t)
	root := u.room(t, "waits", nil)
	c := u.attach(t, in(root, &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}))
	c.bash("one", "mkfifo gate; echo there; cat gate; echo over")
	c.until("one started")
	c.bash("two", "echo two >> log")
	holds(t, "the refusal", u.upgrade(t, cli.ExitFailed, "--wait=50ms"), "there still runs call one (Bash) of session waits")
	c.until("two accepted")
	upgraded := make(chan error, 1)
	go func() {
		for {
			_, err := u.link.Daemon.Upgrade(t.Context(), &tooldv1.UpgradeRequest{Wait: durationpb.New(hangGuard)})
			if toold.Reason(err) != "upgrading" { // else the other was faster
				upgraded <- err
				return
			}
		}
	}()
	for {
		_, err := u.link.Daemon.Upgrade(t.Context(), &tooldv1.UpgradeRequest{})
		if toold.Reason(err) == "upgrading" {
			break
		}
	}
	c.bash("late", "echo late >> log") // it is accepted, and waits
	c.until("late accepted")
	writeTo(t, filepath.Join(root, "gate"), "")
	if err := <-upgraded; err != nil {
		t.Fatal(err)
	}
	c = u.again(c, in(root, nil))
	c.finish("late", no)
	c.use("three", "Bash", `{"command":"cat log; sleep 1000","run_in_background":true}`)
	c.until("three OK")
	holds(t, "the refusal", u.upgrade(t, cli.ExitFailed, "--wait=50ms"), "there still runs background task", "sleep 1000")
	holds(t, "what is said", u.upgrade(t, cli.ExitOK, "--stop-tasks"), "has become")
	c = u.again(c, in(root, nil))
	if c.run("four", "cat log"); content(t, filepath.Join(root, "log")) != "two\nlate\n" {
		t.Errorf("the log is %q", content(t, filepath.Join(root, "log")))
	}
	if got := c.notices("task_ended"); len(got) != 1 {
		t.Errorf("of the task is told %q", got)
	}
}

// writeTo opens a file that is there, and writes to it.
func writeTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeRefused: what is installed must be a toold that can go on. Else nothing changes.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t)
	before := u.info(t)
	root := u.room(t, "stays", nil)
	c := u.attach(t, in(root, nil))
	for what, x := range map[string]struct{ program, want string }{
		"another program":   {"#!/bin/sh\necho hello\n", "is not a toold that can go on"},
		"one that fails":    {"#!/bin/sh\necho no such flag >&2\nexit 2\n", "no such flag"},
		"one that is none":  {"\x7fELF and no more", "exec format error"},
		"an older one":      {"#!/bin/sh\necho '{\"takes_over\":0,\"version\":\"v1\"}'\n", "is not a toold that can go on"},
		"one that is empty": {"", "exec format error"},
	} {
		put(t, u.program, x.program)
		if err := os.Chmod(u.program, 0o700); err != nil {
			t.Fatal(err)
		}
		holds(t, what, u.upgrade(t, cli.ExitFailed), "The daemon goes on as it is", u.program, x.want)
	}
	remove(t, u.program)
	holds(t, "no program", u.upgrade(t, cli.ExitFailed), "The daemon goes on as it is", "no such file")
	if now := u.info(t); !now.GetStarted().AsTime().Equal(before.GetStarted().AsTime()) {
		t.Errorf("it has begun again: %v", now)
	}
	c.run("a", "true")
}
