// What a gateway costs: memory for attached and detached sessions, measured in a
// process of its own, and the time that it adds to a call.

package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/relay"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// aloneEnv makes the test binary a gateway; its value is an alone as JSON.
const aloneEnv = "TOOLD_TEST_GATEWAY"

// alone is how a gateway in a process of its own is started.
type alone struct{ Dir, NATS string }

// serveAlone is a gateway that prints its address, and then for each line that it
// reads how much memory it uses.
func serveAlone(text string) error {
	var from alone
	if err := json.Unmarshal([]byte(text), &from); err != nil {
		return err
	}
	conn, err := nats.Connect(from.NATS)
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	id, err := identity.Load(from.Dir, identity.Gateway, "g")
	if err != nil {
		return err
	}
	users, err := identity.OpenUsers(filepath.Join(from.Dir, "tokens"), nil)
	if err != nil {
		return err
	}
	tls, err := id.UserTLS("", "", "")
	if err != nil {
		return err
	}
	ctx := context.Background()
	all, err := members.Open(ctx, members.Config{NATS: conn, JetStream: js})
	if err != nil {
		return err
	}
	g, err := New(ctx, Config{Identity: id, Users: users, TLS: tls, Members: all, JetStream: js})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(memoryInUse())
		}
		g.Stop()
	}()
	return g.Serve(listener)
}

// memoryInUse returns the bytes of live objects on the heap, and of stacks.
func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools held is gone after the second
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc + now.StackInuse
}

// idleNode is a node whose daemons only confirm that a session is attached.
func (c *cluster) idleNode() {
	c.serveNode("n1", func(stream grpc.ServerStream) error {
		first := &tooldv1.ExecuteRequest{}
		if err := errors.Join(relay.Accept(stream, "n1"), stream.RecvMsg(first)); err != nil {
			return err
		}
		attached := &tooldv1.Attached{SessionId: first.GetAttach().GetSessionId(), Roots: first.GetAttach().GetRoots()}
		if err := stream.SendMsg(&tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_Attached{Attached: attached}}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	})
}

// startAlone starts a gateway in a process of its own. memory asks it.
func (c *cluster) startAlone() (address string, memory func() uint64) {
	c.identity(identity.Gateway, "g")
	text, err := json.Marshal(alone{c.dir, c.nats.ClientURL()})
	if err != nil {
		c.t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), aloneEnv+"="+string(text))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { in.Close(); _ = command.Wait() })
	lines := bufio.NewReader(out)
	line := func() string {
		text, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	return line(), func() uint64 {
		fmt.Fprintln(in)
		n, err := strconv.ParseUint(line(), 10, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		return n
	}
}

// BenchmarkMemory reports the bytes of heap and stacks of a gateway for each attached session, and for each after all have
// detached. Clients have a connection for each session, or one for 50 of them.
func BenchmarkMemory(b *testing.B) {
	for name, each := range map[string]int{"one-connection-each": 1, "50-on-a-connection": 50} {
		b.Run(name, func(b *testing.B) {
			const sessions = 1000
			c := newCluster(b, "anna")
			c.idleNode()
			address, memory := c.startAlone()
			for _, conn := range attachAll(b, c, address, sessions, each) { // fills what is remembered, which is bounded
				conn.Close()
			}
			idle := memory()
			for again := memory(); again < idle; again = memory() {
				idle = again
			}
			conns := attachAll(b, c, address, sessions, each)
			attached := memory()
			for _, conn := range conns {
				conn.Close()
			}
			left := float64(memory()) - float64(idle)
			for tries := 0; left > sessions*100 && tries < 50; tries++ { // the gateway notices each on its own
				left = float64(memory()) - float64(idle)
			}
			b.ReportMetric(left/sessions, "B/detached")
			b.ReportMetric((float64(attached)-float64(idle))/sessions, "B/attached")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func attachAll(b *testing.B, c *cluster, address string, sessions, each int) (conns []*toold.Conn) {
	dial := c.dial("anna", address)
	for n := range sessions {
		if n%each == 0 {
			conn, err := dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			conns = append(conns, conn)
		}
		stream, err := conns[len(conns)-1].Tools.Execute(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		attach := &tooldv1.Attach{SessionId: fmt.Sprint("s", n), Roots: []string{fmt.Sprintf("workspace:w%d", n)}}
		if err := stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}}); err != nil {
			b.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			b.Fatal(err)
		}
	}
	return conns
}

// BenchmarkCall compares a call on a stream through a gateway and a node with one to the daemon itself. The two alternate.
func BenchmarkCall(b *testing.B) {
	c := newCluster(b, "anna")
	c.node("n1")
	_, address := c.gateway(c.config("g"))
	open := func(dial toold.Dial, roots ...string) *toold.Session {
		s, err := toold.Open(b.Context(), dial, &tooldv1.Attach{SessionId: "s", Roots: roots, AfterSeq: proto.Uint64(0)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Close)
		return s
	}
	through := open(c.dial("anna", address), c.workspace("w", ""))
	socket := c.daemon(place{"token:anna", "direct"})
	direct := open(func(context.Context) (*toold.Conn, error) {
		return toold.Connect("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}, c.mount)
	var times [2]time.Duration
	n := 0
	for b.Loop() {
		n++
		for which, s := range []*toold.Session{direct, through} {
			began := time.Now()
			if err := echoOnce(s, fmt.Sprint("c", n)); err != nil {
				b.Fatal(err)
			}
			times[which] += time.Since(began)
		}
	}
	b.ReportMetric(float64(times[0].Microseconds())/float64(n), "µs/direct")
	b.ReportMetric(float64(times[1].Microseconds())/float64(n), "µs/through")
	b.ReportMetric(float64(times[1])/float64(times[0]), "ratio")
}

// echoOnce makes one call in a turn of its own.
func echoOnce(s *toold.Session, id string) error {
	use := &tooldv1.ToolUse{Id: id, Name: "Echo", TurnId: id, Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"text":"x"}`}}
	for _, m := range []*tooldv1.ExecuteRequest{
		{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: use}}, {Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: id}}},
	} {
		if err := s.Send(m); err != nil {
			return err
		}
	}
	for event := range s.Events() {
		if event.Err != nil || event.GetTurnEnded() != nil {
			return event.Err
		}
	}
	return io.EOF
}
