package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peer returns the user and the process that began to listen on the other end.
func peer(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("the socket's other end cannot be identified: %w", err)
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(controlErr, err); err != nil {
		return 0, 0, fmt.Errorf("the socket's other end cannot be identified: %w", err)
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// A process is held by descriptor, so that its number cannot come to mean another one.
type process struct{ fd, pid int }

// holdProcess returns errors.ErrUnsupported where the system cannot do it, and os.ErrProcessDone for one that is gone.
func holdProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, os.ErrProcessDone
	case errors.Is(err, unix.ENOSYS):
		return nil, errors.ErrUnsupported
	case err != nil:
		return nil, err
	}
	return &process{fd, pid}, nil
}

// release ends the hold. On nil it does nothing.
func (p *process) release() {
	if p != nil {
		_ = unix.Close(p.fd)
	}
}

// endsWithin reports whether the process ends within that time, or has ended.
func (p *process) endsWithin(limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(limit.Milliseconds()))
	return err == nil && n > 0
}

func (p *process) signal(signal syscall.Signal) error {
	return unix.PidfdSendSignal(p.fd, signal, nil, 0)
}

// flag returns the value of a flag with which the process was started.
func (p *process) flag(name string) (value string, found bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if err != nil || p.endsWithin(0) {
		return "", false
	}
	return valueOf(strings.Split(string(line), "\x00"), name)
}

// locks reports whether the process is this user's and has the file at path open and locked.
func (p *process) locks(path string) bool {
	proc := fmt.Sprintf("/proc/%d", p.pid)
	owner, err := os.Stat(proc)
	if err != nil || int(owner.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return false
	}
	lock, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return false
	}
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

// gone returns when the process has ended, or with ctx's error. It releases p.
func (p *process) gone(ctx context.Context) error {
	defer unix.Close(p.fd)
	var wake [2]int
	if err := unix.Pipe2(wake[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	stopped := context.AfterFunc(ctx, func() { _ = unix.Close(wake[1]) })
	defer unix.Close(wake[0])
	defer func() {
		if stopped() {
			_ = unix.Close(wake[1])
		}
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(wake[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if fds[0].Revents != 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// StartOf returns when a process was started, in a form that no other process with its number ever has.
func StartOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	rest := string(stat[bytes.LastIndexByte(stat, ')')+1:]) // behind the name
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields[19] + " " + strings.TrimSpace(string(boot)), nil // the 22nd of all, clock ticks since the boot
}
