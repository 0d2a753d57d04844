// The daemon as a process that is started, killed, and started again on what it has left.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toold/toold/bench/wire"
	toold "github.com/toold/toold/clients/go"
)

// A server is a daemon that has a state directory, a root and a socket of its own below dir.
type server struct {
	binary, dir string
	cmd         *exec.Cmd
	conn        *toold.Conn
}

// startServer starts a daemon in a new temporary directory, which is the caller's to remove.
func startServer(binary, name string) (*server, error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return nil, err
	}
	d, err := newServer(binary, dir)
	if err != nil {
		return nil, err
	}
	return d, d.start()
}

func newServer(binary, dir string) (*server, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // other users must not reach the socket
		return nil, err
	}
	d := &server{binary: binary, dir: dir}
	for _, sub := range []string{d.root(), filepath.Join(dir, "home")} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *server) root() string   { return filepath.Join(d.dir, "root") }
func (d *server) state() string  { return filepath.Join(d.dir, "state") }
func (d *server) socket() string { return filepath.Join(d.dir, "toold.sock") }

// start starts the daemon with flags beside the usual ones, and returns when it reports that it serves. It lives until kill
// or stop.
func (d *server) start(flags ...string) error {
	ready, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	log, err := os.OpenFile(filepath.Join(d.dir, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, said.Close())
	}
	defer log.Close()
	d.cmd = exec.Command(d.binary, "serve", "--socket", d.socket(), "--state-dir", d.state(), "--root", d.root(), "--ready-fd", "3")
	d.cmd.Args = append(d.cmd.Args, flags...)
	d.cmd.Env = []string{"HOME=" + filepath.Join(d.dir, "home"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.ExtraFiles = log, log, []*os.File{said}
	err = d.cmd.Start()
	_ = said.Close()
	if err != nil {
		return err
	}
	word, err := io.ReadAll(ready)
	if err != nil || strings.TrimSpace(string(word)) != "ready" {
		d.kill()
		return fmt.Errorf("the daemon said %q (%w)", word, err)
	}
	return d.connect()
}

func (d *server) connect() (err error) {
	d.conn, err = wire.Dial(d.socket())
	return err
}

// kill ends the daemon as a power cut would end its process, and returns when it is gone.
func (d *server) kill() { _ = d.end(syscall.SIGKILL) }

// stop asks it to end; the error is that it did not do so in order.
func (d *server) stop() error { return d.end(syscall.SIGTERM) }

func (d *server) end(signal syscall.Signal) error {
	if d.cmd == nil || d.cmd.Process == nil {
		return nil
	}
	_ = d.cmd.Process.Signal(signal)
	err := d.cmd.Wait()
	if d.conn != nil {
		d.conn.Close()
	}
	d.cmd, d.conn = nil, nil
	return err
}
