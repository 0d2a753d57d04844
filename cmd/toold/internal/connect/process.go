package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peer returns the user whose process began to listen on the other end.
func peer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var credErr error
		err = raw.Control(func(fd uintptr) { uid, credErr = peerOf(int(fd)) })
		err = errors.Join(err, credErr)
	}
	if err != nil {
		return 0, fmt.Errorf("the socket's other end cannot be identified: %w", err)
	}
	return uid, nil
}

// A process is held by the system's handle of it, so that its number cannot come to mean another one.
type process struct{ *os.Process }

// holdProcess returns errors.ErrUnsupported where the system has no handles, and os.ErrProcessDone for a process that is gone.
func holdProcess(pid int) (*process, error) {
	held, err := os.FindProcess(pid)
	if err == nil {
		if err = held.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
			err = held.WithHandle(func(uintptr) {})
		}
	}
	if errors.Is(err, os.ErrNoHandle) {
		err = errors.ErrUnsupported
	}
	return &process{held}, err
}

// endsWithin reports whether the process ends within that time, or has ended.
func (p *process) endsWithin(limit time.Duration) (ended bool) {
	_ = p.WithHandle(func(handle uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		ended = err == nil && n > 0
	})
	return ended
}

// gone returns when the process has ended, or with ctx's error.
func (p *process) gone(ctx context.Context) error {
	for !p.endsWithin(goneRetry) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// goneRetry is how long it takes at most until an interrupt ends the waiting for a process.
const goneRetry = 100 * time.Millisecond

// flag returns the value of a flag with which the process was started.
func (p *process) flag(name string) (value string, found bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
	if err != nil || p.endsWithin(0) {
		return "", false
	}
	args := bytes.Split(line, []byte{0})
	at := slices.IndexFunc(args, func(arg []byte) bool { return string(arg) == name })
	if at < 0 || at+1 >= len(args) {
		return "", false
	}
	return string(args[at+1]), true
}

// locks reports whether the process is this user's and has the file at path open and locked. Only Linux shows it.
func (p *process) locks(path string) bool {
	proc := fmt.Sprintf("/proc/%d", p.Pid)
	owner, err := os.Stat(proc)
	if err != nil || int(owner.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return false
	}
	lock, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, _ := os.ReadDir(proc + "/fd")
	for _, fd := range open {
		if file, err := os.Stat(proc + "/fd/" + fd.Name()); err != nil || !os.SameFile(file, lock) {
			continue
		}
		info, err := os.ReadFile(proc + "/fdinfo/" + fd.Name()) // which lists the locks that were taken through it
		if err == nil && strings.Contains(string(info), "FLOCK") {
			return !p.endsWithin(0) // so all of that was this process's and not its successor's
		}
	}
	return false
}
