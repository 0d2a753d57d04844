// What a call costs the daemon in the processor's instructions, which are nearly the same on a loaded machine and on a quiet one.
// It needs perf, and a processor whose counters can be read.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/bench/wire"
)

// counters are what perf counts, in the order of the table.
var counters = []string{"instructions:u", "instructions:k", "context-switches"}

const (
	countedWarming = 1500
	countedCalls   = 4000
)

// measureInstructions prints a row for each call that is chosen.
func measureInstructions(ctx context.Context, toold string, chosen func(string) bool) (err error) {
	perf, err := exec.LookPath("perf")
	if err != nil {
		return fmt.Errorf("%w: install it (Debian: linux-perf)", err)
	}
	dir, err := os.MkdirTemp("", "instructions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := filepath.Join(dir, "files")
	text := strings.Repeat("the quick brown fox jumps over the lazy dog and on\n", 80)
	for n := range 100 {
		name := filepath.Join(files, fmt.Sprintf("%03d.txt", n))
		if err := errors.Join(os.MkdirAll(files, 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	<-time.After(3 * time.Second) // files that have just changed are looked at more closely
	daemon, err := wire.StartDaemon(ctx, toold, dir)
	if err != nil {
		return err
	}
	defer daemon.Stop()
	fmt.Println("| a call | in flight | instructions of the program | of the kernel | switches of threads |\n|---|---|---|---|---|")
	for _, call := range []struct {
		tool, input string
		window      int
	}{
		{"TodoWrite", `{"todos":[]}`, 1},
		{"TodoWrite", `{"todos":[]}`, 64},
		{"Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(files, "000.txt")), 1},
		{"LS", fmt.Sprintf(`{"path":%q}`, files), 1},
		{"Grep", fmt.Sprintf(`{"pattern":"quicker","path":%q}`, files), 1},
	} {
		if !chosen(call.tool) {
			continue
		}
		talk, err := wire.StartTalk(ctx, daemon, "", dir)
		if err != nil {
			return err
		}
		calls := func(n int) error {
			_, _, err := talk.Calls(n, call.window, call.tool, call.input)
			return err
		}
		counts, err := countedBy(ctx, perf, daemon.PID, calls)
		if err != nil {
			return fmt.Errorf("%s: %w", call.tool, err)
		}
		talk.HangUp()
		fmt.Printf("| %s | %d | %.0f | %.0f | %.1f |\n", call.tool, call.window, counts[0], counts[1], counts[2])
	}
	return nil
}

// countedBy returns what perf counts of the process for each call, after some that warm up.
func countedBy(ctx context.Context, perf string, pid int, calls func(int) error) (counts []float64, err error) {
	if err := calls(countedWarming); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, perf, "stat", "-x,", "-e", strings.Join(counters, ","), "-p", strconv.Itoa(pid))
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	<-time.After(300 * time.Millisecond) // until it counts; it does not say when
	err = calls(countedCalls)
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait() // it ends by that signal
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(output.String()) {
		value, _, _ := strings.Cut(line, ",")
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("perf counts nothing here: %s", strings.TrimSpace(line))
		}
		counts = append(counts, count/countedCalls)
	}
	if len(counts) != len(counters) {
		return nil, fmt.Errorf("perf says: %s", output.String())
	}
	return counts, nil
}
