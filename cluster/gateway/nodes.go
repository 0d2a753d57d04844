// The connections to nodes, one for each, and what is remembered of where
// workspaces are.

package gateway

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/relay"
)

// Limits of the connection to a node. Its streams are many, and each has its own
// window, so that one client that does not read stops only its own stream.
const (
	nodeConnWindow = 16 << 20 // bytes
	nodePing       = 10 * time.Second
	nodePingWait   = 5 * time.Second
	nodeDial       = 2 * time.Second // for a connection and its handshake
)

// maxHints bounds the workspaces that are remembered, ours.
const maxHints = 10_000

// nodes is safe for concurrent use.
type nodes struct {
	identity *identity.Identity
	members  *members.Members
	hints    *cache[place, string] // where a workspace was last

	mu    sync.Mutex // guards conns
	conns map[string]*nodeConn
}

type place struct{ principal, workspace string }

type nodeConn struct {
	*grpc.ClientConn
	address string
}

func newNodes(id *identity.Identity, all *members.Members) *nodes {
	return &nodes{identity: id, members: all, hints: newCache[place, string](maxHints), conns: map[string]*nodeConn{}}
}

// connect returns the connection to a node. It is established when it is used.
func (n *nodes) connect(node members.Node) (*nodeConn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if conn := n.conns[node.Name]; conn != nil && conn.address == node.Address {
		return conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+node.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(n.identity.ClientTLS(identity.Node, node.Name))),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(relay.NewCodec()), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(nodeConnWindow),
		grpc.WithDisableRetry(), // a search decides what is sent again, and where
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 2, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: nodeDial,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: nodePing, Timeout: nodePingWait}),
	)
	if err != nil {
		return nil, err
	}
	n.drop(node.Name)
	n.conns[node.Name] = &nodeConn{conn, node.Address}
	return n.conns[node.Name], nil
}

// drop closes the connection to a node, if there is one, which ends its streams.
// The caller holds mu.
func (n *nodes) drop(name string) {
	if conn := n.conns[name]; conn != nil {
		_ = conn.Close()
		delete(n.conns, name)
	}
}

// watch closes the connections to nodes that are suspect or have moved, until ctx
// ends. Their clients attach again, and so come to the next owner.
func (n *nodes) watch(ctx context.Context) {
	for {
		changed := n.members.Changed()
		n.mu.Lock()
		for name, conn := range n.conns {
			if node, _ := n.members.Node(name); n.members.Suspect(name) || node.Address != conn.address {
				n.drop(name)
			}
		}
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (n *nodes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.conns {
		n.drop(name)
	}
}

// hint returns the node that has served the workspace last; empty: none is known.
func (n *nodes) hint(c call) string {
	node, _ := n.hints.get(place{c.principal, c.workspace})
	return node
}

func (n *nodes) remember(c call, node string) { n.hints.put(place{c.principal, c.workspace}, node) }
