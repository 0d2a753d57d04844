// What is compared with what: one line of the table each.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// comparisons lists what is measured. Files go into dir, which the caller removes.
func comparisons(daemon, bare *wire.Server, dir string) []ratio.Comparison {
	list := []ratio.Comparison{
		noOpComparison(daemon, bare, dir, "cores idle in between", func(w ratio.Work) ratio.Work { return w }),
		{
			Name:    "no-op call / bare gRPC echo, 64 in flight",
			Control: calling(bare, dir, 4000, 64, "TodoWrite", `{"todos":[]}`, nil),
			Toold:   calling(daemon, dir, 4000, 64, "TodoWrite", `{"todos":[]}`, nil),
		},
		{
			Name:    "`Bash true` / os/exec of bash",
			Control: spawning(100, 1),
			Toold:   calling(daemon, dir, 100, 1, "Bash", `{"command":"true"}`, nil),
		},
		{
			Name:    "`Bash true`, each 100 ms after the last / os/exec of bash, the same",
			Control: paused(spawning(1, 1)),
			Toold:   paused(calling(daemon, dir, 1, 1, "Bash", `{"command":"true"}`, nil)),
		},
		{
			Name:    "64 concurrent `Bash true` / 64 os/exec of bash",
			Control: spawning(128, 64),
			Toold:   calling(daemon, dir, 128, 64, "Bash", `{"command":"true"}`, nil),
		},
		outputComparison(daemon, dir),
		readComparison(daemon, dir),
		orderComparison(daemon, dir),
	}
	if awake, err := keepingAwake(); err == nil {
		list = slices.Insert(list, 1, noOpComparison(daemon, bare, dir, "cores kept awake", awake))
	}
	if _, err := exec.LookPath("rg"); err == nil {
		list = append(list, searchComparisons(daemon)...)
	}
	return list
}

// noOpComparison is a call that does nothing against the same messages with nothing between them. How both are made is up to how.
func noOpComparison(daemon, bare *wire.Server, dir, name string, how func(ratio.Work) ratio.Work) ratio.Comparison {
	return ratio.Comparison{
		Name:    "no-op call (TodoWrite of nothing) / bare gRPC echo, one in flight, " + name,
		Control: how(calling(bare, dir, 500, 1, "TodoWrite", `{"todos":[]}`, nil)),
		Toold:   how(calling(daemon, dir, 500, 1, "TodoWrite", `{"todos":[]}`, nil)),
	}
}

// calling makes calls on a stream that is opened at the first use and stays. check looks at a result of each round; nil: none does.
func calling(s *wire.Server, root string, n, window int, name, input string, check func(*tooldv1.ToolResult) error) ratio.Work {
	var t *wire.Talk
	return func(ctx context.Context) (_ time.Duration, err error) {
		if t == nil {
			if t, err = wire.StartTalk(ctx, s, "", root); err != nil {
				return 0, err
			}
		}
		took, last, err := t.Calls(n, window, name, input)
		if err == nil && check != nil {
			err = check(last)
		}
		return took, err
	}
}

// paused does the work 20 times, each after a pause as a model makes it, but shorter.
func paused(work ratio.Work) ratio.Work {
	const times, pause = 20, 100 * time.Millisecond
	return func(ctx context.Context) (took time.Duration, err error) {
		for range times {
			<-time.After(pause)
			one, err := work(ctx)
			if err != nil {
				return 0, err
			}
			took += one
		}
		return took / times, nil
	}
}

// spawning runs bash n times, window at once, as a program would that has no daemon.
func spawning(n, window int) ratio.Work {
	return func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		failures := make(chan error, n)
		slots := make(chan struct{}, window)
		var running sync.WaitGroup
		for range n {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				var output bytes.Buffer
				cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", "true")
				cmd.Stdout, cmd.Stderr = &output, &output
				failures <- cmd.Run()
			})
		}
		running.Wait()
		took := time.Since(start) / time.Duration(n)
		for range n {
			if err := <-failures; err != nil {
				return 0, err
			}
		}
		return took, nil
	}
}

// outputBytes is what the command of outputComparison prints.
const outputBytes = 256 << 20

// outputComparison captures a large output while a client follows it, against a pipe into a file on the same disk. Its
// note is what the daemon's memory grew by at most.
func outputComparison(daemon *wire.Server, dir string) ratio.Comparison {
	produce := fmt.Sprintf("head -c %d /dev/zero", outputBytes)
	capture := calling(daemon, dir, 1, 1, "Bash", fmt.Sprintf(`{"command":%q}`, produce), nil)
	kept := filepath.Join(dir, "output")
	var grown int64
	return ratio.Comparison{
		Name: "256 MiB of output / head through cat into a file",
		Control: func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			err := exec.CommandContext(ctx, "bash", "-c", produce+` | cat >"$1"`, "bash", kept).Run()
			return time.Since(start), errors.Join(err, os.Remove(kept))
		},
		Toold: func(ctx context.Context) (time.Duration, error) {
			before, err := daemon.Memory("VmRSS")
			if err != nil {
				return 0, err
			}
			if err := daemon.ForgetPeak(); err != nil {
				return 0, err
			}
			took, err := capture(ctx)
			if err != nil {
				return 0, err
			}
			peak, err := daemon.Memory("VmHWM")
			grown = max(grown, peak-before)
			return took, err
		},
		Note: func() string { return fmt.Sprintf("; the daemon grew by at most %.1f MiB", float64(grown)/(1<<20)) },
	}
}

// readComparison reads 2,000 of 10,000 lines, against reading the whole file into memory.
func readComparison(daemon *wire.Server, dir string) ratio.Comparison {
	name := filepath.Join(dir, "lines.txt")
	read := calling(daemon, dir, 20, 1, "Read", fmt.Sprintf(`{"file_path":%q,"limit":2000}`, name), nil)
	return ratio.Comparison{
		Name: "Read 2,000 of 10,000 lines / os.ReadFile",
		Control: func(context.Context) (time.Duration, error) {
			if err := writeLines(name); err != nil {
				return 0, err
			}
			const times = 100
			start := time.Now()
			for range times {
				if _, err := os.ReadFile(name); err != nil {
					return 0, err
				}
			}
			return time.Since(start) / times, nil
		},
		Toold: read,
	}
}

// writeLines makes the file that is read, once.
func writeLines(name string) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	var text strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&text, "%06d the quick brown fox jumps over the lazy dog\n", n)
	}
	return os.WriteFile(name, []byte(text.String()), 0o600)
}
