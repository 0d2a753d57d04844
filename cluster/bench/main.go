//go:build linux

// Command bench measures what a cluster adds to a call, and how long a session
// is without an owner: against a local daemon and the log itself, in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/natslog"
	"github.com/toold/toold/cluster/trial"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func main() {
	program := flag.String("program", "../.bin/toold-cluster", "the toold-cluster program")
	daemon := flag.String("toold", "../.bin/toold", "the toold program")
	rounds := flag.Int("rounds", 400, "how often everything is measured")
	row := flag.Int("row", 1, "how many calls of a kind are measured in a row")
	losses := flag.Int("losses", 3, "how many nodes are drained, and how many killed")
	flag.Parse()
	if err := bench(context.Background(), *program, *daemon, *rounds, *row, *losses); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, program, daemon string, rounds, row, losses int) error {
	program, err1 := filepath.Abs(program)
	daemon, err2 := filepath.Abs(daemon)
	dir, err3 := os.MkdirTemp("", "tb")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cluster, err := trial.Start(ctx, trial.Config{Dir: dir, Program: program, Toold: daemon, Servers: 3, Nodes: 3, Gateways: 1, Users: []string{"alice"}})
	defer cluster.Stop()
	if err != nil {
		return err
	}
	local, stop, err := startLocal(ctx, dir, daemon)
	if err != nil {
		return err
	}
	defer stop()
	remote, err := join(ctx, cluster.Dial("alice"), "workspace:bench", "/workspace")
	if err != nil {
		return err
	}
	defer remote.Close()
	appends, closeLog, err := newAppender(cluster.NATS())
	if err != nil {
		return err
	}
	defer closeLog()
	if err := compare(ctx, local, remote, appends, rounds, row); err != nil {
		return err
	}
	if err := count(ctx, remote, appends); err != nil {
		return err
	}
	return lose(ctx, cluster, remote, losses)
}

// calls are those that are measured: one that only looks, and one that changes something.
var calls = map[string][2]string{
	"read":  {"Read", `{"file_path":"ROOT/file"}`},
	"write": {"Write", `{"file_path":"ROOT/file","content":"text\n"}`},
}

// A caller runs calls in a session whose workspace is at root.
type caller struct {
	*toold.Agent
	root string
	n    int
}

func join(ctx context.Context, dial toold.Dial, root, seen string) (*caller, error) {
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	agent, err := toold.Join(ctx, dial, &tooldv1.Attach{SessionId: "bench", Roots: []string{root}, Options: options}, toold.Handlers{})
	return &caller{Agent: agent, root: seen}, err
}

// call runs one call, and returns how long it took.
func (c *caller) call(ctx context.Context, name, input string) (time.Duration, error) {
	c.n++
	begun := time.Now()
	use := &tooldv1.ToolUse{Id: fmt.Sprint("c", c.n), Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: strings.ReplaceAll(input, "ROOT", c.root)}}
	turn, err := c.Start(use)
	if err != nil {
		return 0, err
	}
	result, err := turn.Result(ctx)
	if err == nil && result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
		err = fmt.Errorf("%s: %v", name, result)
	}
	return time.Since(begun), err
}

