//go:build !no_mcp

package main

// What becomes of calls when the daemon under toold mcp, or the client above it, is gone.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPDaemonKilled: a call that ran when the daemon died is told as interrupted, and the next one has a new daemon.
func TestMCPDaemonKilled(t *testing.T) {
	t.Parallel()
	steps := make(chan struct{}, 1)
	p := meetMCP(t, peerOptions{args: []string{"--mode", "bypassPermissions"}, client: mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			select {
			case steps <- struct{}{}:
			default:
			}
		},
	}})
	p.call("Bash", map[string]any{"command": "export A=kept"})
	ended := make(chan *mcp.CallToolResult)
	params := &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "echo begun; sleep 600"}}
	params.SetProgressToken(1)
	go func() {
		result, err := p.CallTool(t.Context(), params)
		if err != nil {
			t.Error(err)
		}
		ended <- result
	}()
	<-steps
	if err := syscall.Kill(daemonPID(t, p), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.ended(<-ended, "interrupted", "")
	p.ended(p.call("Bash", map[string]any{"command": "pwd"}), "ok", p.root)
	if err := syscall.Kill(daemonPID(t, p), syscall.SIGKILL); err != nil { // with nothing under way
		t.Fatal(err)
	}
	p.ended(p.call("Bash", map[string]any{"command": "pwd"}), "ok", p.root)
}

func daemonPID(t *testing.T, p *mcpPeer) (pid int) {
	t.Helper()
	_, after, _ := strings.Cut(p.toold("status", "--json"), `"pid":`)
	if _, err := fmt.Sscan(strings.Trim(after, `" `), &pid); err != nil {
		t.Fatalf("no process id in %s", after)
	}
	return pid
}

// TestMCPClientKilled: nothing of a client's calls is left when it is gone, however it went.
func TestMCPClientKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		more   []string
	}{
		"terminated": {syscall.SIGTERM, nil}, "killed": {syscall.SIGKILL, nil}, "a session that stays": {syscall.SIGTERM, []string{"--session", "stays"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := meetMCP(t, peerOptions{args: append(c.more, "--mode", "bypassPermissions")})
			fifo := filepath.Join(p.root, "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			over := make(chan error)
			go func() {
				_, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "exec sleep 600 > fifo"}})
				over <- err
			}()
			pipe, err := os.Open(fifo) // returns when the command has opened it too
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			if err := p.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if err := <-over; err == nil {
				t.Error("a call whose server was ended has a result")
			}
			if n, err := pipe.Read(make([]byte, 1)); n != 0 || err == nil { // returns when the command has ended
				t.Errorf("the command wrote %d bytes, %v", n, err)
			}
		})
	}
}
