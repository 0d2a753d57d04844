package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A plant is one fault, and what the doctor must find of it.
type plant struct {
	name               string
	make               func(h *unitHome)
	within             []string // what the doctor is run by: a command and its arguments; "DIR" in them is the home
	flags              []string
	check, state, says string
}

// write writes a file of the home.
func (h *unitHome) write(mode os.FileMode, name, text string) {
	h.t.Helper()
	at := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
}

// path leaves only git, bash and what is named of the programs of PATH.
func (h *unitHome) path(also ...string) {
	for _, name := range append([]string{"git", "bash"}, also...) {
		at, err := exec.LookPath(name)
		if err != nil {
			h.t.Fatal(err)
		}
		h.write(0o700, "bin/"+name, "#!/bin/sh\nexec "+at+" \"$@\"\n")
	}
	h.environ = append(h.environ, "PATH="+filepath.Join(h.dir, "bin"))
}

// mounted runs the doctor in namespaces of users and mounts, after a mount.
func mounted(mount string) []string {
	return []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mkdir -p DIR/state && " + mount + ` && exec "$@"`, "sh"}
}

var plants = []plant{
	{
		name: "a socket directory for everyone", check: "socket", state: fault, says: "open to others",
		make: func(h *unitHome) { _ = os.Chmod(filepath.Dir(h.socket), 0o755) }, //nolint:gosec // the fault
	},
	{
		name: "a file instead of the socket", check: "socket", state: fault, says: "is not a socket",
		make: func(h *unitHome) { h.write(0o600, "run/toold/toold.sock", "") },
	},
	{
		name: "the socket of a dead daemon", check: "socket", state: warning, says: "has ended without cleaning up",
		make: func(h *unitHome) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.socket, Net: "unix"})
			if err != nil {
				h.t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		},
	},
	{
		name: "settings that are not JSON", check: "settings", state: fault, says: "settings.json:1",
		make: func(h *unitHome) { h.write(0o600, "config/toold/settings.json", "{") },
	},
	{
		name: "a key that is not known", check: "settings", state: warning, says: "permission",
		make: func(h *unitHome) { h.write(0o600, "config/toold/settings.json", `{"permission": {}}`) },
	},
	{
		name: "a hook that is not executable", check: "hooks", state: fault, says: "is not executable",
		make: func(h *unitHome) {
			h.write(0o600, "hook.sh", "")
			h.write(0o600, "config/toold/settings.json", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "`+h.dir+`/hook.sh"}]}]}}`)
		},
	},
	{
		name: "a hook that is gone", check: "hooks", state: fault, says: "no such file",
		make: func(h *unitHome) {
			h.write(0o600, "config/toold/settings.json", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "`+h.dir+`/gone"}]}]}}`)
		},
	},
	{
		name: "an MCP server that is not installed", check: "MCP server docs", state: fault, says: "no-such-server was not found",
		make: func(h *unitHome) {
			h.write(0o600, "config/toold/settings.json", `{"mcpServers": {"docs": {"command": "no-such-server"}}}`)
		},
	},
	{
		name: "an MCP server that is found only by its own PATH", check: "settings", state: fine, says: "value",
		make: func(h *unitHome) {
			h.write(0o700, "servers/own-server", "#!/bin/sh\n")
			h.write(0o600, "config/toold/settings.json", `{"mcpServers": {"docs": {"command": "own-server", "env": {"PATH": "`+h.dir+`/servers"}}}}`)
		},
	},
	{
		name: "an MCP server that its own PATH lacks", check: "MCP server docs", state: fault, says: "bash was not found",
		make: func(h *unitHome) {
			h.write(0o600, "config/toold/settings.json", `{"mcpServers": {"docs": {"command": "bash", "env": {"PATH": "`+h.dir+`"}}}}`)
		},
	},
	{
		name: "settings of git's that it cannot read", check: "git", state: warning, says: "bad config line",
		make: func(h *unitHome) { h.write(0o600, ".gitconfig", "[") },
	},
	{name: "no ripgrep", check: "rg", state: warning, says: "not installed", make: func(h *unitHome) { h.path() }},
	{
		name: "a ripgrep that is too old", check: "rg", state: warning, says: "install a newer one",
		make: func(h *unitHome) {
			h.path()
			h.write(0o700, "bin/rg", "#!/bin/sh\necho unknown option >&2; exit 2\n")
		},
	},
	{
		name: "a damaged journal", check: "journal", state: warning, says: "is damaged",
		make: func(h *unitHome) {
			h.output("call", "Read", `{"file_path":"/etc/hostname"}`)
			h.output("stop")
			at, err := filepath.Glob(filepath.Join(h.dir, "state/toold/journal/*.db"))
			if err != nil || len(at) != 1 {
				at, _ = filepath.Glob(filepath.Join(h.dir, "state/toold/journal/*"))
				h.t.Fatalf("where is the journal? %v", at)
			}
			if err := os.WriteFile(at[0], bytes.Repeat([]byte("damage "), 4096), 0o600); err != nil {
				h.t.Fatal(err)
			}
		},
	},
	{
		name: "a token file for everyone", check: "tokens", state: fault, says: "0644",
		make: func(h *unitHome) { h.write(0o644, "state/toold/tokens", "default abcdefghijklmnopqrstuvwxyz012345\n") },
	},
	{
		name: "an expired certificate", check: "certificate", state: fault, says: "has expired on 2001-02-03",
		make: func(h *unitHome) { h.write(0o600, "cert.pem", expired(h.t)) }, flags: []string{"--tls-cert", "DIR/cert.pem"},
	},
	{name: "no state directory", check: "state directory", state: fine, says: "state/toold will be made in "},
	{name: "a full disk", check: "state directory", state: fault, says: "is full", within: mounted("mount -t tmpfs -o size=1m none DIR/state")},
	{name: "a read-only disk", check: "state directory", state: fault, says: "read-only", within: mounted("mount -t tmpfs -o ro none DIR/state")},
	{
		name: "a state directory for everyone", check: "state directory", state: warning, says: "open to other users",
		make: func(h *unitHome) {
			h.write(0o600, "state/toold/x", "")
			_ = os.Chmod(filepath.Join(h.dir, "state/toold"), 0o755) //nolint:gosec // the fault
		},
	},
	{
		name: "no namespaces", check: "sandbox", state: warning, says: "The cause: ",
		within: []string{"unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", `for kind in /proc/sys/user/max_*_namespaces; do echo 0 >$kind || exit; done; exec "$@"`, "sh"},
	},
	{name: "few open files", check: "open files", state: warning, says: "only 600", within: []string{"sh", "-c", `ulimit -n 600; exec "$@"`, "sh"}},
	{
		name: "a clock that was set back", check: "clock", state: warning, says: "set back",
		make: func(h *unitHome) {
			h.write(0o600, "state/toold/lock", "")
			later := time.Now().Add(24 * time.Hour)
			_ = os.Chtimes(filepath.Join(h.dir, "state/toold/lock"), later, later)
		},
	},
}