func startLocal(ctx context.Context, dir, daemon string) (*caller, func(), error) {
	root, socket := filepath.Join(dir, "local"), filepath.Join(dir, "l.sock")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, daemon, "serve", "--socket", socket, "--root", root)
	cmd.Env = append(os.Environ(), "HOME="+root)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	c, err := join(ctx, func(context.Context) (*toold.Conn, error) {
		return toold.Connect("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}, root, root)
	if err != nil {
		end()
		return nil, nil, err
	}
	return c, func() { c.Close(); end() }, nil
}

// An appender appends segments of the size of a call's to a log of its own.
type appender struct {
	js   jetstream.JetStream
	log  log.Log
	last log.Pos
}

func newAppender(urls string) (*appender, func(), error) {
	conn, err := nats.Connect(urls)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, nil, err
	}
	return &appender{js: js, log: natslog.New(js, natslog.Config{Replicas: 3, Storage: jetstream.FileStorage, Shards: 1, Prefix: "bench"})}, conn.Close, nil
}

func (a *appender) append(ctx context.Context) (took time.Duration, err error) {
	begun := time.Now()
	a.last, err = a.log.Append(ctx, log.Workspace{Principal: "bench", Name: "bench"}, a.last, make([]byte, 800))
	return time.Since(begun), err
}

// total returns how many segments all workspaces' logs have ever had.
func (a *appender) total(ctx context.Context) (n uint64, err error) {
	streams := a.js.ListStreams(ctx)
	for info := range streams.Info() {
		if strings.HasPrefix(info.Config.Name, "toold-w-") {
			n += info.State.LastSeq
		}
	}
	return n, streams.Err()
}

// count prints how many appends a call makes, without the time of any.
func count(ctx context.Context, c *caller, appends *appender) error {
	const n = 200
	for name, call := range calls {
		before, err := appends.total(ctx)
		if err != nil {
			return err
		}
		for range n {
			if _, err := c.call(ctx, call[0], call[1]); err != nil {
				return err
			}
		}
		after, err := appends.total(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("a %s makes %.2f appends\n", name, float64(after-before)/n)
	}
	return nil
}

// compare takes turns, so that what else the machine does is the same for all. In a row of many calls each would find what it
// needs in the processor's caches, as no call of a model does, which comes seconds after the one before.
func compare(ctx context.Context, local, remote *caller, appends *appender, rounds, row int) error {
	measured := map[string]func() (time.Duration, error){"append": func() (time.Duration, error) { return appends.append(ctx) }}
	for where, session := range map[string]*caller{"local ": local, "cluster ": remote} {
		if _, err := session.call(ctx, "Write", `{"file_path":"ROOT/file","content":"text\n"}`); err != nil {
			return err
		}
		for name, c := range calls {
			measured[where+name] = func() (time.Duration, error) { return session.call(ctx, c[0], c[1]) }
		}
	}
	took := map[string][]time.Duration{}
	for range rounds {
		for name, measure := range measured { // in another order each time
			for range row {
				d, err := measure()
				if err != nil {
					return err
				}
				took[name] = append(took[name], d)
			}
		}
	}
	for _, name := range []string{"append", "local read", "cluster read", "local write", "cluster write"} {
		slices.Sort(took[name])
		fmt.Printf("%-14s p50 %8v  p99 %8v\n", name, at(took[name], 50), at(took[name], 99))
	}
	for name := range calls {
		more := at(took["cluster "+name], 50) - at(took["local "+name], 50)
		fmt.Printf("a %s through gateway and node: a local one + %.2f x an append\n", name, float64(more)/float64(at(took["append"], 50)))
	}
	return nil
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(time.Microsecond)
}

// lose drains and kills the owner of the workspace, and measures until the next call has its result.
func lose(ctx context.Context, cluster *trial.Cluster, c *caller, n int) error {
	for _, way := range []struct {
		name string
		do   func(*trial.Part)
	}{{"drained", (*trial.Part).Terminate}, {"killed", (*trial.Part).Kill}} {
		var took []time.Duration
		for range n {
			owner := owner(cluster)
			if owner == nil {
				return errors.New("no node has the workspace")
			}
			begun := time.Now()
			way.do(owner)
			if way.name == "drained" {
				owner.Wait()
			}
			if _, err := c.call(ctx, "Write", `{"file_path":"ROOT/file2","content":"text\n"}`); err != nil {
				return err
			}
			took = append(took, time.Since(begun).Round(time.Millisecond))
			if err := owner.Start(); err != nil {
				return err
			}
			<-time.After(5 * time.Second) // until it has announced itself
		}
		fmt.Printf("the owner is %s: %v until the next call has its result\n", way.name, took)
	}
	return nil
}

func owner(cluster *trial.Cluster) *trial.Part {
	for i := range cluster.Nodes {
		node := cluster.Part("node", i)
		sockets, _ := filepath.Glob(filepath.Join(node.Dir, "*/own/run/toold.sock"))
		for _, socket := range sockets { // a killed node leaves one
			if conn, err := net.Dial("unix", socket); err == nil {
				_ = conn.Close()
				return node
			}
		}
	}
	return nil
}
