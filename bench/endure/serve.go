// The daemon inside this program, for soak: it ends as a process of its own would, and then looks for goroutines that are
// left.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/write"
)

// serve takes the flags that newServer's processes are given.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	socket := flags.String("socket", "", "")
	state := flags.String("state-dir", "", "")
	root := flags.String("root", "", "")
	ready := flags.Int("ready-fd", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	syscall.CloseOnExec(*ready)
	before := goleak.IgnoreCurrent()
	if err := serveUntilDone(*socket, daemon.Config{
		Tools: []tools.Tool{
			read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), glob.Tool(), grep.Tool(), ls.Tool(),
			bash.Tool(), bash.OutputTool(), bash.InputTool(), bash.KillTool(), todo.Tool(),
		},
		StateDir: *state, Root: *root, Version: "soak", Log: zap.Must(zap.NewProduction()),
	}, os.NewFile(uintptr(*ready), "ready")); err != nil {
		return err
	}
	return goleak.Find(before)
}

func serveUntilDone(socket string, config daemon.Config, ready *os.File) error {
	listener, err := access.Listen(socket)
	if err != nil {
		return err
	}
	d, err := daemon.New(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	obeyed := context.AfterFunc(ending, d.Drain)
	defer obeyed()
	fmt.Fprintln(ready, "ready")
	_ = ready.Close()
	return d.Serve(listener)
}
