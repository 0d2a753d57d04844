// A small cluster: gateways with real certificates and NATS, nodes that relay to
// real daemons, and daemons that outlive their nodes as the log makes them.

package gateway

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/nats-io/nats-server/v2/server"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/tools"
)

// echoInput is what the tool Echo gets. A text that a test holds is echoed when the test lets it go.
type echoInput struct {
	Text string `json:"text"`
}

// A cluster is what the nodes of a test share.
type cluster struct {
	t      testing.TB
	dir    string // of certificates
	mount  string // what is the workspace's directory inside of each daemon
	nats   *server.Server
	tokens map[string]string // by user

	mu      sync.Mutex
	owners  map[place]string
	dead    map[string]bool
	daemons map[place]string         // sockets
	held    map[string]chan struct{} // what Echo waits for, by its text
	begun   chan string              // texts that Echo holds
}

func newCluster(t testing.TB, users ...string) *cluster {
	t.Helper()
	c := &cluster{
		t: t, dir: t.TempDir(), mount: t.TempDir(), nats: natstest.Start(t), tokens: map[string]string{}, owners: map[place]string{}, dead: map[string]bool{},
		daemons: map[place]string{}, held: map[string]chan struct{}{}, begun: make(chan string, 10),
	}
	text := ""
	for _, user := range users {
		token, line, err := identity.NewToken(user)
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[user], text = token, text+line
	}
	if err := os.WriteFile(filepath.Join(c.dir, "tokens"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) identity(role identity.Role, name string) *identity.Identity {
	c.t.Helper()
	_, err := identity.Init(c.dir, identity.Subject{Role: role, Name: name, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		c.t.Fatal(err)
	}
	id, err := identity.Load(c.dir, role, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c *cluster) members(ping func(context.Context, members.Node) error) members.Config {
	conn, js := natstest.Connect(c.t, c.nats)
	return members.Config{NATS: conn, JetStream: js, Every: 500 * time.Millisecond, Silence: 5 * time.Second, Ping: ping}
}

// node starts a node that relays to daemons, and returns what kills it.
func (c *cluster) node(name string) (kill func()) {
	c.t.Helper()
	var reading sync.WaitGroup
	stop := c.serveNode(name, func(stream grpc.ServerStream) error { return c.relay(stream, name, &reading) })
	kill = func() {
		c.mu.Lock()
		c.dead[name] = true
		c.mu.Unlock()
		stop()
		reading.Wait()
	}
	c.t.Cleanup(kill)
	return kill
}

// serveNode starts a node that serves every RPC with serve, and returns what stops it.
func (c *cluster) serveNode(name string, serve func(grpc.ServerStream) error) (stop func()) {
	c.t.Helper()
	id := c.identity(identity.Node, name)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(id.ServerTLS(identity.Gateway))), grpc.ForceServerCodecV2(relay.NewCodec()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: nodePing / 2}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return serve(stream) }))
	healthpb.RegisterHealthServer(s, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(listener) })
	ctx, cancel := context.WithCancel(c.t.Context())
	wait, err := members.Announce(ctx, c.members(nil), func() members.Node { return members.Node{Name: name, Address: listener.Addr().String()} })
	if err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		wait()
		s.Stop()
		served.Wait()
	})
	c.t.Cleanup(stop)
	return stop
}

// relay serves one RPC of a node.
func (c *cluster) relay(stream grpc.ServerStream, node string, reading *sync.WaitGroup) error {
	method, _ := grpc.MethodFromServerStream(stream)
	from, err := identity.Incoming(stream.Context(), node, method, time.Now())
	if err != nil {
		return err
	}
	at := place{from.Principal, from.Workspace}
	if owner := c.own(at, node); owner != node {
		return identity.NotOwner(owner)
	}
	conn, err := grpc.NewClient("unix:"+c.daemon(at), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(relay.NewCodec()), grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := relay.Accept(stream, node); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	child, err := conn.NewStream(ctx, relay.Descriptor, method)
	if err != nil {
		cancel(nil)
		return err
	}
	return relay.Relay(stream, child, cancel, reading, nil)
}

// own returns the owner of a workspace, which is the node if no other lives.
func (c *cluster) own(at place, node string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := c.owners[at]; owner == "" || c.dead[owner] {
		c.owners[at] = node
	}
	return c.owners[at]
}

func (c *cluster) ownerOf(at place) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[at]
}

