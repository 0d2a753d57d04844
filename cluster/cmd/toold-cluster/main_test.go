//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/trial"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// built is where the programs are, once they have been built as they are.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "toold-cluster-test"); err != nil {
		return "", err
	}
	for name, module := range map[string]string{"toold-cluster": "../..", "toold": "../../.."} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "./cmd/"+name)
		build.Dir = module
		if text, err := build.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w\n%s", err, text)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func programs(t *testing.T) (cluster, daemon string) {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "toold-cluster"), filepath.Join(dir, "toold")
}

// An operator runs commands of toold-cluster.
type operator struct {
	t       *testing.T
	program string
	cluster *trial.Cluster
}

func (o *operator) run(args ...string) string {
	o.t.Helper()
	cmd := exec.Command(o.program, append(args, o.flags(args[0])...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%q: %v", args, err)
	}
	return string(text)
}

// flags returns the flags of a command that say where the cluster is.
func (o *operator) flags(command string) []string {
	flags := []string{"--certs", o.cluster.Certs(), "--nats", o.cluster.NATS(), "--replicas", "1"}
	if o.cluster.Objects != "" && slices.Contains([]string{"backup", "restore", "delete", "snapshot", "create"}, command) {
		flags = append(flags, "--objects", o.cluster.Objects)
	}
	return flags
}

// owner returns the node that has the one workspace, as "sessions" shows it.
func (o *operator) owner() string {
	o.t.Helper()
	var all []listed
	if err := json.Unmarshal([]byte(o.run("sessions", "--json")), &all); err != nil || len(all) != 1 {
		o.t.Fatalf("sessions: %v, %v", all, err)
	}
	if all[0].Principal != "token:alice" || all[0].Workspace != "project" || all[0].Session != "s" {
		o.t.Errorf("sessions: %v", all)
	}
	return all[0].Owner
}

// start starts a cluster with one NATS server, one gateway and the user alice.
func start(t *testing.T, nodes int) *operator {
	t.Helper()
	return startWith(t, nodes, "")
}

// startWith is start with a bucket for objects.
func startWith(t *testing.T, nodes int, bucket string) *operator {
	t.Helper()
	program, daemon := programs(t)
	dir, err := os.MkdirTemp("", "tc") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
			for _, file := range logs {
				text, _ := os.ReadFile(file)
				t.Logf("%s:\n%s", filepath.Base(file), text)
			}
		}
		_ = os.RemoveAll(dir)
	})
	cluster, err := trial.Start(t.Context(), trial.Config{Dir: dir, Program: program, Toold: daemon, Servers: 1, Nodes: nodes, Gateways: 1, Users: []string{"alice"}, Objects: bucket})
	t.Cleanup(cluster.Stop)
	if err != nil {
		t.Fatal(err)
	}
	return &operator{t, program, cluster}
}

// metrics reads those of a part, which have lines that begin so.
func (o *operator) metrics(kind, number string, lines ...string) {
	o.t.Helper()
	i, err := strconv.Atoi(number)
	if err != nil {
		o.t.Fatal(err)
	}
	socket := o.cluster.Metrics(kind, i)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://metrics/metrics")
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains("\n"+string(text), "\n"+line) {
			o.t.Errorf("the metrics of %s %d have no %q:\n%s", kind, i, line, text)
		}
	}
}

// A user is alice in her session.
type user struct {
	*toold.Agent
	t *testing.T
}

