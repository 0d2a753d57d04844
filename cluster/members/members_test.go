package members

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/natstest"
)

// soon is a configuration with intervals that no test waits for long.
func soon(t *testing.T) Config {
	conn, js := natstest.Connect(t, natstest.Start(t))
	return Config{NATS: conn, JetStream: js, Every: 5 * time.Millisecond, Silence: 20 * time.Millisecond}
}

func view(t *testing.T, config Config) *Members {
	t.Helper()
	m, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// until waits for what the view is to show.
func until(m *Members, shows func() bool) {
	for {
		changed := m.Changed()
		if shows() {
			return
		}
		<-changed
	}
}

func TestAnnounce(t *testing.T) {
	config := soon(t)
	m := view(t, config)
	var sessions atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	wait, err := Announce(ctx, config, func() Node {
		now := int(sessions.Load())
		return Node{Name: "n.1", Address: "127.0.0.1:1", Version: fmt.Sprint("v", now), Load: Load{Workspaces: 2, Sessions: now}}
	})
	if err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { return len(m.Live()) == 1 })
	if node, ok := m.Node("n.1"); !ok || node.Address != "127.0.0.1:1" || node.Load.Workspaces != 2 || m.Suspect("n.1") {
		t.Errorf("%+v, %v", node, ok)
	}
	sessions.Store(7)
	until(m, func() bool { node, _ := m.Node("n.1"); return node.Load.Sessions == 7 && node.Version == "v7" })
	stop()
	wait()
	until(m, func() bool { return m.Suspect("n.1") }) // without Ping, silence is all that counts
	if live, all := m.Live(), m.All(); len(live) != 0 || len(all) != 1 {
		t.Errorf("%v live of %v", live, all)
	}
	if !m.Suspect("nobody") {
		t.Error("an unknown node is not suspect")
	}
}

// TestSilence: a silent node that answers is not suspect, and one that was is not when it answers or is heard again.
func TestSilence(t *testing.T) {
	config := soon(t)
	dead, asked := atomic.Bool{}, make(chan string)
	config.Ping = func(_ context.Context, node Node) error {
		if dead.Load() {
			return errors.New("no answer")
		}
		select {
		case asked <- node.Name:
		default: // the test does not wait for it
		}
		return nil
	}
	why := make(chan error, 10)
	config.Suspected = func(node Node, err error) { why <- fmt.Errorf("%s: %w", node.Name, err) }
	if err := Register(t.Context(), config, "n1", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	m := view(t, config)
	if node, ok := m.Node("n1"); !ok || node.Address != "127.0.0.1:1" {
		t.Errorf("%+v, %v; want the node of the bucket", node, ok)
	}
	for range 3 {
		if name := <-asked; name != "n1" || m.Suspect("n1") {
			t.Errorf("%s was asked, suspect: %v", name, m.Suspect("n1"))
		}
	}
	dead.Store(true)
	until(m, func() bool { return m.Suspect("n1") })
	if err := <-why; err.Error() != "n1: no answer" {
		t.Errorf("the node is suspect since %v", err)
	}
	dead.Store(false)
	until(m, func() bool { return !m.Suspect("n1") })
	dead.Store(true)
	until(m, func() bool { return m.Suspect("n1") })
	if err := announce(config.NATS, Node{Name: "n1", Address: "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { node, _ := m.Node("n1"); return node.Address == "127.0.0.1:2" })
}

// TestUntilSilent: a node is asked when its silence is long enough, and not at the next of equal intervals.
func TestUntilSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Members{config: Config{Every: 2 * time.Second, Silence: 10 * time.Second}, nodes: map[string]*member{}}
		until := func(want time.Duration) {
			t.Helper()
			if got := m.untilSilent(); got != want {
				t.Errorf("asks after %v, want %v", got, want)
			}
		}
		until(2 * time.Second)
		m.nodes["n1"] = &member{heard: time.Now()}
		m.nodes["n2"] = &member{heard: time.Now().Add(-time.Hour), suspect: true}
		until(2 * time.Second)
		time.Sleep(9 * time.Second)
		until(time.Second)
		m.nodes["n1"].heard = time.Now()
		until(2 * time.Second)
	})
}

// A node is drained when it announces that, not when it is asked to: it may have got a
// workspace since it was last heard.
func TestDrained(t *testing.T) {
	config := soon(t)
	config.Silence = time.Hour
	m := view(t, config)
	say := func(n Node) {
		if err := announce(config.NATS, n); err != nil {
			t.Fatal(err)
		}
	}
	say(Node{Name: "n1", Version: "1"})
	if err := Drain(t.Context(), config, "n1", true); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { node, _ := m.Node("n1"); return node.Draining && node.Version == "1" })
	if m.Drained("n1") {
		t.Error("the node is drained before it has said so")
	}
	say(Node{Name: "n1", Draining: true, Load: Load{Workspaces: 1}})
	until(m, func() bool { node, _ := m.Node("n1"); return node.Load.Workspaces == 1 })
	if m.Drained("n1") {
		t.Error("the node is drained while it has a workspace")
	}
	say(Node{Name: "n1", Draining: true})
	until(m, func() bool { return m.Drained("n1") })
}

