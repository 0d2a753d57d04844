//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/trial"
)

// faults plays one fault after another, and heals each before the next: of three NATS servers two always live.
type faults struct {
	cluster *trial.Cluster
	r       *rand.Rand
	begun   time.Time
	count   int
	kinds   map[string]int
}

// A fault breaks something, and returns how it is healed.
type fault struct {
	name string
	play func(f *faults) (heal func() error, last time.Duration)
}

const pause = 20 * time.Second // of a process that is stopped: longer than others wait for it

var table = []fault{
	{"a node is killed", func(f *faults) (func() error, time.Duration) { return f.kill("node", f.cluster.Nodes, nil), f.upTo(15) }},
	{"a node is stopped for 20 s", func(f *faults) (func() error, time.Duration) { return f.stop("node", f.cluster.Nodes), pause }},
	{"a node is cut off from NATS", (*faults).cut},
	{"a node is ended", (*faults).end},
	{"a gateway is killed", func(f *faults) (func() error, time.Duration) {
		return f.kill("gateway", f.cluster.Gateways, nil), f.upTo(3)
	}},
	{"a NATS server is killed", func(f *faults) (func() error, time.Duration) {
		return f.kill("nats", f.cluster.Servers, nil), f.upTo(5)
	}},
	{"a NATS server is stopped", func(f *faults) (func() error, time.Duration) { return f.stop("nats", f.cluster.Servers), f.upTo(15) }},
	{"a NATS server's store is wiped", func(f *faults) (func() error, time.Duration) {
		return f.kill("nats", f.cluster.Servers, os.RemoveAll), time.Second
	}},
	{"a NATS server's store is truncated", func(f *faults) (func() error, time.Duration) {
		return f.kill("nats", f.cluster.Servers, truncate), time.Second
	}},
	{"leaders of streams step down", (*faults).stepDown},
}

// play plays faults until ctx ends.
func (f *faults) play(ctx context.Context) {
	f.kinds = map[string]int{}
	for order := f.r.Perm(len(table)); ; order = f.r.Perm(len(table)) {
		for _, i := range order {
			if !sleep(ctx, f.upTo(5)) {
				return
			}
			heal, last := table[i].play(f)
			f.count++
			f.kinds[table[i].name]++
			fmt.Printf("%6.1f s  %s, for %.1f s\n", time.Since(f.begun).Seconds(), table[i].name, last.Seconds())
			sleep(ctx, last)
			if err := heal(); err != nil {
				fmt.Println("this fault could not be healed:", err)
			}
			if !f.settled(ctx) {
				return
			}
		}
	}
}

// settled waits until the streams have all their replicas again: two faults at once may take a majority away, which is
// not promised to be survived without a wait.
func (f *faults) settled(ctx context.Context) bool {
	for ctx.Err() == nil {
		if f.replicated(ctx) {
			return true
		}
		sleep(ctx, 200*time.Millisecond)
	}
	return false
}

func (f *faults) replicated(ctx context.Context) bool {
	once, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return f.streams(once, func(_ jetstream.JetStream, info *jetstream.StreamInfo) bool {
		if info.Cluster == nil || info.Cluster.Leader == "" {
			return false
		}
		for _, peer := range info.Cluster.Replicas {
			if !peer.Current || peer.Offline {
				return false
			}
		}
		return true
	}) == nil
}

// streams calls each for every stream, until it returns false, which is an error.
func (f *faults) streams(ctx context.Context, each func(jetstream.JetStream, *jetstream.StreamInfo) bool) error {
	conn, err := nats.Connect(f.cluster.NATS(), nats.Timeout(2*time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		if !each(js, info) {
			return fmt.Errorf("the stream %s is not whole", info.Config.Name)
		}
	}
	return list.Err()
}

func (f *faults) upTo(seconds float64) time.Duration {
	return time.Duration(f.r.Float64() * seconds * float64(time.Second))
}

func (f *faults) pick(kind string, n int) *trial.Part { return f.cluster.Part(kind, f.r.IntN(n)) }

// kill kills a part, and does something to its directory before it is started again.
func (f *faults) kill(kind string, n int, damage func(dir string) error) func() error {
	p := f.pick(kind, n)
	p.Kill()
	return func() error {
		if damage != nil {
			if err := damage(p.Dir); err != nil {
				return err
			}
		}
		return p.Start()
	}
}

func (f *faults) stop(kind string, n int) func() error {
	p := f.pick(kind, n)
	p.Pause()
	return func() error { p.Continue(); return nil }
}

func (f *faults) cut() (func() error, time.Duration) {
	name := f.pick("node", f.cluster.Nodes).Name
	f.cluster.Cut(name)
	return func() error { f.cluster.Join(name); return nil }, f.upTo(25)
}

// end ends a node as its operator would, which moves its workspaces.
func (f *faults) end() (func() error, time.Duration) {
	p := f.pick("node", f.cluster.Nodes)
	p.Terminate()
	return func() error { p.Kill(); return p.Start() }, f.upTo(10)
}

// truncate cuts off the end of the newest block of each stream of a server.
func truncate(dir string) error {
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil {
		return err
	}
	for _, block := range blocks {
		info, err := os.Stat(block)
		if err != nil {
			return err
		}
		if err := os.Truncate(block, info.Size()*9/10); err != nil {
			return err
		}
	}
	return nil
}

func (f *faults) stepDown() (func() error, time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = f.streams(ctx, func(js jetstream.JetStream, info *jetstream.StreamInfo) bool {
		_, err := js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+info.Config.Name, nil)
		return err == nil
	})
	return func() error { return nil }, 0
}

// heal starts everything that does not run.
func (f *faults) heal() error {
	for kind, n := range map[string]int{"nats": f.cluster.Servers, "node": f.cluster.Nodes, "gateway": f.cluster.Gateways} {
		for i := range n {
			p := f.cluster.Part(kind, i)
			p.Continue()
			f.cluster.Join(p.Name)
			if !p.Running() {
				if err := p.Start(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sleep reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
