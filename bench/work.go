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
	"strings"
	"sync"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// comparisons lists what is measured. Files go into dir, which the caller removes.
func comparisons(daemon, bare *server, dir string) []comparison {
	list := []comparison{
		{
			name:    "no-op call (TodoWrite of nothing) / bare gRPC echo, one in flight",
			control: calling(bare, dir, 500, 1, "TodoWrite", "{}", nil),
			toold:   calling(daemon, dir, 500, 1, "TodoWrite", `{"todos":[]}`, nil),
		},
		{
			name:    "no-op call / bare gRPC echo, 64 in flight",
			control: calling(bare, dir, 4000, 64, "TodoWrite", "{}", nil),
			toold:   calling(daemon, dir, 4000, 64, "TodoWrite", `{"todos":[]}`, nil),
		},
		{
			name:    "`Bash true` / os/exec of bash",
			control: spawning(100, 1),
			toold:   calling(daemon, dir, 100, 1, "Bash", `{"command":"true"}`, nil),
		},
		{
			name:    "64 concurrent `Bash true` / 64 os/exec of bash",
			control: spawning(128, 64),
			toold:   calling(daemon, dir, 128, 64, "Bash", `{"command":"true"}`, nil),
		},
		outputComparison(daemon, dir),
		readComparison(daemon, dir),
		orderComparison(daemon, dir),
	}
	if _, err := exec.LookPath("rg"); err == nil {
		list = append(list, searchComparisons(daemon)...)
	}
	return list
}

// calling makes calls on a stream that is opened at the first use and stays. check looks at a result of each round; nil: none does.
func calling(s *server, root string, n, window int, name, input string, check func(*tooldv1.ToolResult) error) work {
	var t *talk
	return func(ctx context.Context) (_ time.Duration, err error) {
		if t == nil {
			if t, err = startTalk(ctx, s, "", root); err != nil {
				return 0, err
			}
		}
		took, last, err := t.calls(n, window, name, input)
		if err == nil && check != nil {
			err = check(last)
		}
		return took, err
	}
}

// spawning runs bash n times, window at once, as a program would that has no daemon.
func spawning(n, window int) work {
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
func outputComparison(daemon *server, dir string) comparison {
	produce := fmt.Sprintf("head -c %d /dev/zero", outputBytes)
	capture := calling(daemon, dir, 1, 1, "Bash", fmt.Sprintf(`{"command":%q}`, produce), nil)
	kept := filepath.Join(dir, "output")
	var grown int64
	return comparison{
		name: "256 MiB of output / head through cat into a file",
		control: func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			err := exec.CommandContext(ctx, "bash", "-c", produce+` | cat >"$1"`, "bash", kept).Run()
			return time.Since(start), errors.Join(err, os.Remove(kept))
		},
		toold: func(ctx context.Context) (time.Duration, error) {
			before, err := daemon.memory("VmRSS")
			if err != nil {
				return 0, err
			}
			if err := daemon.forgetPeak(); err != nil {
				return 0, err
			}
			took, err := capture(ctx)
			if err != nil {
				return 0, err
			}
			peak, err := daemon.memory("VmHWM")
			grown = max(grown, peak-before)
			return took, err
		},
		note: func() string { return fmt.Sprintf("; the daemon grew by at most %.1f MiB", float64(grown)/(1<<20)) },
	}
}

// readComparison reads 2,000 of 10,000 lines, against reading the whole file into memory.
func readComparison(daemon *server, dir string) comparison {
	name := filepath.Join(dir, "lines.txt")
	read := calling(daemon, dir, 20, 1, "Read", fmt.Sprintf(`{"file_path":%q,"limit":2000}`, name), nil)
	return comparison{
		name: "Read 2,000 of 10,000 lines / os.ReadFile",
		control: func(context.Context) (time.Duration, error) {
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
		toold: read,
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
