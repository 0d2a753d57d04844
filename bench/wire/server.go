// The daemon as a process that is measured, and a connection to it.

package wire

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Server is a process behind a socket, and a connection to it.
type Server struct {
	Conn *toold.Conn
	PID  int
	Stop func()
}

// StartDaemon starts the daemon on a socket and a state directory of its own below dir, with the default settings.
func StartDaemon(ctx context.Context, toold, dir string) (*Server, error) {
	socket := filepath.Join(dir, "toold.sock")
	if output, err := exec.CommandContext(ctx, toold, "start", "--socket", socket).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s start: %w\n%s", toold, err, output)
	}
	stop := func() { _ = exec.Command(toold, "stop", "--socket", socket).Run() }
	s, err := Connect(socket, 0, stop)
	if err != nil {
		return nil, err
	}
	info, err := s.Conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.PID = int(info.GetPid())
	return s, nil
}

// Connect returns the process that listens at a socket, which stop ends; a failure ends it too.
func Connect(socket string, pid int, stop func()) (*Server, error) {
	conn, err := Dial(socket)
	if err != nil {
		stop()
		return nil, err
	}
	return &Server{Conn: conn, PID: pid, Stop: func() { conn.Close(); stop() }}, nil
}

// Memory returns one of the kernel's figures of the process, such as VmRSS, in bytes.
func (s *Server) Memory(figure string) (int64, error) {
	kib, err := Figure(s.PID, figure)
	return kib << 10, err
}

// ForgetPeak makes VmHWM begin again at the present size.
func (s *Server) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID), []byte("5"), 0)
}
