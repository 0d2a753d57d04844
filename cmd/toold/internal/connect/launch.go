package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/settings"
)

const (
	// launchLimit is how long a daemon may take to restore its sessions before the client gives up on it.
	launchLimit = time.Minute
	// logKept is the size in bytes at which the log of the last daemons is put aside.
	logKept = 8 << 20
	// readyDescriptor is the first that exec.Cmd.ExtraFiles hands down.
	readyDescriptor = 3
	ReadyWord       = "ready\n"
)

// launch starts a daemon unless another client has done so meanwhile, and returns when it listens.
func (f *Finder) launch(ctx context.Context) error {
	dir := filepath.Dir(f.Socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cli.NoDaemon("the socket's folder cannot be made: %v. Name another socket with --socket.", err)
	}
	if err := ownFolder(dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(f.Socket+".start", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return cli.NoDaemon("the lock for starting the daemon cannot be made: %v", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return cli.NoDaemon("the lock for starting the daemon cannot be taken: %v", err)
	}
	if err := f.located(ctx); !errors.Is(err, errNone) {
		return err
	}
	if f.unitEnabled() {
		if err := startUnit(ctx); err != nil {
			f.Noted("systemd cannot start %s, so this command starts the daemon: %v", socketUnit, err)
		}
		if err := f.find(ctx); !errors.Is(err, errNone) {
			return err
		}
	}
	return f.launchLocked(ctx)
}

func (f *Finder) launchLocked(ctx context.Context) error {
	state := f.StateDir()
	root, _ := os.Getwd() // empty when it is gone
	if f.successor != nil {
		if info, err := os.Stat(f.successor.root); err == nil && info.IsDir() {
			root = f.successor.root
		}
	}
	if root == "" {
		return cli.NoDaemon("the working directory, which would be the daemon's default root, is gone: change to another one")
	}
	log, err := openLog(state)
	if err != nil {
		return cli.NoDaemon("the daemon's log cannot be opened: %v", err)
	}
	defer log.Close()
	limits, err := usableSettings()
	if err != nil {
		return err
	}
	idleExit := limits.Idle.Exit
	if f.successor != nil {
		idleExit = f.successor.idleExit
	}
	f.Noted("starting the daemon; its log is %s", log.Name())
	child, err := Spawn(ctx, log, "serve", "--socket", f.Socket, "--state-dir", state, "--root", root,
		"--idle-exit", idleExit.String(), "--log-format", "json")
	if err != nil {
		return cli.NoDaemon("%v. Its log is %s; \"toold serve\" runs it in the foreground.", err, log.Name())
	}
	return child.Process.Release()
}

// usableSettings returns the limits of the settings with which a daemon would begin.
func usableSettings() (settings.Limits, error) {
	now := settings.Open(settings.DefaultSources(settings.DefaultPath())).Load(settings.Scope{})
	if len(now.Broken) > 0 {
		return now.Limits, cli.NoDaemon("the settings cannot be used: %v", errors.Join(now.Broken...))
	}
	return now.Limits, nil
}

// StateDir is where the daemon of this socket keeps its state. A daemon on a socket of its own has a state of its own:
// two daemons never share a journal.
func (f *Finder) StateDir() string {
	if f.state != "" {
		return f.state
	}
	if f.Socket == access.DefaultSocket() {
		return access.DefaultStateDir()
	}
	return strings.TrimSuffix(f.Socket, ".sock") + ".state"
}

func openLog(state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(state, "daemon.log")
	if info, err := os.Stat(name); err == nil && info.Size() > logKept {
		if err := os.Rename(name, name+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// Spawn runs this very binary in a session of its own and returns when it has said that it listens. The caller waits
// for the process or releases it. With an error, the process is gone.
func Spawn(ctx context.Context, log *os.File, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own file cannot be found: %w", err)
	}
	ready, signal, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("the daemon cannot be started: %w", err)
	}
	defer ready.Close()
	child := &exec.Cmd{
		Path: self, Args: append([]string{"toold"}, append(args, "--ready-fd", strconv.Itoa(readyDescriptor))...),
		Dir: "/", Stdout: log, Stderr: log, ExtraFiles: []*os.File{signal},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = child.Start()
	_ = signal.Close()
	if err != nil {
		return nil, fmt.Errorf("the daemon cannot be started: %w", err)
	}
	if err := awaitReady(ctx, ready); err != nil {
		_ = child.Process.Kill()
		_ = child.Wait()
		return nil, err
	}
	return child, nil
}

// awaitReady reads what the daemon writes to its pipe: the ready word, or why it cannot serve.
func awaitReady(ctx context.Context, ready *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, launchLimit, errors.New("it did not say in "+launchLimit.String()+" that it listens"))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	said, err := io.ReadAll(io.LimitReader(ready, 4096))
	switch {
	case bytes.Equal(said, []byte(ReadyWord)):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the daemon was given up: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("the daemon's readiness cannot be read: %w", err)
	case len(said) > 0:
		return fmt.Errorf("the daemon did not start: %s", strings.TrimSpace(string(said)))
	default:
		return errors.New("the daemon ended before it listened")
	}
}