func TestDoctorFindsFaults(t *testing.T) {
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			h := newPlainHome(t)
			if p.make != nil {
				p.make(h)
			}
			args := append(append(append([]string{}, p.within...), h.toold, "doctor", "--json"), p.flags...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", h.dir)
			}
			h.expect(h.command(args[0], args[1:]...), p.check, p.state, p.says)
		})
	}
}

// expect runs a doctor that must find something, and exit with 1 if and only if anything fails.
func (h *unitHome) expect(doctor *exec.Cmd, check, state, says string) {
	h.t.Helper()
	var complaints bytes.Buffer
	doctor.Stderr = &complaints
	out, err := doctor.Output()
	var found []finding
	if wrong := json.Unmarshal(out, &found); wrong != nil {
		h.t.Fatalf("%v, %v: %s%s", err, wrong, out, complaints.String())
	}
	seen, fails := false, false
	for _, f := range found {
		seen = seen || f.Check == check && f.State == state && strings.Contains(f.Reason+"; "+f.Do, says)
		fails = fails || f.State == fault
	}
	if !seen || fails != (doctor.ProcessState.ExitCode() == 1) {
		h.t.Errorf("exit code %d, and no finding %s of %s with %q:\n%s%s", doctor.ProcessState.ExitCode(), state, check, says, out, complaints.String())
	}
	if _, err := os.Lstat(h.socket + ".start"); err == nil {
		if _, err := os.ReadFile(filepath.Join(h.dir, "state/toold/journal/journal.db")); err != nil {
			h.t.Errorf("the doctor has started a daemon")
		}
	}
}

