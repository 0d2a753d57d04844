package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/cmd/toold/internal/connect"
)

// A unitHome is a user's directories, below which a daemon is started by a socket.
type unitHome struct {
	t               *testing.T
	dir, run, toold string
	socket          string
	environ         []string
}

func newUnitHome(t *testing.T) *unitHome {
	t.Helper()
	if _, err := exec.LookPath("systemd-socket-activate"); err != nil {
		skip(t, "systemd-socket-activate is not installed (apt-get install systemd)")
	}
	return newPlainHome(t)
}

func newPlainHome(t *testing.T) *unitHome {
	t.Helper()
	program, err := exec.LookPath("toold")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "u") // short, since a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	h := &unitHome{t: t, dir: dir, run: filepath.Join(dir, "run"), toold: program}
	t.Cleanup(func() {
		_ = h.command(h.toold, "stop", "--now").Run() // most tests have ended their daemon themselves
		_ = os.RemoveAll(dir)
	})
	h.socket = filepath.Join(h.run, "toold", "toold.sock")
	for _, d := range []string{filepath.Dir(h.socket), filepath.Join(dir, "config"), filepath.Join(dir, "work")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.environ = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+h.run, "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "GORACE="+raceAtExit)
	return h
}

// command returns a command in the home.
func (h *unitHome) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = filepath.Join(h.dir, "work"), h.environ
	return cmd
}

// output runs toold and returns what it prints.
func (h *unitHome) output(args ...string) string {
	h.t.Helper()
	out, err := h.command(h.toold, args...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("toold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// listen starts what listens at the socket for a daemon, and returns when it does so.
func (h *unitHome) listen(variables ...string) *exec.Cmd {
	h.t.Helper()
	args := []string{"-l", h.socket}
	for _, v := range variables {
		args = append(args, "-E", v)
	}
	for _, v := range h.environ {
		args = append(args, "-E", v)
	}
	cmd := h.command("systemd-socket-activate", append(args, h.toold, "serve")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "Listening on") {
		h.t.Fatalf("systemd-socket-activate: %q, %v", line, err)
	}
	go func() { _, _ = lines.WriteTo(os.Stderr) }() // until the process ends
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// TestSocketActivation: the first connection starts the daemon, which reports to the service manager and leaves the socket.
func TestSocketActivation(t *testing.T) {
	h := newUnitHome(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(h.dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	_ = manager.SetReadDeadline(time.Now().Add(time.Minute))
	await := func(want string) {
		t.Helper()
		for buffer := make([]byte, 256); ; {
			n, err := manager.Read(buffer)
			if err != nil {
				t.Fatalf("the service manager waits for %s: %v", want, err)
			}
			if string(buffer[:n]) == want {
				return
			}
		}
	}
	h.write(0o600, "config/toold/settings.json", `{"limits": {"drain": "2m"}}`)
	daemon := h.listen("NOTIFY_SOCKET="+filepath.Join(h.dir, "notify"), "WATCHDOG_USEC=200000")

	environment := h.output("call", "--mode", "bypassPermissions", "Bash", `{"command":"env"}`)
	for _, name := range []string{"LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_"} {
		if strings.Contains(environment, name) {
			t.Errorf("a call sees %s:\n%s", name, environment)
		}
	}
	await("READY=1")
	await("WATCHDOG=1")
	h.output("stop")
	await("STOPPING=1\nEXTEND_TIMEOUT_USEC=150000000")
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	if _, err := os.Lstat(h.socket); err != nil {
		t.Errorf("the daemon has removed a socket that it did not make: %v", err)
	}
}

// TestTickNeedsAnAnswer: the watchdog hears nothing while the daemon does not answer.
func TestTickNeedsAnAnswer(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := serviceManager{address: filepath.Join(dir, "notify"), watchdog: 20 * time.Millisecond}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hangs, err := net.Listen("unix", filepath.Join(dir, "hangs")) // connections wait to be accepted
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	conn, err := connect.Dial(hangs.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m.tick(t.Context(), conn)
	m.tell("the next")
	said := make([]byte, 64)
	n, err := manager.Read(said)
	if err != nil || string(said[:n]) != "the next" {
		t.Errorf("the service manager heard %q, %v of a daemon that hangs", said[:n], err)
	}
}

// TestUnits: systemd accepts the units of contrib/systemd.
func TestUnits(t *testing.T) {
	h := newUnitHome(t)
	if err := os.MkdirAll(filepath.Join(h.run, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	units := filepath.Join(h.dir, "units")
	if err := os.Mkdir(units, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"--user", "--man=no", "verify"}
	for _, name := range []string{"toold.socket", "toold.service"} {
		text, err := os.ReadFile("../../contrib/systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		here := strings.Replace(string(text), "/usr/bin/toold", h.toold, 1)
		args = append(args, filepath.Join(units, name))
		if err := os.WriteFile(filepath.Join(units, name), []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := h.command("systemd-analyze", args...)
	verify.Env = append(verify.Env, "LC_ALL=C.UTF-8")
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), "toold") {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestClientsDeferToTheUnit: where the user's systemd has toold.socket enabled, a client has it listen and starts no daemon of its
// own, and commands that start none leave the socket alone.
func TestClientsDeferToTheUnit(t *testing.T) {
	h := newUnitHome(t)
	wants := filepath.Join(h.dir, "config", "systemd", "user", "sockets.target.wants")
	bin := filepath.Join(h.dir, "bin")
	for _, d := range []string{wants, bin, filepath.Join(h.run, "systemd")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(wants, "toold.socket"), filepath.Join(h.run, "systemd", "private")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// systemctl, where systemd is not the first process: what listens is started, and has reported that it listens.
	script := strings.NewReplacer("@dir", h.dir, "@socket", h.socket, "@toold", h.toold).Replace(`#!/bin/sh
echo "$@" >>@dir/asked
mkfifo @dir/said @dir/ready
(read line; echo >@dir/ready; exec cat) <@dir/said >/dev/null 2>&1 &
setsid systemd-socket-activate -l @socket -E XDG_RUNTIME_DIR -E HOME -E XDG_STATE_HOME -E XDG_CONFIG_HOME -E GORACE -E PATH \
  @toold serve >/dev/null 2>@dir/said &
read line <@dir/ready
`)
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	h.environ = append(h.environ, "PATH="+bin+":"+os.Getenv("PATH"))

	if out := h.output("start", "-v"); strings.Contains(out, "starting the daemon") {
		t.Errorf("the client has started a daemon of its own:\n%s", out)
	}
	asked, _ := os.ReadFile(filepath.Join(h.dir, "asked"))
	if string(asked) != "--user start toold.socket\n" {
		t.Errorf("systemctl was asked for %q", asked)
	}
	h.output("stop")
	h.listen() // as systemd goes on to do
	out, err := h.command(h.toold, "status").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "systemd listens") {
		t.Errorf("status, while systemd waits: %v\n%s", err, out)
	}
	if out := h.output("stop"); !strings.Contains(out, "no daemon was running") {
		t.Errorf("stop, while systemd waits:\n%s", out)
	}
}