// daemon returns the socket of a workspace's daemon, which it starts if need be.
func (c *cluster) daemon(at place) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if socket := c.daemons[at]; socket != "" {
		return socket
	}
	dir, err := os.MkdirTemp("", "gate") // a socket's path must be short
	if err != nil {
		c.t.Error(err)
		return ""
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := access.Listen(socket)
	if err != nil {
		c.t.Error(err)
		return ""
	}
	echo := tools.New(tools.Spec{Name: "Echo", Description: "Returns a text.", ReadOnly: true}, tools.Funcs[echoInput]{
		Effects: func(echoInput) tools.Effects { return tools.Effects{} },
		Run:     c.echo,
	})
	d, err := daemon.New(daemon.Config{Tools: []tools.Tool{echo}, StateDir: filepath.Join(dir, "state"), Root: dir})
	if err != nil {
		c.t.Error(err)
		return ""
	}
	var served sync.WaitGroup
	served.Go(func() { _ = d.Serve(listener) })
	c.t.Cleanup(func() { d.Stop(); served.Wait() })
	c.daemons[at] = socket
	return socket
}

func (c *cluster) echo(ctx context.Context, _ *tools.Env, in echoInput) (tools.Result, error) {
	c.mu.Lock()
	held := c.held[in.Text]
	c.mu.Unlock()
	if held != nil {
		c.begun <- in.Text
		select {
		case <-held:
		case <-ctx.Done():
			return tools.Result{}, context.Cause(ctx)
		}
	}
	return tools.Text(in.Text), nil
}

// hold makes Echo wait with a text until the returned function is called.
func (c *cluster) hold(text string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.held[text] = held
	return sync.OnceFunc(func() { close(held) })
}

// config returns that of a gateway with a view of its own.
func (c *cluster) config(name string) Config {
	c.t.Helper()
	id := c.identity(identity.Gateway, name)
	users, err := identity.OpenUsers(filepath.Join(c.dir, "tokens"), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	tls, err := id.UserTLS("", "", "")
	if err != nil {
		c.t.Fatal(err)
	}
	config := c.members(members.Pinger(id))
	all, err := members.Open(c.t.Context(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(all.Close)
	return Config{Identity: id, Users: users, TLS: tls, Members: all, JetStream: config.JetStream, Version: "test", Patience: time.Minute}
}

// gateway starts a gateway, and returns its address.
func (c *cluster) gateway(config Config) (g *Gateway, address string) {
	c.t.Helper()
	g, err := New(c.t.Context(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	g.mount = c.mount
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = g.Serve(listener) })
	c.t.Cleanup(func() { g.Stop(); served.Wait() })
	return g, listener.Addr().String()
}

// bearer sends a token with each request.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// dial returns how a user reaches the gateways, the next one each time.
func (c *cluster) dial(user string, addresses ...string) toold.Dial {
	next := 0
	return func(context.Context) (*toold.Conn, error) {
		creds, err := credentials.NewClientTLSFromFile(filepath.Join(c.dir, "ca.pem"), "")
		if err != nil {
			return nil, err
		}
		address := addresses[next%len(addresses)]
		next++
		return toold.Connect(address, grpc.WithTransportCredentials(creds), grpc.WithPerRPCCredentials(bearer(c.tokens[user])))
	}
}

// conn returns a connection of a user's.
func (c *cluster) conn(user, address string) *toold.Conn {
	c.t.Helper()
	conn, err := c.dial(user, address)(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	return conn
}

// workspace returns a root, whose directory exists in every daemon.
func (c *cluster) workspace(name, below string) string {
	if err := os.MkdirAll(filepath.Join(c.mount, below), 0o700); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("workspace:%s/%s", name, below)
}