func (o *operator) user(roots ...string) *user {
	o.t.Helper()
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	agent, err := toold.Join(o.t.Context(), o.cluster.Dial("alice"), &tooldv1.Attach{SessionId: "s", Roots: roots, Options: options}, toold.Handlers{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(agent.Close)
	return &user{agent, o.t}
}

// run runs a command, whose result has a text.
func (u *user) run(id, command, want string) {
	u.t.Helper()
	turn, err := u.Start(&tooldv1.ToolUse{Id: id, Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"command":%q}`, command)}})
	if err != nil {
		u.t.Fatal(err)
	}
	result, err := turn.Result(u.t.Context())
	if err != nil || result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK || !strings.Contains(result.GetContent()[0].GetText(), want) {
		u.t.Errorf("%s: %v, %v", command, result, err)
	}
}

// TestOperator runs calls, and drains the node that has the workspace.
func TestOperator(t *testing.T) {
	o := start(t, 2)
	agent := o.user("workspace:project")
	agent.run("1", "echo text >file; pwd", "/workspace")
	first := o.owner()
	var nodes []members.Node
	if err := json.Unmarshal([]byte(o.run("nodes", "--json")), &nodes); err != nil || len(nodes) != 2 || nodes[0].Address == "" {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	o.metrics("node", strings.TrimPrefix(first, "node-"), "toold_node_workspaces 1", `toold_node_takeovers_total{result="taken"} 1`, `toold_cluster_nodes{state="serves"} 2`)
	o.metrics("gateway", "0", "toold_gateway_attached_sessions 1", "toold_cluster_build_info{")
	o.run("drain", first)
	if owner := o.owner(); owner == first {
		t.Errorf("%s has the workspace after it was drained", owner)
	}
	if text := o.run("nodes"); !strings.Contains(text, "drained") {
		t.Errorf("nodes:\n%s", text)
	}
	agent.run("2", "cat file", "text")
	if second := o.owner(); second == first || second == "" {
		t.Errorf("%q has the workspace now, and %q was drained", second, first)
	}
	o.run("drain", first, "--undo")
	o.metrics("node", strings.TrimPrefix(first, "node-"), `toold_node_ends_total{how="given_up"} 1`, `toold_node_results_total{outcome="ok"}`, `toold_node_snapshots_total{result="failed"} 0`)
	o.metrics("gateway", "0", `toold_gateway_rpcs_total{code="Unavailable",method="/toold.v1.ToolService/Execute"} 1`)
	o.calls()
}

func TestVersionOfNATS(t *testing.T) {
	for version, ok := range map[string]bool{"2.15.2": true, "2.16.0-preview.1": true, "3.0.0": true, "2.15.1": false, "2.9.30": false, "": false, "x": false} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestWrongUse: what is missing is named, and what to do.
func TestWrongUse(t *testing.T) {
	program, _ := programs(t)
	for want, args := range map[string][]string{
		"required flag(s) \"name\" not set": {"node"},
		"ca.pem":                            {"node", "--name", "a", "--allow-root", "--certs", t.TempDir()},
		"unknown command":                   {"nothing"},
		"which --certs names":               {"gateway", "--name", "g", "--user-ca", "ca.pem", "--certs", t.TempDir()},
		"--tokens, or the authorities":      {"gateway", "--name", "g", "--certs", t.TempDir()},
		`"alice" is no user`:                {"quota", "alice", "--sessions", "1"},
		`"bob" is no user`:                  {"create", "bob", "project"},
	} {
		text, err := exec.Command(program, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%q: %v\n%s", args, err, text)
		}
	}
}

// calls runs calls of the command line through a gateway, each in a session of its own.
func (o *operator) calls() {
	o.t.Helper()
	_, program := programs(o.t)
	dir := o.t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(o.cluster.Token("alice")), 0o600); err != nil {
		o.t.Fatal(err)
	}
	for _, call := range []struct {
		args []string
		want string
	}{
		{[]string{"Bash(cat file; pwd; echo ${ONLY_HERE-unset})"}, "text\n/workspace\nunset"},
		{[]string{"Read", "file_path=file", "limit=1"}, "text"},
		{[]string{"Bash(mkdir sub)"}, ""},
		{[]string{"Write", "file_path=new", "content=1", "--root", "workspace:project/sub"}, "/workspace/sub/new"},
		{[]string{"Bash(cat sub/new)"}, "1"},
	} {
		args := []string{"call", "--mode", "bypassPermissions", "--address", "tcp://" + o.cluster.Part("gateway", 0).Address}
		args = append(args, "--ca", filepath.Join(o.cluster.Certs(), "ca.pem"), "--token-file", token)
		args = append(args, call.args...)
		if !slices.Contains(call.args, "--root") {
			args = append(args, "--root", "workspace:project")
		}
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "ONLY_HERE=here")
		if text, err := cmd.CombinedOutput(); !strings.Contains(string(text), call.want) {
			o.t.Errorf("%q: %v: %s; want %q", call.args, err, text, call.want)
		}
	}
}
