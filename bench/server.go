// The two servers that are measured: the daemon, and a bare gRPC server that sends each call's result back at once.
// Each is a process of its own, so that neither shares a heap with the clock.

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
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"

	"github.com/toold/toold/bench/wire"
	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// echo answers each tool use with one result that repeats its input: the same messages as the daemon's, and nothing
// between them.
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
		err = stream.Send(&tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{
			ToolUseId: use.GetId(),
			Outcome:   tooldv1.Outcome_OUTCOME_OK,
			Content:   []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: use.GetInputJson()}}},
		}}})
		if err != nil {
			return err
		}
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

// A server is a process behind a socket, and a connection to it.
type server struct {
	conn *toold.Conn
	pid  int
	stop func()
}

func startEcho(ctx context.Context, socket string) (*server, error) {
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
	return connect(socket, cmd.Process.Pid, stop)
}

// startDaemon starts the daemon on a socket and a state directory of its own, with the default settings.
func startDaemon(ctx context.Context, toold, dir string) (*server, error) {
	socket := filepath.Join(dir, "toold.sock")
	if output, err := exec.CommandContext(ctx, toold, "start", "--socket", socket).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s start: %w\n%s", toold, err, output)
	}
	stop := func() { _ = exec.Command(toold, "stop", "--socket", socket).Run() }
	s, err := connect(socket, 0, stop)
	if err != nil {
		return nil, err
	}
	info, err := s.conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		s.stop()
		return nil, err
	}
	s.pid = int(info.GetPid())
	return s, nil
}

func connect(socket string, pid int, stop func()) (*server, error) {
	conn, err := wire.Dial(socket)
	if err != nil {
		stop()
		return nil, err
	}
	return &server{conn: conn, pid: pid, stop: func() { conn.Close(); stop() }}, nil
}

// memory returns one of the kernel's figures of the process, such as VmRSS, in bytes.
func (s *server) memory(figure string) (int64, error) {
	kib, err := wire.Figure(s.pid, figure)
	return kib << 10, err
}

// forgetPeak makes VmHWM begin again at the present size.
func (s *server) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0)
}
