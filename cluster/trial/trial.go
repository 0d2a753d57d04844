//go:build linux

// Package trial runs a whole cluster on loopback, each part as a process of its
// own: for the demonstration, and for tests that kill, stop and cut off parts of
// it.
package trial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/identity"
)

// Config is what a cluster consists of.
type Config struct {
	Dir      string // for everything; short, since sockets lie below it
	Program  string // toold-cluster
	Toold    string
	Servers  int // of NATS
	Nodes    int
	Gateways int
	Users    []string
	Idle     time.Duration // of a workspace; 0: the default
	Strict   bool          // workspaces have strict effects
	Objects  string        // the address of an S3 bucket for objects; empty: NATS
	// Cuttable puts a proxy between each node and NATS, for Cut.
	Cuttable bool
}

// Cluster is a running cluster. Its parts are named nats-0, node-0, gateway-0 and so on.
type Cluster struct {
	Config
	parts  map[string]*Part
	tokens map[string]string
	urls   []string           // of NATS
	wires  map[string][]*wire // of a node to the NATS servers
}

// A Part is one process of a cluster.
type Part struct {
	Name    string
	Address string // where it listens
	Dir     string // of a node: its data
	args    []string
	program string
	log     string

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil: it is not running
	done chan struct{} // closed when cmd has ended
}

// readyTime is how long the cluster may take to serve, on a loaded machine.
const readyTime = 2 * time.Minute

