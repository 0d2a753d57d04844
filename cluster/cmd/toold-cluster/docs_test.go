//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// The machines of docs/cluster.md, as addresses of loopback.
type machines struct {
	t   *testing.T
	dir string
	ip  map[string]string // by name
	doc []string          // the blocks of the page
}

// newMachines reads the page.
func newMachines(t *testing.T) *machines {
	t.Helper()
	page, err := os.ReadFile("../../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "td") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &machines{t: t, dir: dir, ip: map[string]string{}}
	net := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250))
	for i, name := range []string{"a", "b", "c"} {
		m.ip[name] = fmt.Sprint(net, i+1)
		if err := os.MkdirAll(filepath.Join(dir, name, "certs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, part := range strings.Split(string(page), "```\n") {
		if i%2 == 1 {
			m.doc = append(m.doc, part)
		}
	}
	return m
}

// block returns the block of the page that begins with a text, as it is on one machine.
func (m *machines) block(begin, machine string) string {
	m.t.Helper()
	for _, text := range m.doc {
		if !strings.HasPrefix(text, begin) {
			continue
		}
		for name, ip := range m.ip {
			text = strings.ReplaceAll(text, name+".example", ip)
		}
		own := filepath.Join(m.dir, machine)
		return strings.NewReplacer(
			"users.example", m.ip["a"], "0.0.0.0", m.ip[machine], "127.0.0.1", m.ip[machine],
			"/etc/toold-cluster", own+"/certs", "/var/lib/nats", own+"/nats", "/etc/toold-users", m.dir+"/tokens",
			"--name a", "--name "+machine, "--advertise "+m.ip["a"], "--advertise "+m.ip[machine], // the page has machine a
			"server_name: a", "server_name: "+machine, "nats-a", "nats-"+machine, "--objects https://s3.example/toold", "",
		).Replace(text)
	}
	m.t.Fatalf("docs/cluster.md has no block that begins with %q", begin)
	return ""
}

// shell runs commands of the page, and returns what they print on standard output.
func (m *machines) shell(script string) string {
	m.t.Helper()
	out, err := m.command(m.t.Context(), script).Output()
	if err != nil {
		var text []byte
		if exit, is := err.(*exec.ExitError); is {
			text = exit.Stderr
		}
		m.t.Fatalf("%s\n%v\n%s%s", script, err, out, text)
	}
	return string(out)
}

func (m *machines) command(ctx context.Context, script string) *exec.Cmd {
	dir, err := built()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	return cmd
}

// begin starts a service, which ends with the test.
func (m *machines) begin(name, script string) {
	m.t.Helper()
	log, err := os.Create(filepath.Join(m.dir, name+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := m.command(context.Background(), "exec "+script)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if m.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			m.t.Logf("%s:\n%s", name, text)
		}
	})
}

// TestTheOperatorsPage does what docs/cluster.md tells an operator, with TLS everywhere: three NATS servers, nodes and gateways,
// a look, a call, a backup.
func TestTheOperatorsPage(t *testing.T) {
	programs(t)
	m := newMachines(t)
	build := m.command(t.Context(), "go build -o "+m.dir+"/bin/nats-server github.com/nats-io/nats-server/v2")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	m.shell(m.block("toold-cluster init", "a"))
	token := m.command(t.Context(), m.block("toold-cluster token", "a"))
	secret, err := os.OpenFile(filepath.Join(m.dir, "token"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	token.Stderr = secret
	if err := token.Run(); err != nil || secret.Close() != nil {
		t.Fatal(err)
	}
	for name := range m.ip {
		m.shell(fmt.Sprintf("chmod 600 tokens; for f in ca nats-%[1]s nats-%[1]s-key node-%[1]s node-%[1]s-key gateway-%[1]s gateway-%[1]s-key; do cp certs/$f.pem %[1]s/certs; done", name))
		if err := os.WriteFile(filepath.Join(m.dir, name, "nats.conf"), []byte(m.block("server_name", name)), 0o600); err != nil {
			t.Fatal(err)
		}
		m.begin("nats-"+name, fmt.Sprintf("%s/bin/nats-server -c %s/nats.conf", m.dir, name))
		node, gateway, both := strings.Cut(m.block("toold-cluster node", name), "toold-cluster gateway")
		if !both {
			t.Fatal("the page does not start a gateway behind a node")
		}
		own := fmt.Sprintf(" --certs %[1]s/%[2]s/certs", m.dir, name)
		allow := ""
		if os.Geteuid() == 0 {
			allow = " --allow-root"
		}
		m.begin("node-"+name, strings.TrimSpace(node)+own+allow+fmt.Sprintf(" --data %s/%s/data", m.dir, name))
		m.begin("gateway-"+name, "toold-cluster gateway "+strings.TrimSpace(gateway)+own)
	}
	m.use()
}

// use does what the page does with a cluster that serves.
func (m *machines) use() {
	look := m.block("toold-cluster nodes", "a")
	for deadline := time.Now().Add(2 * time.Minute); strings.Count(m.tried(look), "serves") < 3; {
		if time.Now().After(deadline) {
			m.t.Fatalf("the nodes do not serve:\n%s", m.tried(look))
		}
	}
	status := strings.NewReplacer("users.example", m.ip["a"], "FILE", "token", "--ca ca.pem", "--ca certs/ca.pem").Replace(statusLine)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(m.tried(status), "token:alice"); {
		if time.Now().After(deadline) {
			m.t.Fatalf("the gateway does not serve:\n%s", m.tried(status+" 2>&1; true"))
		}
	}
	m.firstCall()
	backup := m.block("toold-cluster backup", "a")
	if told := m.shell(strings.ReplaceAll(backup, "/backup/", m.dir+"/")); !strings.HasPrefix(told, "1 workspaces") {
		m.t.Errorf("backup: %q", told)
	}
}

// statusLine is in the page's text.
const statusLine = "toold status --address tcp://users.example:7443 --ca ca.pem --token-file FILE"

// firstCall is the page's, with grpcurl if that is installed.
func (m *machines) firstCall() {
	page, err := os.ReadFile("../../../docs/cluster.md")
	if err != nil || !strings.Contains(string(page), statusLine) {
		m.t.Errorf("docs/cluster.md has another line than %q, %v", statusLine, err)
	}
	call, told := m.block("grpcurl", "a"), ""
	if tool, err := exec.LookPath("grpcurl"); err == nil {
		call = strings.Replace(call, "grpcurl -cacert ca.pem", tool+" -cacert certs/ca.pem", 1)
		told = m.shell("TOKEN=$(cat token); export TOKEN\n" + call)
	} else {
		_, text, _ := strings.Cut(call, "<<'END'\n")
		told = m.call(strings.TrimSuffix(text, "END\n"))
	}
	if !strings.Contains(told, "/workspace") {
		m.t.Errorf("the first call: %s", told)
	}
}

// call runs a tool, whose request is in JSON, and returns the events.
func (m *machines) call(text string) (events string) {
	request := &tooldv1.RunToolRequest{}
	if err := protojson.Unmarshal([]byte(text), request); err != nil {
		m.t.Fatal(err)
	}
	creds, err1 := credentials.NewClientTLSFromFile(filepath.Join(m.dir, "certs/ca.pem"), "")
	token, err2 := os.ReadFile(filepath.Join(m.dir, "token"))
	conn, err3 := toold.Connect(m.ip["a"]+":7443", grpc.WithTransportCredentials(creds))
	if err := errors.Join(err1, err2, err3); err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(m.t.Context(), "authorization", "Bearer "+strings.TrimSpace(string(token)))
	stream, err := conn.Tools.RunTool(ctx, request)
	for err == nil {
		var response *tooldv1.RunToolResponse
		if response, err = stream.Recv(); err == nil {
			events += protojson.Format(response)
		}
	}
	if !errors.Is(err, io.EOF) {
		m.t.Fatal(err)
	}
	return events
}

// tried returns what a command prints, which may fail.
func (m *machines) tried(script string) string {
	text, _ := m.command(m.t.Context(), script).CombinedOutput()
	return string(text)
}
