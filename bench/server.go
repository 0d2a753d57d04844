// The bare gRPC server that the daemon is measured against: it answers each call at once, with as many messages as the daemon.
// It is a process of its own, so that it does not share a heap with the clock.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"google.golang.org/grpc"

	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// echo answers each tool use with an acceptance, a start and a result that repeats its input: the same messages as the
// daemon's, and nothing between them.
type echo struct {
	tooldv1.UnimplementedToolServiceServer
}

func (echo) Execute(stream grpc.BidiStreamingServer[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		use := request.GetToolUse()
		if use == nil {
			continue
		}
		for _, event := range answersTo(use) {
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}

func answersTo(use *tooldv1.ToolUse) []*tooldv1.ExecuteResponse {
	id := use.GetId()
	return []*tooldv1.ExecuteResponse{
		{Event: &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{ToolUseId: id, Name: use.GetName(), InputJson: ""}}},
		{Event: &tooldv1.ExecuteResponse_Started{Started: &tooldv1.Started{ToolUseId: id}}},
		{Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{
			ToolUseId: id,
			Outcome:   tooldv1.Outcome_OUTCOME_OK,
			Content:   []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: use.GetInputJson()}}},
		}}},
	}
}

// serveEcho serves until ctx ends, and prints a line to standard output when it listens.
func serveEcho(ctx context.Context, socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	tooldv1.RegisterToolServiceServer(server, echo{})
	context.AfterFunc(ctx, server.Stop)
	fmt.Println("listening")
	return server.Serve(listener)
}

func startEcho(ctx context.Context, socket string) (*wire.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, interrupt := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "-echo", socket)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	stop := func() { interrupt(); _ = cmd.Wait() }
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		if _, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
			err = fmt.Errorf("the bare server did not say that it listens: %w", err)
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	return wire.Connect(socket, cmd.Process.Pid, stop)
}
