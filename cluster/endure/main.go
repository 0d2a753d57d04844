//go:build linux

// Command endure runs a cluster on loopback under faults, and holds what its
// clients see against what is promised: at most one effect and exactly one
// result for each call, and each record once.
//
// A ledger outside the cluster counts effects: each call is a command that
// reports its id to the ledger and waits for the answer. With -strict no two calls of a session may overlap, as
// the ledger sees them, since a call runs for as long as its connection is open.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/toold/toold/cluster/trial"
)

func main() {
	length := flag.Duration("for", 10*time.Minute, "how long")
	seed := flag.Uint64("seed", rand.Uint64(), "seed of the faults")
	clients := flag.Int("clients", 6, "how many sessions")
	strict := flag.Bool("strict", false, "give workspaces strict effects, and count calls of a session that overlap")
	overlap := flag.Bool("overlap", false, "count such calls without strict effects: there are some")
	keep := flag.Bool("keep", false, "keep the directory with logs")
	flag.Parse()
	if err := endure(*length, *seed, *clients, *strict, *overlap, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "endure:", err)
		os.Exit(1)
	}
}

func endure(length time.Duration, seed uint64, clients int, strict, overlap, keep bool) error {
	dir, err := os.MkdirTemp("", "endure")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("logs are in", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	programs, err := build(dir)
	if err != nil {
		return err
	}
	ledger, err := openLedger()
	if err != nil {
		return err
	}
	defer ledger.close()
	ctx := context.Background()
	users := []string{"alice", "bob"}
	cluster, err := trial.Start(ctx, trial.Config{
		Dir: dir, Program: programs["toold-cluster"], Toold: programs["toold"], Servers: 3, Nodes: 3, Gateways: 2, Users: users, Cuttable: true, Strict: strict,
	})
	defer cluster.Stop()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d, %v, %d sessions\n", seed, length, clients)
	running, stop := context.WithTimeout(ctx, length)
	defer stop()
	var working sync.WaitGroup
	all, begun := make([]*client, clients), time.Now()
	for i := range all {
		// two sessions share a workspace
		all[i] = &client{name: fmt.Sprint("s", i), workspace: fmt.Sprint("w", i/2), begun: begun, ledger: ledger, long: strict || overlap, dial: cluster.Dial(users[i/2%len(users)]), result: map[string]string{}, started: map[string]bool{}}
		working.Go(func() { all[i].work(running) })
	}
	f := faults{cluster: cluster, r: rand.New(rand.NewPCG(seed, 1)), begun: begun}
	f.play(running)
	working.Wait()
	if err := f.heal(); err != nil {
		return err
	}
	return verdict(ctx, all, ledger, &f, strict)
}

// mostShown is how many broken promises of a session are printed.
const mostShown = 10

// verdict holds everything against the promises.
func verdict(ctx context.Context, all []*client, ledger *ledger, f *faults, strict bool) error {
	var calls, wrong int
	outcomes := map[string]int{}
	for _, c := range all {
		c.check(ctx)
		for i, text := range c.wrong {
			wrong++
			if i < mostShown {
				fmt.Println("WRONG:", text)
			}
		}
		calls += len(c.result)
		for _, outcome := range c.result {
			outcomes[outcome]++
		}
	}
	for id, n := range ledger.twice() {
		wrong++
		fmt.Printf("WRONG: the call %s has had %d effects\n", id, n)
	}
	overlaps := ledger.overlapping()
	for _, text := range overlaps[:min(len(overlaps), mostShown)] {
		fmt.Println("overlap:", text)
	}
	fmt.Printf("%d calls began while an earlier call of their session was running\n", len(overlaps))
	if strict {
		wrong += len(overlaps)
	}
	fmt.Printf("%d faults: %v\n%d calls: %v; %d effects\n", f.count, f.kinds, calls, outcomes, ledger.total())
	if wrong > 0 {
		return fmt.Errorf("%d promises were broken", wrong)
	}
	if calls == 0 || f.count == 0 {
		return fmt.Errorf("nothing was tried")
	}
	return nil
}

// build builds the programs as they are.
func build(dir string) (map[string]string, error) {
	built := map[string]string{}
	for name, where := range map[string]string{"toold": "..", "toold-cluster": "."} {
		built[name] = filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-o", built[name], "./cmd/"+name)
		cmd.Dir, cmd.Stderr = where, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s (run this in the folder cluster): %w", name, err)
		}
	}
	return built, nil
}
