// What a call costs as what is there grows: calls in a session, sessions, rules, files of the root, records of the journal.
// The cost is that of a no-op call, one in flight, less what the same messages cost the bare server in the same round.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
)

// A growth is one thing that grows, by steps.
type growth struct {
	name  string
	steps []int
	// begin starts a daemon with n of it below dir, and returns the talk whose calls are measured. what it returns is
	// ended when the context is.
	begin func(ctx context.Context, g *grower, n int) (*wire.Talk, error)
}

// A grower is one daemon that grows.
type grower struct {
	toold, dir string
	daemon     *wire.Server
}

var growths = []growth{
	{"calls in the session", []int{10, 100, 1_000, 10_000}, func(ctx context.Context, g *grower, n int) (*wire.Talk, error) {
		t, err := g.attach(ctx, "one")
		if err == nil {
			_, _, err = t.Calls(n, 16, "TodoWrite", `{"todos":[]}`)
		}
		return t, err
	}},
	{"sessions, each with a stream", []int{1, 16, 64, 256}, func(ctx context.Context, g *grower, n int) (*wire.Talk, error) {
		t, err := g.attach(ctx, "one")
		for other := 1; other < n && err == nil; other++ {
			_, err = g.attach(ctx, "other"+strconv.Itoa(other))
		}
		return t, err
	}},
	{"rules of the workspace's user", []int{0, 10, 100, 1_000}, func(ctx context.Context, g *grower, n int) (*wire.Talk, error) {
		rules := make([]string, n)
		for i := range rules {
			rules[i] = fmt.Sprintf(`"Bash(program%d *)"`, i)
		}
		settings := fmt.Sprintf(`{"permissions":{"allow":[%s]}}`, strings.Join(rules, ","))
		if err := os.WriteFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "toold", "settings.json"), []byte(settings), 0o600); err != nil {
			return nil, err
		}
		return g.attach(ctx, "one")
	}},
	{"files in the root", []int{10, 1_000, 10_000, 100_000}, func(ctx context.Context, g *grower, n int) (*wire.Talk, error) {
		for i := range n {
			folder := filepath.Join(g.dir, "root", strconv.Itoa(i/100))
			if i%100 == 0 {
				if err := os.MkdirAll(folder, 0o700); err != nil {
					return nil, err
				}
			}
			if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600); err != nil {
				return nil, err
			}
		}
		return g.attach(ctx, "one")
	}},
	{"records in the journal, of other sessions", []int{1_000, 10_000, 100_000, 1_000_000}, func(ctx context.Context, g *grower, n int) (*wire.Talk, error) {
		const perSession = 30_000 // records; a call has three
		for session := 0; session*perSession < n; session++ {
			other, err := g.attach(ctx, "other"+strconv.Itoa(session))
			if err != nil {
				return nil, err
			}
			if _, _, err = other.Calls(min(n, perSession)/3, 64, "TodoWrite", `{"todos":[]}`); err != nil {
				return nil, err
			}
			other.HangUp()
		}
		return g.attach(ctx, "one")
	}},
}

func (g *grower) attach(ctx context.Context, session string) (*wire.Talk, error) {
	return wire.StartTalk(ctx, g.daemon, session, filepath.Join(g.dir, "root"))
}

// measureGrowth prints a row for each growth: the overhead at each step, and the slope.
func measureGrowth(ctx context.Context, toold string, chosen func(string) bool, rounds int) (err error) {
	base, err := os.MkdirTemp("", "growth")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	if err := errors.Join(os.Setenv("XDG_CONFIG_HOME", base), os.MkdirAll(filepath.Join(base, "toold"), 0o700)); err != nil {
		return err
	}
	bare, err := startEcho(ctx, filepath.Join(base, "echo.sock"))
	if err != nil {
		return err
	}
	defer bare.Stop()
	fmt.Println("| what grows | overhead of a call, median, at each size | slope from the first to the last |\n|---|---|---|")
	for _, grows := range growths {
		if !chosen(grows.name) {
			continue
		}
		var text []string
		var overhead []float64
		for _, n := range grows.steps {
			seconds, err := grows.at(ctx, toold, filepath.Join(base, strconv.Itoa(n)), bare, n, rounds)
			if err != nil {
				return fmt.Errorf("%s, %d: %w", grows.name, n, err)
			}
			overhead = append(overhead, seconds)
			text = append(text, fmt.Sprintf("%d: %s", n, ratio.Duration(seconds)))
		}
		last := len(overhead) - 1
		slope := (overhead[last] - overhead[0]) * 1e6 / float64(grows.steps[last]-grows.steps[0]) * 1000
		fmt.Printf("| %s | %s | %+.1f us for 1,000 more (%.2f x) |\n", grows.name, strings.Join(text, ", "), slope, overhead[last]/overhead[0])
	}
	return nil
}

// at returns the median overhead with n of what grows, in seconds.
func (grows growth) at(ctx context.Context, toold, dir string, bare *wire.Server, n, rounds int) (_ float64, err error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o700); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g := &grower{toold: toold, dir: dir}
	if g.daemon, err = wire.StartDaemon(ctx, toold, dir); err != nil {
		return 0, err
	}
	defer g.daemon.Stop()
	talk, err := grows.begin(ctx, g, n)
	if err != nil {
		return 0, err
	}
	control := calling(bare, dir, 200, 1, "TodoWrite", `{"todos":[]}`, nil)
	var overheads []float64
	for range rounds + 1 {
		without, err := control(ctx)
		if err != nil {
			return 0, err
		}
		var with time.Duration
		if with, _, err = talk.Calls(200, 1, "TodoWrite", `{"todos":[]}`); err != nil {
			return 0, err
		}
		overheads = append(overheads, (with - without).Seconds())
	}
	return ratio.Quantile(slices.Clip(overheads[1:]), 0.5), nil // the first warms up
}