func TestBucket(t *testing.T) {
	config := soon(t)
	config.Silence = time.Hour
	m := view(t, config)
	if err := Register(t.Context(), config, "n1", "a:1"); err != nil {
		t.Fatal(err)
	}
	if err := Drain(t.Context(), config, "n1", true); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { return m.DrainWanted("n1") })
	if err := Register(t.Context(), config, "n1", "b:1"); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { node, _ := m.Node("n1"); return node.Address == "b:1" && node.Draining })
	if err := Drain(t.Context(), config, "n1", false); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { return !m.DrainWanted("n1") })
	if err := Forget(t.Context(), config, "n1"); err != nil {
		t.Fatal(err)
	}
	until(m, func() bool { return len(m.All()) == 0 })

	var all sync.WaitGroup
	for n := range 8 { // at the same entry
		all.Go(func() {
			if err := Register(t.Context(), config, "n2", fmt.Sprint(n)); err != nil {
				t.Error(err)
			}
			if err := Drain(t.Context(), config, "n2", true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	until(m, func() bool { node, _ := m.Node("n2"); return node.Draining && node.Address != "" })
}

// choosing returns a view of nodes that were heard right now.
func choosing(nodes ...Node) *Members {
	m := &Members{nodes: map[string]*member{}, changed: make(chan struct{})}
	for _, node := range nodes {
		m.nodes[node.Name] = &member{Node: node, heard: time.Now()}
	}
	return m
}

func TestChoose(t *testing.T) {
	const workspaces = 2000
	nodes := make([]Node, 10)
	for n := range nodes {
		nodes[n] = Node{Name: fmt.Sprintf("n%d", n), Address: "x"}
	}
	before, after := choosing(nodes...), choosing(nodes[1:]...)
	counts := map[string]int{}
	for w := range workspaces {
		name := fmt.Sprint("w", w)
		chosen, ok := before.Choose("p", name, nil)
		if !ok {
			t.Fatal("none was chosen")
		}
		counts[chosen.Name]++
		if without, _ := after.Choose("p", name, nil); chosen.Name != "n0" && without.Name != chosen.Name {
			t.Fatalf("%s moved from %s to %s, and neither has gone", name, chosen.Name, without.Name)
		}
		if other, _ := before.Choose("p", name, map[string]bool{chosen.Name: true}); other.Name == chosen.Name {
			t.Fatal("a node was chosen that was excepted")
		}
	}
	for name, count := range counts {
		if count < workspaces/20 || count > workspaces/5 {
			t.Errorf("%s has %d of %d workspaces", name, count, workspaces)
		}
	}
}

// TestChooseBounds: no node gets more than its share, however often it would be the first.
func TestChooseBounds(t *testing.T) {
	m := choosing(Node{Name: "a", Address: "x"}, Node{Name: "b", Address: "x"}, Node{Name: "c", Address: "x"}, Node{Name: "d", Address: "x", Draining: true}, Node{Name: "e"})
	for w := range 300 {
		chosen, ok := m.Choose("p", fmt.Sprint(w), nil)
		if !ok || chosen.Name == "d" || chosen.Name == "e" {
			t.Fatalf("%v, %v", chosen, ok)
		}
		m.nodes[chosen.Name].Load.Workspaces++
	}
	for _, node := range m.All() {
		if node.Load.Workspaces > 126 {
			t.Errorf("%s has %d of 300 workspaces", node.Name, node.Load.Workspaces)
		}
	}
	if _, ok := choosing().Choose("p", "w", nil); ok {
		t.Error("a node was chosen where there is none")
	}
}

func FuzzHear(f *testing.F) {
	f.Add([]byte(`{"name":"n","address":"a:1","load":{"workspaces":3}}`))
	f.Add([]byte(`{"name":""}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := choosing(Node{Name: "n", Address: "x"})
		m.hear(data)
		if len(m.All()) < 1 || len(m.All()) > 2 {
			t.Errorf("%v", m.All())
		}
	})
}

func TestPing(t *testing.T) {
	dir := t.TempDir()
	subjects := []identity.Subject{{Role: identity.Node, Name: "n1"}, {Role: identity.Gateway, Name: "g"}}
	if _, err := identity.Init(dir, subjects...); err != nil {
		t.Fatal(err)
	}
	node, err := identity.Load(dir, identity.Node, "n1")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := identity.Load(dir, identity.Gateway, "g")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, state := grpc.NewServer(grpc.Creds(credentials.NewTLS(node.ServerTLS(identity.Gateway)))), health.NewServer()
	healthpb.RegisterHealthServer(server, state)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	defer served.Wait()
	defer server.Stop()
	ping, address := Pinger(gateway), listener.Addr().String()
	if err := ping(t.Context(), Node{Name: "n1", Address: address}); err != nil {
		t.Error(err)
	}
	if err := ping(t.Context(), Node{Name: "n2", Address: address}); err == nil {
		t.Error("another node has answered for n2")
	}
	state.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	if err := ping(t.Context(), Node{Name: "n1", Address: address}); !errors.Is(err, ErrNotServing) {
		t.Error(err)
	}
	server.Stop()
	if err := ping(t.Context(), Node{Name: "n1", Address: address}); err == nil {
		t.Error("a node that is gone has answered")
	}
}
