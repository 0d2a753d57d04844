// Program filesearch is a toold with one tool more: FileSearch, which searches files by regular expression and replaces what
// it finds. It shows how a program embeds the daemon with a list of tools of its own. This file knows how a daemon is
// started and ended; it does not know what FileSearch does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/write"
)

func main() {
	if sandbox.WatcherMain(os.Args) { // this process outlives a daemon to end what it leaves; every program with a daemon begins so
		return
	}
	socket := flag.String("socket", filepath.Join(os.TempDir(), fmt.Sprintf("filesearch-%d", os.Getuid()), "toold.sock"), "where to listen")
	root := flag.String("root", ".", "the directory that calls may use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *socket, *root, func() { fmt.Println("listening on", *socket) }); err != nil {
		fmt.Fprintln(os.Stderr, "filesearch:", err)
		os.Exit(1)
	}
}

// serve runs the daemon until ctx ends; what runs then may still finish. ready is called when clients can connect.
func serve(ctx context.Context, socket, root string, ready func()) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	listener, err := access.Listen(socket) // before New, so that two daemons never open one state
	if err != nil {
		return err
	}
	d, err := daemon.New(daemon.Config{Tools: toolset(), StateDir: socket + ".state", Root: root, Version: "filesearch"})
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer context.AfterFunc(ctx, d.Drain)()
	ready()
	return d.Serve(listener)
}

// toolset is what models see, in this order.
func toolset() []tools.Tool {
	return []tools.Tool{write.Tool(), edit.Tool(), glob.Tool(), grep.Tool(), ls.Tool(), Tool()}
}
