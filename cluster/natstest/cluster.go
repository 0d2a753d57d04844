package natstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// processEnv holds the [node] that a process of the test binary is to run.
const processEnv = "TOOLD_NATSTEST_NODE"

// serverName is the name of the server with a number.
const serverName = "nats-%d"

// node is one server of a cluster.
type node struct {
	Name, Dir     string
	Client, Route int // ports of loopback
	Routes        []int
}

// nodes returns servers with free ports. Their storage is in temporary
// directories.
func nodes(t testing.TB, n int) []node {
	ports := freePorts(t, 2*n)
	all := make([]node, n)
	for i := range all {
		all[i] = node{Name: fmt.Sprintf(serverName, i), Dir: t.TempDir(), Client: ports[i], Route: ports[n+i], Routes: ports[n:]}
	}
	return all
}

// freePorts returns ports that were free a moment ago: the servers of a
// cluster have to know each other's before they start. They are below those
// that systems choose for connections, so that none takes them meanwhile.
func freePorts(t testing.TB, n int) []int {
	var ports []int
	for range 100 * n {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	t.Fatal("no free ports were found")
	return nil
}

func (n node) options() *server.Options {
	o := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Client, JetStream: true, StoreDir: n.Dir, NoLog: true, NoSigs: true, SyncAlways: true,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: n.Route},
	}
	for _, port := range n.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	return o
}

func (n node) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.Client) }

func (n node) start() (*server.Server, error) {
	s, err := server.NewServer(n.options())
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("the NATS server %s did not start", n.Name)
	}
	return s, nil
}

// StartCluster returns n servers that form a cluster in this process, each of
// which syncs every write. They are shut down when the test ends.
func StartCluster(t testing.TB, n int) []*server.Server {
	t.Helper()
	var all []*server.Server
	nodes := nodes(t, n)
	for _, node := range nodes {
		s, err := node.start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	ready(t, nodes)
	return all
}

// ConnectCluster returns a connection to a cluster, by the URLs of its servers.
// It is closed when the test ends.
func ConnectCluster(t testing.TB, urls ...string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

// ready waits until the servers know each other and have a leader, so that
// they can make a stream with a replica on each.
func ready(t testing.TB, nodes []node) {
	t.Helper()
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.url())
	}
	_, js := ConnectCluster(t, urls...)
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	for {
		err := replicate(ctx, js, len(nodes))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the NATS cluster is not ready: %v", err)
		}
	}
}

// replicate makes a stream and deletes it. It gives up soon: a server without
// a leader does not answer at all.
func replicate(ctx context.Context, js jetstream.JetStream, replicas int) error {
	try, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	const name = "natstest-ready"
	if _, err := js.CreateStream(try, jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage, Replicas: replicas}); err != nil {
		return err
	}
	return js.DeleteStream(try, name)
}

// Main runs the server that this process was started for by [StartProcesses],
// until its standard input ends, and reports true. Otherwise it reports false at
// once. TestMain calls it first.
func Main() bool {
	text := os.Getenv(processEnv)
	if text == "" {
		return false
	}
	var n node
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		panic("BUG: " + err.Error())
	}
	s, err := n.start()
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return true
	}
	fmt.Fprintln(os.Stdout, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	return true
}

// A Process is a server in a process of its own.
type Process struct {
	URL  string
	Dir  string // its storage
	node node
	cmd  *exec.Cmd
	in   io.Closer // when it is closed the server shuts down
}

// StartProcesses returns n servers that form a cluster, each in a process of
// the test binary, whose TestMain calls [Main]. They are killed when the test
// ends.
func StartProcesses(t testing.TB, n int) []*Process {
	t.Helper()
	var all []*Process
	nodes := nodes(t, n)
	for _, node := range nodes {
		p := &Process{URL: node.url(), Dir: node.Dir, node: node}
		p.Start(t)
		t.Cleanup(p.Kill)
		all = append(all, p)
	}
	ready(t, nodes)
	return all
}

// Start starts the process, again after a Kill on the same storage and ports.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(p.node)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), processEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.Kill()
		t.Fatalf("a NATS server in a process: %s%v", line, err)
	}
}

// Kill kills the process and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Stop shuts the server down, as an operator does, and waits for its end.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := errors.Join(p.in.Close(), p.cmd.Wait()); err != nil {
		t.Fatal(err)
	}
}

// Leader waits until a stream has a leader and all of its replicas are current, and returns the leader's number.
func Leader(t testing.TB, js jetstream.JetStream, stream string) (number int) {
	t.Helper()
	for {
		s, err := js.Stream(t.Context(), stream)
		if err == nil && settled(s.CachedInfo().Cluster) {
			if _, err = fmt.Sscanf(s.CachedInfo().Cluster.Leader, serverName, &number); err != nil {
				t.Fatal(err)
			}
			return number
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("the stream %s has no leader: %v", stream, err)
		}
	}
}

// settled reports whether there is a leader that has heard from each replica: before, it makes none of them the next one.
func settled(c *jetstream.ClusterInfo) bool {
	return c.Leader != "" && !slices.ContainsFunc(c.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current || r.Offline })
}

// Lead makes a server the leader of a stream.
func Lead(t testing.TB, js jetstream.JetStream, stream string, number int) {
	t.Helper()
	for Leader(t, js, stream) != number {
		body := fmt.Sprintf(`{"placement": {"preferred": %q}}`, fmt.Sprintf(serverName, number))
		_, err := js.Conn().RequestWithContext(t.Context(), "$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(body))
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// Process returns the operating system's process, to be stopped and continued.
func (p *Process) Process() *os.Process { return p.cmd.Process }
