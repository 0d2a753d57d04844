// Keeping the cores awake: a core that has slept takes longer to begin than what is measured here.

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/toold/toold/bench/ratio"
)

// keepingAwake returns what does a work while on each core a process spins that the kernel runs only when nothing else
// wants to. It needs chrt.
func keepingAwake() (func(ratio.Work) ratio.Work, error) {
	chrt, err := exec.LookPath("chrt")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(w ratio.Work) ratio.Work {
		return func(ctx context.Context) (took time.Duration, err error) {
			for range runtime.NumCPU() {
				cmd := exec.CommandContext(ctx, chrt, "--idle", "0", self, "-spin")
				input, err := cmd.StdinPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					return 0, err
				}
				defer func() { err = errors.Join(err, input.Close(), cmd.Wait()) }()
			}
			return w(ctx)
		}
	}, nil
}

// spin keeps a core busy until standard input ends.
func spin() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	runtime.LockOSThread()
	for {
		_ = time.Now()
	}
}