// TestDoctorWithoutFilters runs the doctor where the kernel has neither system call filters nor Landlock, as far as it can see.
func TestDoctorWithoutFilters(t *testing.T) {
	for text, state := range map[string]string{
		"{}": fault, `{"sandbox": {"required": false}}`: warning,
	} {
		h := newPlainHome(t)
		h.write(0o600, "config/toold/settings.json", text)
		h.expectWithoutFilters(state, "no system call filters")
	}
	h := newPlainHome(t)
	h.write(0o600, "config/toold/settings.json", `{"sandbox": {"enabled": false}}`)
	h.expectWithoutFilters(warning, "settings.json:1 disables the sandbox")
}

// expectWithoutFilters runs a doctor there.
func (h *unitHome) expectWithoutFilters(state, says string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread keeps the filter, and ends
		if err := hideConfinement(); err != nil {
			h.t.Errorf("the filter cannot be set: %v", err)
			return
		}
		h.expect(h.command(h.toold, "doctor", "--json"), "sandbox", state, says)
	}()
	<-done
}

// hideConfinement has seccomp(2) and Landlock answer in this thread as a kernel without them does.
func hideConfinement() error {
	code, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SECCOMP, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
		bpf.RetConstant{Val: 0x7fff0000},                       // SECCOMP_RET_ALLOW
		bpf.RetConstant{Val: 0x00050000 | uint32(unix.ENOSYS)}, // SECCOMP_RET_ERRNO
	})
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// TestDoctorAndADaemon: what a daemon knows is what the doctor reports.
func TestDoctorAndADaemon(t *testing.T) {
	h := newPlainHome(t)
	h.output("start")
	h.expect(h.command(h.toold, "doctor", "--json"), "daemon", fine, "listens on")
	h.output("stop")
	h.expect(h.command(h.toold, "doctor", "--json"), "daemon", fine, "none runs")
}

// TestDoctorOfAServe: the state directory is the one that the daemon has been given.
func TestDoctorOfAServe(t *testing.T) {
	h := newPlainHome(t)
	own := filepath.Join(h.dir, "own")
	serve := h.command(h.toold, "serve", "--state-dir", own)
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("%q, %v", line, err)
	}
	h.write(0o644, "own/tokens", "default abcdefghijklmnopqrstuvwxyz012345\n")
	h.expect(h.command(h.toold, "doctor", "--json"), "state directory", fine, own)
	h.expect(h.command(h.toold, "doctor", "--json"), "tokens", fault, "own/tokens")
	h.output("stop")
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
}

// TestRestartAdvice: "toold start --replace" refuses a daemon that no client has started.
func TestRestartAdvice(t *testing.T) {
	for want, info := range map[string]*tooldv1.GetInfoResponse{
		"start --replace":   {Limits: &tooldv1.Limits{IdleExit: durationpb.New(time.Hour)}, Features: []string{"upgrade"}},
		"toold upgrade":     {Features: []string{"upgrade"}},
		"systemctl --user ": {},
	} {
		if got := restart(info); !strings.Contains(got, want) {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// TestServersText: the states of servers are in words that a person reads.
func TestServersText(t *testing.T) {
	info := &tooldv1.GetInfoResponse{}
	for _, of := range []struct {
		kind, state string
		count       uint32
	}{{"mcp", "not_started", 4}, {"mcp", "ready", 1}, {"mcp", "idle_stopped", 2}, {"language", "failed", 1}} {
		info.Servers = append(info.Servers, &tooldv1.ServerCount{Kind: of.kind, State: of.state, Count: of.count})
	}
	const want = "4 MCP servers not started, 1 MCP server running, 2 MCP servers idle-stopped, 1 language server failed"
	if got := serversText(info); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := serversText(nil); got != "" {
		t.Errorf("without a daemon %q", got)
	}
}

// TestNetworkFileSystems: their names are those of statfs(2).
func TestNetworkFileSystems(t *testing.T) {
	if networked[0x6969] != "NFS" || networked[0xff534d42] != "CIFS" || networked[0x58465342] != "" {
		t.Errorf("%v", networked)
	}
}

// expired returns a certificate of the past.
func expired(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
