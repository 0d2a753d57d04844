package node_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A cluster is some nodes with one log, and a gateway's certificate.
type cluster struct {
	t       *testing.T
	certs   string
	gateway *identity.Identity
	log     log.Log
	objects objects.Store

	snapshots time.Duration // 0: the default

	mu   sync.Mutex
	dead map[string]bool // as the nodes see it
}

func newCluster(t *testing.T, nodes ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, certs: t.TempDir(), log: &log.Memory{}, objects: objects.Dir(t.TempDir()), dead: map[string]bool{}, snapshots: 300 * time.Millisecond}
	subjects := []identity.Subject{{Role: identity.Gateway, Name: "g"}}
	for _, name := range nodes {
		subjects = append(subjects, identity.Subject{Role: identity.Node, Name: name})
	}
	if _, err := identity.Init(c.certs, subjects...); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.gateway, err = identity.Load(c.certs, identity.Gateway, "g"); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) alive(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead[node]
}

func (c *cluster) dies(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead[node] = true
}

// shortDir returns a temporary directory below which sockets can be.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A machine is a node that serves.
type machine struct {
	*node.Node
	c       *cluster
	conn    *grpc.ClientConn
	creates metadata.MD // what new workspaces are created with
}

func (c *cluster) start(name string, change ...func(*node.Config)) *machine {
	c.t.Helper()
	config := node.Config{
		Name: name, Dir: shortDir(c.t), Program: program, Hide: []string{c.certs}, Log: c.log, Objects: c.objects, Alive: c.alive, Drain: 5 * time.Second,
		Logger: zaptest.NewLogger(c.t, zaptest.Level(zap.InfoLevel)), Snapshots: c.snapshots,
	}
	for _, f := range change {
		f(&config)
	}
	n, err := node.Open(config)
	if err != nil {
		c.t.Fatal(err)
	}
	id, err := identity.Load(c.certs, identity.Node, name)
	if err != nil {
		c.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	server := n.Server(id)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	m := &machine{Node: n, c: c}
	m.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(c.gateway.ClientTLS(identity.Node, name))),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(m.sign(ctx, method), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(m.sign(ctx, method), desc, cc, method, opts...)
		}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = m.conn.Close()
		n.Kill()
		server.Stop()
		serving.Wait()
		n.Wait()
	})
	return m
}

// sign adds what a gateway does: all calls are for the workspace "w" of the principal "alice".
func (m *machine) sign(ctx context.Context, method string) context.Context {
	md, err := m.c.gateway.Outgoing("alice", "w", m.Name, method, time.Now())
	if err != nil {
		m.c.t.Error(err)
	}
	return metadata.NewOutgoingContext(ctx, metadata.Join(md, m.creates))
}

// A talk is an attached stream.
type talk struct {
	m        *machine
	t        *testing.T
	stream   grpc.BidiStreamingClient[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]
	attached *tooldv1.Attached
	last     uint64 // the newest record
}

func (m *machine) attach(after uint64, change ...func(*tooldv1.Options)) *talk {
	m.c.t.Helper()
	return m.attachTo("s", after, change...)
}

func (m *machine) attachTo(session string, after uint64, change ...func(*tooldv1.Options)) *talk {
	m.c.t.Helper()
	stream, err := tooldv1.NewToolServiceClient(m.conn).Execute(m.c.t.Context())
	if err != nil {
		m.c.t.Fatal(err)
	}
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	for _, f := range change {
		f(options)
	}
	k := &talk{t: m.c.t, m: m, stream: stream}
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: session, Roots: []string{container.Workspace}, AfterSeq: &after, Options: options,
	}}})
	k.attached = k.until(func(r *tooldv1.ExecuteResponse) bool { return r.GetAttached() != nil }).GetAttached()
	return k
}

func (k *talk) say(r *tooldv1.ExecuteRequest) {
	k.t.Helper()
	if err := k.stream.Send(r); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) use(id, name, input string) {
	k.t.Helper()
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{Id: id, Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input}}}})
}

// until receives until an event is what is waited for.
func (k *talk) until(is func(*tooldv1.ExecuteResponse) bool) *tooldv1.ExecuteResponse {
	k.t.Helper()
	for {
		r, err := k.stream.Recv()
		if err != nil {
			k.t.Fatal(err)
		}
		k.last = max(k.last, r.GetSeq())
		if is(r) {
			return r
		}
	}
}

func (k *talk) started(id string) {
	k.t.Helper()
	k.until(func(r *tooldv1.ExecuteResponse) bool { return r.GetStarted().GetToolUseId() == id })
}

// result waits for a call's result, as outcome and text.
func (k *talk) result(id string) string {
	k.t.Helper()
	r := k.until(func(r *tooldv1.ExecuteResponse) bool { return r.GetToolResult().GetToolUseId() == id }).GetToolResult()
	var text []string
	for _, block := range r.GetContent() {
		text = append(text, block.GetText())
	}
	return strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_") + " " + strings.TrimSpace(strings.Join(text, "\n"))
}

func (k *talk) bash(id, command string) {
	k.t.Helper()
	k.use(id, "Bash", fmt.Sprintf(`{"command":%q}`, command))
}

// end waits for the end of the stream.
func (k *talk) end() error {
	for {
		if _, err := k.stream.Recv(); err != nil {
			return err
		}
	}
}

func wantStart(t *testing.T, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
}