// Start starts a cluster, and returns when it serves. The caller stops it, also after an error.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	c := &Cluster{Config: config, parts: map[string]*Part{}, tokens: map[string]string{}, wires: map[string][]*wire{}}
	if err := c.prepare(); err != nil {
		return c, err
	}
	ports, err := freePorts(2*c.Servers + c.Nodes + c.Gateways)
	if err != nil {
		return c, err
	}
	if err := c.plan(ports); err != nil {
		return c, err
	}
	for _, kind := range []struct {
		name  string
		n     int
		ready func(context.Context) error
	}{{"nats", c.Servers, c.awaitLog}, {"node", c.Nodes, nil}, {"gateway", c.Gateways, nil}} {
		for i := range kind.n {
			if err := c.Part(kind.name, i).Start(); err != nil {
				return c, err
			}
		}
		if kind.ready != nil {
			if err := kind.ready(ctx); err != nil {
				return c, err
			}
		}
	}
	for i := range c.Gateways {
		if err := c.await(ctx, c.Part("gateway", i)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// prepare makes certificates and tokens.
func (c *Cluster) prepare() error {
	subjects := []identity.Subject{{Role: identity.Admin, Name: "me"}}
	for i := range c.Nodes {
		subjects = append(subjects, identity.Subject{Role: identity.Node, Name: fmt.Sprint("node-", i)})
	}
	for i := range c.Gateways {
		subjects = append(subjects, identity.Subject{Role: identity.Gateway, Name: fmt.Sprint("gateway-", i), Hosts: []string{"127.0.0.1"}})
	}
	if _, err := identity.Init(c.Certs(), subjects...); err != nil {
		return err
	}
	var lines []string
	for _, user := range c.Users {
		token, line, err := identity.NewToken(user)
		if err != nil {
			return err
		}
		c.tokens[user], lines = token, append(lines, strings.TrimSpace(line))
	}
	return os.WriteFile(filepath.Join(c.Dir, "tokens"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// Certs is the directory of certificates; the administrator's is that of "me".
func (c *Cluster) Certs() string { return filepath.Join(c.Dir, "certs") }

// plan describes the parts.
func (c *Cluster) plan(ports []int) error {
	next := func() (address string, port string) {
		address = fmt.Sprintf("127.0.0.1:%d", ports[0])
		port, ports = fmt.Sprint(ports[0]), ports[1:]
		return address, port
	}
	var routes []string
	routePorts := make([]string, c.Servers)
	for i := range c.Servers {
		address, port := next()
		routes, routePorts[i] = append(routes, address), port
	}
	add := func(name string, i int, address, dir string, args ...string) {
		name = fmt.Sprint(name, "-", i)
		c.parts[name] = &Part{Name: name, Address: address, Dir: dir, program: c.Program, args: args, log: filepath.Join(c.Dir, name+".log")}
	}
	for i := range c.Servers {
		address, port := next()
		c.urls = append(c.urls, "nats://"+address)
		dir := filepath.Join(c.Dir, fmt.Sprint("nats", i))
		args := []string{"nats", "--name", fmt.Sprint("nats-", i), "--port", port, "--data", dir}
		if c.Servers > 1 {
			args = append(args, "--route-port", routePorts[i], "--routes", strings.Join(routes, ","))
		}
		add("nats", i, address, dir, args...)
	}
	common := []string{"--certs", c.Certs(), "--nats", strings.Join(c.urls, ","), "--replicas", fmt.Sprint(c.Servers), "--log-format", "console"}
	for i := range c.Nodes {
		address, _ := next()
		dir := filepath.Join(c.Dir, fmt.Sprint("n", i))
		common := common
		if c.Cuttable {
			urls, err := c.wire(fmt.Sprint("node-", i))
			if err != nil {
				return err
			}
			common = append(slices.Clone(common), "--nats", urls, "--nats-fixed")
		}
		add("node", i, address, dir, append(c.nodeArgs(i, address, dir), common...)...)
	}
	for i := range c.Gateways {
		address, _ := next()
		add("gateway", i, address, "", append([]string{
			"gateway", "--name", fmt.Sprint("gateway-", i), "--listen", address, "--tokens", filepath.Join(c.Dir, "tokens"), "--metrics", "unix:" + c.Metrics("gateway", i),
		}, common...)...)
	}
	return nil
}

// nodeArgs are the arguments of a node, beside those that nodes and gateways have in common.
func (c *Cluster) nodeArgs(i int, address, dir string) []string {
	args := []string{"node", "--name", fmt.Sprint("node-", i), "--listen", address, "--data", dir, "--toold", c.Toold, "--metrics", "unix:" + c.Metrics("node", i)}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-root")
	}
	if c.Objects != "" {
		args = append(args, "--objects", c.Objects)
	}
	if c.Strict {
		args = append(args, "--strict-effects")
	}
	if c.Idle > 0 {
		args = append(args, "--idle", c.Idle.String())
	}
	return args
}

// Part returns a part by its kind and number.
func (c *Cluster) Part(kind string, i int) *Part { return c.parts[fmt.Sprint(kind, "-", i)] }

// Metrics returns the socket on which a node or gateway serves its metrics.
func (c *Cluster) Metrics(kind string, i int) string {
	return filepath.Join(c.Dir, fmt.Sprint(kind, "-", i, ".metrics"))
}

// NATS returns the URLs of the NATS servers, separated by commas.
func (c *Cluster) NATS() string { return strings.Join(c.urls, ",") }

// awaitLog waits until NATS makes streams with all replicas.
func (c *Cluster) awaitLog(ctx context.Context) error {
	conn, err := nats.Connect(c.NATS(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	for {
		once, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.CreateStream(once, jetstream.StreamConfig{Name: "trial", Replicas: c.Servers})
		if err == nil {
			err = js.DeleteStream(once, "trial")
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

// await waits until a gateway serves.
func (c *Cluster) await(ctx context.Context, p *Part) error {
	conn, err := grpc.NewClient(p.Address, c.credentials())
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !p.Running() {
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s does not serve: %w\n%s", p.Name, err, text)
		}
	}
}

// credentials are those of the cluster's authority.
func (c *Cluster) credentials() grpc.DialOption {
	pool := x509.NewCertPool()
	if text, err := os.ReadFile(filepath.Join(c.Certs(), "ca.pem")); err == nil {
		pool.AppendCertsFromPEM(text)
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}))
}

// Token returns a user's token.
func (c *Cluster) Token(user string) string { return c.tokens[user] }

// Dial returns a connection as a user to one of the gateways, in turn: a client of which one has gone meets the next.
func (c *Cluster) Dial(user string) toold.Dial {
	var mu sync.Mutex
	next := 0
	return func(context.Context) (*toold.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		address := c.Part("gateway", next%c.Gateways).Address
		next++
		return toold.Connect(address, c.credentials(), grpc.WithPerRPCCredentials(bearer(c.tokens[user])))
	}
}

// bearer is a token as gRPC credentials.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// Stop kills everything that still runs. It may be called twice.
func (c *Cluster) Stop() {
	for _, p := range c.parts {
		p.Continue()
		p.Kill()
	}
	for _, wires := range c.wires {
		for _, w := range wires {
			w.close()
		}
	}
}

// Start starts the part's process, which is not running.
func (p *Part) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd, done := exec.Command(p.program, p.args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not the terminal's Ctrl-C
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.done = cmd, done
	go func() { _ = cmd.Wait(); close(done) }()
	return nil
}

// Running reports whether the process has not ended.
func (p *Part) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the process as kill -9 does, and returns when it has ended.
func (p *Part) Kill() {
	p.signal(syscall.SIGKILL)
	p.Wait()
}

// Terminate asks the process to end.
func (p *Part) Terminate() { p.signal(syscall.SIGTERM) }

// Pause stops the process until Continue.
func (p *Part) Pause() { p.signal(syscall.SIGSTOP) }

// Continue lets the process go on.
func (p *Part) Continue() { p.signal(syscall.SIGCONT) }

// Wait waits until the process has ended.
func (p *Part) Wait() {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (p *Part) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // of one that has ended there is nothing to signal
	}
}

// freePorts returns ports of loopback that were free a moment ago. They are below those that systems choose for connections
// and for listeners that name none, so that nothing of the cluster takes them before its parts do.
func freePorts(n int) (ports []int, err error) {
	for range 100 * n {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // all of them together, so that they differ
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports were found")
}
